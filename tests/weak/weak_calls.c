/*
 * Purpose: what the compiler calls at each access of a source that is compiled with
 * -fsanitize=thread, as gcc and clang do it. In a run it is the model's (weak.c); outside of runs
 * there is one thread, and it is done at once.
 */
#include "weak_inside.h"

#include <string.h>

#include "base/pair.h"

#define IN_RUN (weak_me < WEAK_THREADS)

void __tsan_init(void) { }
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void) { }
void __tsan_acquire(void *at) { (void)at; }
void __tsan_release(void *at) { (void)at; }
void __tsan_vptr_update(void **at, void *value) { (void)at, (void)value; }
void __tsan_read_range(void *at, unsigned long bytes) { (void)bytes, weak_plain(at, false); }
void __tsan_write_range(void *at, unsigned long bytes) { (void)bytes, weak_plain(at, true); }
void *__tsan_memcpy(void *to, const void *from, size_t n) { return memcpy(to, from, n); }
void *__tsan_memset(void *to, int byte, size_t n) { return memset(to, byte, n); }
void *__tsan_memmove(void *to, const void *from, size_t n) { return memmove(to, from, n); }

#define PLAIN_OF(n) \
        void __tsan_read##n(void *at) { weak_plain(at, false); } \
        void __tsan_write##n(void *at) { weak_plain(at, true); } \
        void __tsan_unaligned_read##n(void *at) { weak_plain(at, false); } \
        void __tsan_unaligned_write##n(void *at) { weak_plain(at, true); }
PLAIN_OF(1)
PLAIN_OF(2)
PLAIN_OF(4)
PLAIN_OF(8)
PLAIN_OF(16)

#define CHANGE_OF(n, type, name, how, plain) \
        type __tsan_atomic##n##_##name(volatile type *at, type by, int order) \
        { \
                type was = *at; \
                if (IN_RUN) \
                        return (type)weak_change(at, n / 8, how, by, order); \
                *at = plain; \
                return was; \
        }
#define ATOMIC_OF(n, type) \
        type __tsan_atomic##n##_load(const volatile type *at, int order) \
        { \
                return IN_RUN ? (type)weak_load(at, n / 8, order) : *at; \
        } \
        void __tsan_atomic##n##_store(volatile type *at, type value, int order) \
        { \
                if (IN_RUN) \
                        weak_store(at, n / 8, value, order); \
                else \
                        *at = value; \
        } \
        CHANGE_OF(n, type, exchange, WEAK_SET, by) \
        CHANGE_OF(n, type, fetch_add, WEAK_ADD, (type)(was + by)) \
        CHANGE_OF(n, type, fetch_sub, WEAK_SUB, (type)(was - by)) \
        CHANGE_OF(n, type, fetch_or, WEAK_OR, was | by) \
        CHANGE_OF(n, type, fetch_and, WEAK_AND, was & by) \
        CHANGE_OF(n, type, fetch_xor, WEAK_XOR, was ^ by) \
        int __tsan_atomic##n##_compare_exchange_strong(volatile type *at, type *expected, \
                                                       type desired, int order, int failing) \
        { \
                uint64_t was = *expected; \
                bool done; \
                if (IN_RUN) \
                        done = weak_exchange_if(at, n / 8, &was, desired, order, failing); \
                else if ((done = *at == *expected)) \
                        *at = desired; \
                else \
                        was = *at; \
                *expected = (type)was; \
                return done; \
        } \
        int __tsan_atomic##n##_compare_exchange_weak(volatile type *at, type *expected, \
                                                     type desired, int order, int failing) \
        { \
                return __tsan_atomic##n##_compare_exchange_strong(at, expected, desired, order, \
                                                                  failing); \
        } \
        type __tsan_atomic##n##_compare_exchange_val(volatile type *at, type expected, \
                                                     type desired, int order, int failing) \
        { \
                __tsan_atomic##n##_compare_exchange_strong(at, &expected, desired, order, \
                                                           failing); \
                return expected; \
        }
ATOMIC_OF(8, uint8_t)
ATOMIC_OF(16, uint16_t)
ATOMIC_OF(32, uint32_t)
ATOMIC_OF(64, uint64_t)

void __tsan_atomic_thread_fence(int order)
{
        if (IN_RUN)
                weak_fence(order);
}

void __tsan_atomic_signal_fence(int order) { (void)order; }

/* ---- base/pair.h with STOOK_PAIR_BY_LOCK; stook_pair_cas: weak.c ---- */

bool stook_pair_half_cas(uint64_t *half, uint64_t expected, uint64_t desired)
{
        if (IN_RUN)
                return weak_exchange_if(half, 8, &expected, desired, __ATOMIC_SEQ_CST,
                                        __ATOMIC_ACQUIRE);
        if (*half != expected)
                return false;
        *half = desired;
        return true;
}

void stook_pair_set_lock(uint32_t *lock) { (void)lock; }
void stook_pair_fork_child(void) { }
