/*
 * Purpose: the numbers that a sample at random needs, without libm.
 */
#ifndef STOOK_CHANCE_H
#define STOOK_CHANCE_H

#include <stdint.h>
#include "base/compiler.h"

/* The natural logarithm of @x from 0 (excluded) to 1. Its error is below 1e-12. */
STOOK_INLINE double stook_chance_log(double x)
{
        double power = 0, s, square, sum = 0;

        for (; x < 0.70710678118654752; x *= 2)
                power++;
        s = (x - 1) / (x + 1);
        square = s * s;
        for (int n = 15; n > 0; n -= 2)
                sum = sum * square + 1.0 / n;
        return 2 * s * sum - power * 0.69314718055994531;
}

/* 1 - exp(-@x), exact for small @x, too. */
STOOK_INLINE double stook_chance_share(double x)
{
        unsigned halved = 0;
        double sum = 0, term;

        if (x > 40)
                return 1;
        for (; x > 0.25; x /= 2)
                halved++;
        term = x;
        for (int n = 2; n < 12; n++) {
                sum += term;
                term *= -x / n;
        }
        for (; halved; halved--)
                sum *= 2 - sum;
        return sum;
}

/* From 0 (excluded) to 1. @random: any 64 bits. */
STOOK_INLINE double stook_chance_uniform(uint64_t random)
{
        return ((double)(random >> 11) + 1) * 0x1p-53;
}

/* Of the exponential distribution with mean 1. */
STOOK_INLINE double stook_chance_exponential(uint64_t random)
{
        return -stook_chance_log(stook_chance_uniform(random));
}

#endif
