/*
 * Purpose: numbers that are hard to guess from outside, for orders of objects. Not cryptography. A
 * counter in steps of an odd constant, each value mixed (Steele, Lea, Flood: "Fast splittable
 * pseudorandom number generators", 2014).
 * Concurrency: any thread, any instruction. A race of two first callers seeds once.
 */
#include <sys/auxv.h>

#include "os/os.h"

#define STEP UINT64_C(0x9e3779b97f4a7c15)

static uint64_t seed;                   /* atomic, relaxed; 0: not seeded yet */
static uint64_t drawn;                  /* atomic, relaxed; a multiple of STEP */

static uint64_t mix(uint64_t x)
{
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

/*
 * The kernel's 16 bytes are libc's canaries, too: folded to 64 bits, so that a number does not give
 * them away.
 */
static uint64_t make_seed(void)
{
        const unsigned char *bytes = (const unsigned char *)getauxval(AT_RANDOM);
        uint64_t s = (uintptr_t)bytes;

        if (!bytes)
                s = mix(stook_os_clock_ms()) ^ (uintptr_t)&s;
        for (unsigned i = 0; bytes && i < 16; i++)
                s = mix(s + STEP + bytes[i]);
        return s | 1;
}

uint64_t stook_os_random(void)
{
        uint64_t s = __atomic_load_n(&seed, __ATOMIC_RELAXED);

        if (!s) {
                uint64_t fresh = make_seed();

                if (__atomic_compare_exchange_n(&seed, &s, fresh, false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED))
                        s = fresh;
        }
        return mix(s + __atomic_fetch_add(&drawn, STEP, __ATOMIC_RELAXED));
}
