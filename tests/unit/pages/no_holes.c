/*
 * Proves: nothing inside our ranges is ever unmapped (span.h I3): while one thread grows, moves and
 * gives spans, another maps and unmaps 4 KiB to 2 MiB in a loop, and none of its mappings ever lies
 * in a range of ours. And that churn leaves no VMAs behind.
 */
#include "pages_env.h"
#include <pthread.h>
#include <sys/mman.h>
#include "pages/pagemap.h"

static int stop;
static unsigned long foreign_maps, foreign_inside;

static void *map_in_a_loop(void *arg)
{
        uint64_t random = 88172645463325252u;

        (void)arg;
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                void *at[8];
                size_t bytes[8];

                for (unsigned i = 0; i < 8; i++) {
                        bytes[i] = (size_t)4096 << next_random(&random) % 10;
                        at[i] = mmap(NULL, bytes[i], PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                        if (at[i] == MAP_FAILED)
                                continue;
                        foreign_maps++;
                        foreign_inside += stook_pagemap_ours((uintptr_t)at[i]) ||
                                          stook_pagemap_ours((uintptr_t)at[i] + bytes[i] - 1);
                }
                for (unsigned i = 0; i < 8; i++)
                        if (at[i] != MAP_FAILED)
                                munmap(at[i], bytes[i]);
        }
        return NULL;
}

static void churn(unsigned rounds)
{
        for (unsigned round = 0; round < rounds; round++) {
                struct stook_span *span = stook_span_take(0, 200 << 10, 0);

                assert_non_null(span);
                for (size_t bytes = 200 << 10; bytes < (size_t)96 << 20; bytes += bytes / 3) {
                        if (!stook_span_resize(span, bytes)) {
                                span = stook_span_move(span, bytes);
                                assert_non_null(span);
                        }
                        ((char *)span->start)[0] = 1;
                        ((char *)span->start)[bytes - 1] = 1;
                }
                stook_span_give(span);
        }
}

static void no_foreign_mapping_inside(void **state)
{
        pthread_t thread;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, map_in_a_loop, NULL), 0);
        churn(300);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
        printf("%lu foreign mappings, %lu inside\n", foreign_maps, foreign_inside);
        assert_true(foreign_maps > 0);
        assert_true(foreign_inside == 0);
        assert_sound();
}

static void churn_leaves_no_vmas(void **state)
{
        unsigned before, after;

        (void)state;
        churn(20);
        before = vmas();
        churn(300);
        after = vmas();
        printf("VMAs %u before, %u after churn\n", before, after);
        assert_true(after <= before + 4);
}

/*
 * 1 GiB taken, touched and given in pieces of 64 KiB: the system has it back at once, but for the
 * allowance.
 */
static void spike_is_given_back(void **state)
{
        enum { SPANS = 4096 };
        static struct stook_span *spans[SPANS];
        size_t before, after;

        (void)state;
        stook_pages_purge(0);
        before = resident_bytes();
        for (unsigned i = 0; i < SPANS; i++) {
                spans[i] = stook_span_take(0, 256 << 10, 0);
                assert_non_null(spans[i]);
                memset((void *)spans[i]->start, 1, spans[i]->bytes);
        }
        assert_true(resident_bytes() > before + ((size_t)900 << 20));
        for (unsigned i = 0; i < SPANS; i++)
                stook_span_give(spans[i]);
        after = resident_bytes();
        printf("resident %zu KiB before, %zu KiB after a spike of 1 GiB\n", before >> 10,
               after >> 10);
        assert_true(after < before + ((size_t)16 << 20));
        assert_sound();
}

static void growing_step_by_step_stays_in_place(void **state)
{
        struct stook_span *span = stook_span_take(0, 64 << 20, 0);
        unsigned moves = 0;

        (void)state;
        assert_non_null(span);
        for (size_t bytes = 64 << 20; bytes < (size_t)1 << 30; bytes += 4096)
                if (!stook_span_resize(span, bytes)) {
                        span = stook_span_move(span, bytes);
                        assert_non_null(span);
                        moves++;
                }
        printf("%u moves from 64 MiB to 1 GiB\n", moves);
        assert_true(moves <= 5);
        assert_true(resident_bytes() < (size_t)64 << 20);
        stook_span_give(span);
        assert_sound();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_foreign_mapping_inside),
                cmocka_unit_test(churn_leaves_no_vmas),
                cmocka_unit_test(spike_is_given_back),
                cmocka_unit_test(growing_step_by_step_stays_in_place),
        };

        if (!stook_pages_start())
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
