/*
 * Proves: spans never overlap, are aligned and as long as asked, read as zeros where their state
 * says so, keep their content over resize and move; the bins, the map and coalescing stay sound
 * after every step (span.h I1, I2), also when every second lock is refused; and everything given
 * back is one free run again.
 */
#include "pages_env.h"
#include "pages/pages_node.h"
#include "base/inject.h"
#include "base/lock.h"

#define LIVE 200
#ifndef STEPS
#define STEPS 8000
#endif

struct live {
        struct stook_span *span;
        uint64_t stamp;
};

static uint64_t *words(struct stook_span *span)
{
        return (uint64_t *)span->start;
}

/* First and last word of each of up to 16 pages spread over the span carry the stamp. */
static void stamp(struct live *l, size_t from)
{
        size_t step = (l->span->bytes / 16 + 4095) & ~(size_t)4095;

        for (size_t at = from; at < l->span->bytes; at += step)
                words(l->span)[at / 8] = l->stamp + at;
}

static void check_stamp(struct live *l, size_t bytes, size_t stamped_bytes)
{
        size_t step = (stamped_bytes / 16 + 4095) & ~(size_t)4095;

        for (size_t at = 0; at < bytes; at += step)
                assert_true(words(l->span)[at / 8] == l->stamp + at);
}

static void check_zero(struct stook_span *span)
{
        size_t step = span->bytes > 1 << 20 ? 4096 : 8;

        if (stook_span_is_zero(span))
                for (size_t at = 0; at < span->bytes; at += step)
                        assert_true(words(span)[at / 8] == 0);
}

static void check_apart(struct live *live, struct stook_span *span)
{
        for (unsigned i = 0; i < LIVE; i++)
                if (live[i].span && live[i].span != span)
                        assert_true(live[i].span->start + live[i].span->bytes <= span->start ||
                                    span->start + span->bytes <= live[i].span->start);
}

static size_t some_bytes(uint64_t *random)
{
        switch (next_random(random) % 16) {
        case 0:
                return ((size_t)32 << 20) + next_random(random) % ((size_t)8 << 20);
        case 1: case 2:
                return 1 + next_random(random) % ((size_t)4 << 20);
        default:
                return 1 + next_random(random) % ((size_t)256 << 10);
        }
}

static unsigned taken_together;         /* spans of stook_span_take_some */

static unsigned some_node(uint64_t *random)
{
        return stook_os_node_home((unsigned)(next_random(random) % stook_os_node_count()));
}

/* Several small spans in one hold of the lock, and back in one. */
static void take_some_give_chain(struct live *live, uint64_t *random)
{
        unsigned n = 1 + (unsigned)(next_random(random) % STOOK_SPAN_SOME), got;
        size_t bytes = stook_os_page_bytes() << next_random(random) % 3;
        struct stook_span *spans[STOOK_SPAN_SOME];

        got = stook_span_take_some(some_node(random), bytes, n, spans);
        assert_true(got <= n);
        for (unsigned i = 0; i < got; i++) {
                assert_int_equal(spans[i]->kind, STOOK_SPAN_TAKEN);
                assert_int_equal(spans[i]->bytes, bytes);
                assert_int_equal(spans[i]->node, spans[0]->node);
                check_zero(spans[i]);
                check_apart(live, spans[i]);
                memset((void *)spans[i]->start, (int)i + 1, bytes);
        }
        for (unsigned i = 0; i < got; i++) {
                for (size_t at = 0; at < bytes; at += 512)
                        assert_int_equal(((char *)spans[i]->start)[at], i + 1);
                spans[i]->link.next = i + 1 < got ? &spans[i + 1]->link : NULL;
        }
        stook_span_give_chain(got ? &spans[0]->link : NULL);
        taken_together += got;
}

static void operations(uint64_t seed)
{
        static struct live live[LIVE];
        uint64_t random = seed;

        for (unsigned step = 0; step < STEPS; step++) {
                struct live *l = &live[next_random(&random) % LIVE];
                size_t bytes = some_bytes(&random);

                if (step % 8 == 0)
                        take_some_give_chain(live, &random);

                if (!l->span) {
                        size_t align = next_random(&random) % 4
                                               ? 0
                                               : (size_t)4096 << next_random(&random) % 10;

                        l->span = stook_span_take(some_node(&random), bytes, align);
                        assert_non_null(l->span);
                        assert_true(l->span->bytes >= bytes &&
                                    l->span->bytes < bytes + stook_os_page_bytes());
                        assert_true(!align || !(l->span->start & (align - 1)));
                        check_zero(l->span);
                        l->span->kind = STOOK_SPAN_LARGE;
                        l->stamp = next_random(&random);
                        stamp(l, 0);
                        check_apart(live, l->span);
                        assert_ptr_equal(stook_span_large_at(l->span->start), l->span);
                        if (l->span->bytes > 4096)
                                assert_null(stook_span_large_at(l->span->start + 4096));
                } else if (next_random(&random) % 3 == 0) {
                        size_t was = l->span->bytes, kept;

                        check_stamp(l, was, was);
                        if (!stook_span_resize(l->span, bytes)) {
                                struct stook_span *to = stook_span_move(l->span, bytes);

                                assert_non_null(to);
                                l->span = to;
                        }
                        kept = l->span->bytes < was ? l->span->bytes : was;
                        check_stamp(l, kept, was);
                        check_apart(live, l->span);
                        assert_ptr_equal(stook_span_large_at(l->span->start), l->span);
                        stamp(l, 0);
                } else {
                        check_stamp(l, l->span->bytes, l->span->bytes);
                        stook_span_give(l->span);
                        l->span = NULL;
                }
                if (step % 64 == 0) {
                        stook_pages_step();
                        assert_sound();
                }
        }
        for (unsigned i = 0; i < LIVE; i++)
                if (live[i].span) {
                        stook_span_give(live[i].span);
                        live[i].span = NULL;
                }
        stook_inject.lock_refuse_every = 0;
        for (unsigned node = 0; node < stook_os_node_count(); node++)
                if (stook_os_node_has_memory(node))
                        /* The holder of the lock empties pending. */
                        stook_span_give(stook_span_take(node, 4096, 0));
        assert_sound();
}

static void random_operations(void **state)
{
        (void)state;
        operations(seed_of_run());
        assert_true(taken_together > STEPS / 16);
}

static void random_operations_with_refused_locks(void **state)
{
        (void)state;
        stook_inject.lock_refuse_every = 2;
        operations(seed_of_run());
}

static void all_given_back_is_purged_whole(void **state)
{
        struct stook_pages_stats stats;

        (void)state;
        stook_pages_purge(0);
        stook_pages_stats(&stats);
        assert_int_equal(stats.taken_bytes, 0);
        assert_int_equal(stook_pages_nodes[0].ledger.slabs, 0);
        assert_int_equal(stats.free_dirty_bytes, 0);
        assert_int_equal(stats.free_clean_bytes, stats.committed_bytes);
        assert_sound();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_operations),
                cmocka_unit_test(random_operations_with_refused_locks),
                cmocka_unit_test(all_given_back_is_purged_whole),
        };

        stook_os_topology_detect();
        if (!stook_pages_start())
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
