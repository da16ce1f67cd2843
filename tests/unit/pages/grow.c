/*
 * Proves: what grows is copied to ordinary pages where that is cheaper than new mappings, gets a
 * mapping with room behind it where it grows in steps, and a size that doubles again and again is
 * not faulted in each time. Where huge pages are asked for, growth is in whole ones.
 */
#include "pages_env.h"
#include <sys/resource.h>
#include "pages/pages_node.h"

#define MIB ((size_t)1 << 20)

static struct stook_span *full_span(size_t bytes)
{
        struct stook_span *span = stook_span_take(0, bytes, 0);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        memset((void *)span->start, 7, bytes);
        return span;
}

static struct stook_span *moved(struct stook_span *span, size_t bytes)
{
        size_t was = span->bytes;
        struct stook_span *to = stook_span_move(span, bytes);

        assert_non_null(to);
        assert_int_equal(to->bytes, bytes);
        for (size_t i = 0; i < was; i += 4096)
                assert_int_equal(((char *)to->start)[i], 7);
        memset((void *)(to->start + was), 7, bytes - was);
        return to;
}

static void small_ones_are_copied(void **state)
{
        struct stook_span *span = full_span(256 << 10);

        (void)state;
        for (size_t bytes = MIB / 2; bytes < 4 * MIB; bytes *= 2) {
                span = moved(span, bytes);
                assert_false(span->own_mapping);
        }
        stook_span_give(span);
        assert_sound();
}

static void steps_get_room(void **state)
{
        struct stook_span *span = moved(full_span(8 * MIB), 9 * MIB);

        (void)state;
        assert_true(span->own_mapping);
        assert_true(stook_span_resize(span, 16 * MIB));
        stook_span_give(span);
        assert_sound();
}

/* What was purged and is grown into was purged in vain, as what is taken. */
static void growth_into_purged_pages_is_missed(void **state)
{
        struct stook_span *span = full_span(256 << 10), *behind = full_span(MIB);
        size_t missed;

        (void)state;
        assert_true(behind->start == span->start + span->bytes);
        stook_span_give(behind);
        stook_pages_purge(0);
        missed = stook_pages_nodes[0].ledger.refault;
        assert_true(stook_span_resize(span, 768 << 10));
        assert_int_equal(stook_pages_nodes[0].ledger.refault, missed + (512 << 10));
        stook_span_give(span);
        assert_sound();
}

static long faults(void)
{
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_minflt;
}

static void doubling_is_faulted_in_once(void **state)
{
        long before = 0;

        (void)state;
        stook_pages_set_decay_ms(UINT32_MAX / 4);       /* nothing is given back by its age */
        for (unsigned round = 0; round < 5; round++) {
                struct stook_span *span = full_span(2 * MIB);

                before = faults();
                for (size_t bytes = 4 * MIB; bytes <= 16 * MIB; bytes *= 2)
                        span = moved(span, bytes);
                assert_true(round || span->own_mapping);
                stook_span_give(span);
        }
        assert_true(faults() - before < 512);           /* of 4096 pages */
        assert_sound();
}

static void a_large_one_is_never_copied(void **state)
{
        struct stook_span *span = moved(full_span(32 * MIB), 64 * MIB);

        (void)state;
        assert_true(span->own_mapping);
        stook_span_give(span);
        assert_sound();
}

/* From 16 MiB in use on, where huge pages are asked for: the memory got ahead is whole ones. */
static void growth_is_in_whole_huge_pages(void **state)
{
        struct stook_bins *clean = &stook_pages_nodes[0].bins[STOOK_SET_CLEAN];
        struct stook_span *spans[400], *ahead;
        unsigned n = 0;

        (void)state;
        stook_pages_set_thp(STOOK_THP_ALWAYS);
        while (stook_pages_taken(0) < 18 * MIB)
                spans[n++] = full_span(300 << 10);
        for (unsigned growths = 0; growths < 4; n++) {
                size_t before = stook_pages_nodes[0].ledger.committed;

                assert_true(n < 400);
                spans[n] = full_span(300 << 10);
                if (stook_pages_nodes[0].ledger.committed == before)
                        continue;
                growths++;
                ahead = stook_bins_largest(clean);
                assert_non_null(ahead);
                assert_int_equal(spans[n]->start % (2 * MIB), 0);
                assert_int_equal((ahead->start + ahead->bytes) % (2 * MIB), 0);
        }
        while (n)
                stook_span_give(spans[--n]);
        stook_pages_set_thp(STOOK_THP_AUTO);
        assert_sound();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(growth_into_purged_pages_is_missed),
                cmocka_unit_test(small_ones_are_copied),
                cmocka_unit_test(steps_get_room),
                cmocka_unit_test(doubling_is_faulted_in_once),
                cmocka_unit_test(a_large_one_is_never_copied),
                cmocka_unit_test(growth_is_in_whole_huge_pages),
        };

        if (!stook_pages_start())
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
