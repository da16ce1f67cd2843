/*
 * Purpose: the few compiler words the sources use, and the library's limits on names.
 */
#ifndef STOOK_COMPILER_H
#define STOOK_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define STOOK_LIKELY(x)    __builtin_expect(!!(x), 1)
#define STOOK_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define STOOK_NOINLINE     __attribute__((noinline))
#define STOOK_INLINE       static inline __attribute__((always_inline))
#define STOOK_COLD         __attribute__((noinline, cold))
#define STOOK_API          __attribute__((visibility("default")))
/*
 * On declarations of data: without it position-independent code goes through the GOT, hidden or
 * not.
 */
#define STOOK_HIDDEN       __attribute__((visibility("hidden")))
#define STOOK_ALIGNED(n)   __attribute__((aligned(n)))
#define STOOK_CACHELINE    64
/*
 * A public function that begins at a cache line. ctags takes a macro with arguments for a function.
 */
#define STOOK_API_HOT      __attribute__((visibility("default"), aligned(STOOK_CACHELINE)))
/* Of a static array of which most processes touch little: behind the other variables (order.ld). */
#define STOOK_MOSTLY_UNUSED __attribute__((section(".bss.stook_large")))

/* 1: code is instrumented by ThreadSanitizer. */
#if defined(__SANITIZE_THREAD__)
#define STOOK_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STOOK_TSAN 1
#endif
#endif
#ifndef STOOK_TSAN
#define STOOK_TSAN 0
#endif

#define stook_container_of(ptr, type, member) \
        ((type *)((char *)(ptr) - offsetof(type, member)))

#define STOOK_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#endif
