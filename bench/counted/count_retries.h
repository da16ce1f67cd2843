/*
 * bench/counted/count_retries.h - included before the barn's sources for bench/counted/barn.cc
 *
 * Purpose: count the compare-and-swaps of tagged stacks that another thread's made fail.
 */
#ifndef BENCH_COUNT_RETRIES_H
#define BENCH_COUNT_RETRIES_H

#include <stdint.h>

extern uint64_t stook_bench_retries;    /* atomic */
#define STOOK_TAGGED_STACK_RETRY() \
        ((void)__atomic_fetch_add(&stook_bench_retries, 1, __ATOMIC_RELAXED))

#endif
