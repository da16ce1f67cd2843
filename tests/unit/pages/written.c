/*
 * Proves what tells whether large objects are written: one that is freed tells, if it had no
 * content when it was taken; what grew last does not, while another thread may still be writing it.
 * Of what the heap grew by, only what was for the object tells, and not if that is its last pages.
 */
#include <pthread.h>

#include "huge_env.h"

#define MIB  ((size_t)1 << 20)
#define EACH (12 * MIB)

static struct stook_density *large = &stook_pages_nodes[0].ledger.density[STOOK_DENSITY_LARGE];

static struct stook_span *take(bool written)
{
        struct stook_span *span = stook_span_take(0, EACH, 0);

        assert_non_null(span);
        span->kind = STOOK_SPAN_LARGE;
        if (written)
                memset((void *)span->start, 7, EACH);
        return span;
}

static void what_is_freed_tells(void **state)
{
        struct stook_span *written = take(true), *untouched = take(false);

        (void)state;
        large->found = STOOK_SPARSE;
        stook_span_give(written);
        assert_int_equal(large->found, STOOK_DENSE);
        stook_span_give(untouched);
        assert_int_equal(large->found, STOOK_SPARSE);
        assert_sound();
}

/* Its pages have what an object before it wrote. */
static void what_had_content_tells_nothing(void **state)
{
        struct stook_span *first = take(true), *second = take(true), *again;

        (void)state;
        stook_span_give(first);
        assert_int_equal(large->found, STOOK_DENSE);
        again = take(false);
        assert_int_equal(again->state, STOOK_SPAN_DIRTY);
        large->found = STOOK_SPARSE;
        stook_span_give(again);
        assert_int_equal(large->found, STOOK_SPARSE);
        stook_span_give(second);
        assert_sound();
}

static void *take_and_write_nothing(void *span)
{
        *(struct stook_span **)span = take(false);
        return NULL;
}

/* Return: what is found when this thread takes one beside one of another thread, or of its own. */
static uint32_t found_beside(bool others, uint32_t found_before, uint32_t age_ms)
{
        struct stook_span *theirs = NULL, *mine;
        uint32_t found;
        pthread_t thread;

        if (others) {
                assert_int_equal(pthread_create(&thread, NULL, take_and_write_nothing, &theirs), 0);
                pthread_join(thread, NULL);
        } else {
                take_and_write_nothing(&theirs);
        }
        assert_true(large->told);
        large->found = found_before;
        large->told_ms = (uint32_t)stook_os_clock_ms() - age_ms;
        mine = take(true);
        found = large->found;
        stook_span_give(mine);
        stook_span_give(theirs);
        stook_pages_purge(0);
        return found;
}

static void what_another_thread_writes_now_tells_nothing(void **state)
{
        (void)state;
        assert_int_equal(found_beside(true, STOOK_DENSITY_UNKNOWN, 0), STOOK_DENSITY_UNKNOWN);
        assert_sound();
}

static void what_it_had_time_to_write_tells(void **state)
{
        (void)state;
        assert_int_equal(found_beside(true, STOOK_DENSE, 3600000), STOOK_SPARSE);
        assert_sound();
}

static void what_a_thread_got_itself_tells(void **state)
{
        (void)state;
        assert_int_equal(found_beside(false, STOOK_DENSE, 0), STOOK_SPARSE);
        assert_sound();
}

/* It comes huge, and may tell: others came so before. */
static struct stook_span *take_huge(size_t bytes)
{
        struct stook_span *span;

        large->found = STOOK_DENSE;
        large->told = 0;
        stook_pages_nodes[0].ledger.huge_large = 7;
        span = stook_span_take(0, bytes, 0);
        assert_non_null(span);
        assert_true(stook_huge_is_advised(span->start + bytes - 1));
        return span;
}

static size_t told_bytes(void)
{
        return (large->told & ((UINT64_C(1) << 28) - 1)) * stook_os_page_bytes();
}

/* What it grew by beyond the object lies free when it is looked at. */
static void what_is_beyond_an_object_tells_nothing(void **state)
{
        struct stook_span *others[4], *span;

        (void)state;
        for (unsigned i = 0; i < 4; i++)
                others[i] = take(true);
        span = take_huge(3 * MIB);
        assert_int_equal(told_bytes(), 3 * MIB);
        stook_span_give(span);
        for (unsigned i = 0; i < 4; i++)
                stook_span_give(others[i]);
        assert_sound();
}

/* An object begins with free memory, and the heap grows by its end. Its size was rounded up. */
static void the_end_of_an_object_tells_nothing(void **state)
{
        struct stook_span *beside = take(true), *span = take(true);

        (void)state;
        stook_span_give(span);
        span = take_huge(EACH + MIB / 2);
        assert_int_equal(told_bytes(), 0);
        stook_span_give(span);
        stook_span_give(beside);
        assert_sound();
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_freed_tells),
                cmocka_unit_test(what_had_content_tells_nothing),
                cmocka_unit_test(what_another_thread_writes_now_tells_nothing),
                cmocka_unit_test(what_it_had_time_to_write_tells),
                cmocka_unit_test(what_a_thread_got_itself_tells),
                cmocka_unit_test(what_is_beyond_an_object_tells_nothing),
                cmocka_unit_test(the_end_of_an_object_tells_nothing),
        };
        int failed = 0;

        if (!has_huge_pages())
                return 77;
        for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++)
                failed |= alone(&tests[i]);
        return failed;
}
