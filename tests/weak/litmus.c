/*
 * Proves of weak.c itself that it shows what C11 allows, and nothing that it forbids: messages
 * passed by stores of each order and by fences, two stores and two loads, read-modify-writes in a
 * row, races; and that it ends runs in which threads wait for one another.
 */
#include "weak.h"

static struct { _Alignas(64) uint64_t word; } x, y, seen[2];
static int data;

static void reset(void)
{
        x.word = y.word = seen[0].word = seen[1].word = 0;
        data = 0;
}

/* ---- a message ---- */

#define MESSAGE(name, store_order, load_order) \
        static void name##_send(void) \
        { \
                data = 1; \
                __atomic_store_n(&x.word, 1, store_order); \
        } \
        static void name##_get(void) \
        { \
                if (__atomic_load_n(&x.word, load_order)) \
                        weak_assert(data == 1); \
        } \
        static const struct weak_program name = { \
                "message, " #name, reset, { name##_send, name##_get }, NULL, 2, 2 \
        };

MESSAGE(released, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)
MESSAGE(ordered, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
MESSAGE(not_released, __ATOMIC_RELAXED, __ATOMIC_ACQUIRE)
MESSAGE(not_acquired, __ATOMIC_RELEASE, __ATOMIC_RELAXED)

static void send_by_fence(void)
{
        data = 1;
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store_n(&x.word, 1, __ATOMIC_RELAXED);
}

static void get_by_fence(void)
{
        if (__atomic_load_n(&x.word, __ATOMIC_RELAXED)) {
                __atomic_thread_fence(__ATOMIC_ACQUIRE);
                weak_assert(data == 1);
        }
}

static const struct weak_program by_fences = {
        "message, by fences", reset, { send_by_fence, get_by_fence }, NULL, 2, 2
};

/* A relaxed read-modify-write in between carries what was released before it. */
static void add(void)
{
        if (__atomic_load_n(&x.word, __ATOMIC_RELAXED) == 1)
                __atomic_fetch_add(&x.word, 1, __ATOMIC_RELAXED);
}

static void get_second(void)
{
        if (__atomic_load_n(&x.word, __ATOMIC_ACQUIRE) == 2)
                weak_assert(data == 1);
}

static const struct weak_program in_a_row = {
        "message, through a read-modify-write", reset, { released_send, add, get_second }, NULL,
        2, 2
};

/* ---- two stores and two loads ---- */

#define STORES(name, between, order, load_order) \
        static void name##_0(void) \
        { \
                __atomic_store_n(&x.word, 1, order); \
                between; \
                seen[0].word = __atomic_load_n(&y.word, load_order); \
        } \
        static void name##_1(void) \
        { \
                __atomic_store_n(&y.word, 1, order); \
                between; \
                seen[1].word = __atomic_load_n(&x.word, load_order); \
        } \
        static const struct weak_program name = { \
                "stores, " #name, reset, { name##_0, name##_1 }, one_is_seen, 2, 2 \
        };

static void one_is_seen(void)
{
        weak_assert(seen[0].word || seen[1].word);
}

STORES(fenced, __atomic_thread_fence(__ATOMIC_SEQ_CST), __ATOMIC_RELAXED, __ATOMIC_RELAXED)
STORES(sequential, (void)0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
STORES(unfenced, (void)0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)
STORES(half_fenced, __atomic_thread_fence(__ATOMIC_ACQ_REL), __ATOMIC_RELAXED,
       __ATOMIC_RELAXED)

/* One side has nothing; the other's membarrier is for both. */
static void barred_0(void)
{
        __atomic_store_n(&x.word, 1, __ATOMIC_RELAXED);
        seen[0].word = __atomic_load_n(&y.word, __ATOMIC_RELAXED);
}

static void barred_1(void)
{
        __atomic_store_n(&y.word, 1, __ATOMIC_RELAXED);
        weak_membarrier();
        seen[1].word = __atomic_load_n(&x.word, __ATOMIC_RELAXED);
}

static const struct weak_program barred = {
        "stores, a membarrier", reset, { barred_0, barred_1 }, one_is_seen, 2, 2
};

/* ---- races, and waits ---- */

static void write_data(void)
{
        data++;
}

static const struct weak_program race = {
        "two writes", reset, { write_data, write_data }, NULL, 2, 0
};

static void wait_for_x(void)
{
        while (!__atomic_load_n(&x.word, __ATOMIC_ACQUIRE))
                weak_wait();
        weak_assert(data == 1);
}

static const struct weak_program woken = {
        "a wait", reset, { wait_for_x, released_send, wait_for_x }, NULL, 2, 2
};
static const struct weak_program never_woken = {
        "a wait for nothing", reset, { wait_for_x }, NULL, 2, 2
};

int main(void)
{
        weak_hold(&released);
        weak_hold(&ordered);
        weak_hold(&by_fences);
        weak_hold(&in_a_row);
        weak_hold(&fenced);
        weak_hold(&sequential);
        weak_hold(&barred);
        weak_hold(&woken);
        weak_break(&not_released);
        weak_break(&not_acquired);
        weak_break(&unfenced);
        weak_break(&half_fenced);
        weak_break(&race);
        weak_break(&never_woken);
        return 0;
}
