/*
 * Proves that memory which small objects have left goes back to the system by the slow paths of a program that goes
 * on, without a thread, a trim or a large object: first it is kept, for a program that takes it again at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include "pages/span.h"
#include <stook/malloc.h>

#define OBJECTS 65536
#define BYTES   1024                    /* 64 MiB of them */
#define STAYS   512                     /* each 512th stays: one in half a megabyte */
#define OTHERS  16384                   /* far more than a slot and a barn keep of them */
#define ROUNDS  2000                    /* of 5 ms: far more than STOOK_DECAY_MS, which the build sets to 50 */

static void *objects[OBJECTS];
static void *others[OTHERS];

static size_t free_dirty_bytes(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.free_dirty_bytes;
}

/* Sheaves are refilled and flushed. */
static void go_on(void)
{
        for (size_t i = 0; i < OTHERS; i++)
                others[i] = stook_malloc(48);
        for (size_t i = 0; i < OTHERS; i++)
                stook_free(others[i]);
}

static void test_what_small_objects_left_is_purged(void **state)
{
        const struct timespec pause = { .tv_nsec = 5000000 };
        size_t kept;

        (void)state;
        for (size_t i = 0; i < OBJECTS; i++) {
                objects[i] = stook_malloc(BYTES);
                assert_non_null(objects[i]);
                *(char *)objects[i] = 1;
        }
        /* Those that stay keep free spans apart: what is 1 MiB or more in one piece may go at once. */
        for (size_t i = 0; i < OBJECTS; i++)
                if (i % STAYS)
                        stook_free(objects[i]);
        kept = free_dirty_bytes();
        assert_true(kept > (size_t)OBJECTS * BYTES / 16);
        for (int i = 0; i < ROUNDS && free_dirty_bytes() > kept / 16; i++) {
                go_on();
                nanosleep(&pause, NULL);
        }
        assert_true(free_dirty_bytes() <= kept / 16);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_small_objects_left_is_purged),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
