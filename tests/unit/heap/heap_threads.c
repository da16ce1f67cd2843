/*
 * What this proves: any thread allocates from a heap, any thread frees its objects, also by calls
 * that name no heap, while other heaps are made, reset and destroyed. No object is handed out
 * twice, and the figures are right at the end.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#define THREADS 4
#define PLACES  64

static unsigned rounds = 40000;
static struct stook_heap *shared;
static void *places[PLACES];            /* atomic: objects on their way to another thread */

static unsigned next(unsigned *state)
{
        *state = *state * 1664525 + 1013904223;
        return *state >> 8;
}

/* The first word is the size, the last byte follows from it. */
static unsigned char *mark(void *object, size_t size)
{
        unsigned char *bytes = object;

        assert_non_null(object);
        memcpy(bytes, &size, sizeof(size));
        bytes[size - 1] = (unsigned char)(size ^ 0x5a);
        return bytes;
}

static void check_and_free(struct stook_heap *heap, void *object, bool plain)
{
        const unsigned char *bytes = object;
        size_t size;

        memcpy(&size, bytes, sizeof(size));
        assert_int_equal(bytes[size - 1], (unsigned char)(size ^ 0x5a));
        assert_ptr_equal(stook_heap_of(object), heap);
        if (plain)
                stook_free(object);
        else
                stook_heap_free(heap, object);
}

static size_t size_for(unsigned random)
{
        return 16 + (random % 50 ? random / 50 % 1000 : random / 50 % 100000);
}

/* A heap of this thread's own: filled, reset or destroyed with what is alive. */
static void use_own(unsigned *state)
{
        struct stook_heap *own = stook_heap_create("own", NULL);

        for (unsigned i = 0; i < 200; i++) {
                size_t size = size_for(next(state));
                void *object = mark(stook_heap_alloc(own, size), size);

                if (next(state) % 2)
                        check_and_free(own, object, next(state) % 2);
                if (i == 100)
                        assert_int_equal(stook_heap_reset(own), 0);
        }
        assert_int_equal(stook_heap_destroy(own), 0);
}

static void *work(void *data)
{
        unsigned state = (unsigned)(uintptr_t)data;

        for (unsigned i = 0; i < rounds; i++) {
                size_t size = size_for(next(&state));
                void *object = mark(stook_heap_alloc(shared, size), size);

                object = __atomic_exchange_n(&places[next(&state) % PLACES], object,
                                             __ATOMIC_ACQ_REL);
                if (object)
                        check_and_free(shared, object, next(&state) % 2);
                if (next(&state) % 512 == 0)
                        use_own(&state);
        }
        return NULL;
}

static void threads_share_a_heap(void **state)
{
        struct stook_heap_stats stats = { .stats_size = sizeof(stats) };
        pthread_t thread[THREADS];

        (void)state;
        shared = stook_heap_create("shared", NULL);
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, work, (void *)(i + 1)), 0);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(stook_validate_all(), 0);
        for (unsigned i = 0; i < PLACES; i++)
                if (places[i])
                        check_and_free(shared, places[i], false);
        assert_int_equal(stook_heap_shrink(shared), 0);
        assert_int_equal(stook_heap_get_stats(shared, &stats), 0);
        assert_int_equal(stats.objects_live, 0);
        assert_int_equal(stats.bytes, 0);
        assert_int_equal(stook_heap_destroy(shared), 0);
        assert_int_equal(stook_validate_all(), 0);
}

/* ---- misuse: frees beside the end of their heap ---- */

#define LATE 1000

static void *late[LATE];
static uint32_t begun;                  /* atomic: the frees have begun */
static uint64_t told;                   /* atomic */

static void on_report(const struct stook_report *report, void *data)
{
        (void)report, (void)data;
        __atomic_fetch_add(&told, 1, __ATOMIC_RELAXED);
}

static void *free_all(void *data)
{
        (void)data;
        __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
        for (unsigned i = 0; i < LATE; i++)
                stook_free(late[i]);
        return NULL;
}

/* Each free is done or told, and nothing else is harmed: not a heap with the same sizes. */
static void late_frees_harm_no_one(void **state)
{
#ifdef __SANITIZE_THREAD__
        skip();                         /* misuse: a race on purpose */
#endif
        struct stook_heap *other = stook_heap_create("other", NULL);
        unsigned char *kept = stook_heap_alloc(other, 100);

        (void)state;
        memset(kept, 9, 100);
        stook_on_report(on_report, NULL);
        for (unsigned round = 0; round < 1 + rounds / 8000; round++) {
                struct stook_heap *heap = stook_heap_create("late", NULL);
                pthread_t thread;

                for (unsigned i = 0; i < LATE; i++)
                        late[i] = stook_heap_alloc(heap, i % 50 ? 100 : 40000);
                __atomic_store_n(&begun, 0, __ATOMIC_RELAXED);
                assert_int_equal(pthread_create(&thread, NULL, free_all, NULL), 0);
                while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
                        ;
                assert_int_equal(stook_heap_destroy(heap), 0);
                assert_int_equal(pthread_join(thread, NULL), 0);
                assert_int_equal(kept[0], 9);
                assert_int_equal(kept[99], 9);
        }
        stook_on_report(NULL, NULL);
        assert_int_equal(stook_heap_destroy(other), 0);
        assert_int_equal(stook_validate_all(), 0);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(threads_share_a_heap),
                cmocka_unit_test(late_frees_harm_no_one),
        };

        if (argc > 1)
                rounds = (unsigned)atoi(argv[1]);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
