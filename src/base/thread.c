/*
 * Purpose: the library's thread-local storage, all of it: one line.
 * `used`: sections name it in assembly only. Invariants: base/thread.h.
 */
#include "base/compiler.h"
#include "base/thread.h"

STOOK_API __attribute__((used)) STOOK_ALIGNED(STOOK_CACHELINE) __thread struct stook_thread_v1
        stook_thread_v1 = {
                .no_index = UINT32_MAX,
        };
uint32_t stook_threads_enrolled;
uint32_t stook_threads_live;

extern __thread struct stook_thread_v1 stook_thread __attribute__((alias("stook_thread_v1")));
