/*
 * What this proves of slab_shrink.c: which empty slabs are kept, and which go.
 * Reserved slabs stay, also where two threads release slabs at once (H1), and their objects are not
 * destructed. A shrink settles what is pending.
 */
#include "parts.h"
#include "special/special.h"

/* Slabs with all objects out, then all objects come back. */
static void spread(unsigned n)
{
        fill(n * 16);
        drain(0, n * 16);
}

static void test_kept(void **unused)
{
        (void)unused;
        slabs->min_partial = 2;
        spread(4);
        assert_int_equal(slabs->node[0].partial, 2);
        stook_slabs_give_kept(slabs, 0);
        assert_int_equal(stook_slabs_count(slabs), 0);
        spread(1);
        assert_int_equal(stook_slabs_count(slabs), 1);
        assert_int_equal(stook_slabs_shrink(slabs), 0);
}

static void test_reserved_stay(void **unused)
{
        (void)unused;
        assert_int_equal(stook_slabs_reserve(slabs, 0, 9 * 16), 0);
        assert_int_equal(stook_slabs_count(slabs), 9);
        spread(16);
        assert_int_equal(stook_slabs_count(slabs), 9);
        assert_int_equal(stook_slabs_partial(slabs, 0), 9);
        assert_int_equal(stook_slabs_reserve(slabs, 0, 9 * 16), 0); /* there are */
        assert_int_equal(stook_slabs_count(slabs), 9);
        assert_int_equal(stook_slabs_shrink(slabs), 9);
        assert_int_equal(stook_slabs_reserve(slabs, 0, 0), 0);
}

/* What another thread does while slabs that were released leave. */
static void give_kept_once(void)
{
        fake_unmake = NULL;
        stook_slabs_give_kept(slabs, 0);
}

static void drain_once(void)
{
        fake_unmake = NULL;
        drain(0, 3 * 16);
}

static void test_reserved_stay_beside_another_release(void **unused)
{
        (void)unused;
        slabs->min_partial = 16;
        spread(12);
        assert_int_equal(stook_slabs_reserve(slabs, 0, 9 * 16), 0);
        fake_unmake = give_kept_once;
        assert_int_equal(stook_slabs_shrink(slabs), 9);
        assert_null(fake_unmake);
        assert_int_equal(slabs->node[0].going, 0);

        /* Frees, which count what is listed, beside a thread that counts all slabs. */
        fill(12 * 16);
        slabs->min_partial = 0;
        drain(3 * 16, 9 * 16);
        assert_int_equal(stook_slabs_count(slabs), 12);
        fake_unmake = drain_once;
        stook_slabs_give_kept(slabs, 0);
        assert_null(fake_unmake);
        assert_int_equal(stook_slabs_count(slabs), 9);
        assert_int_equal(stook_slabs_shrink(slabs), 9);
        assert_int_equal(slabs->node[0].going, 0);
        assert_int_equal(stook_slabs_reserve(slabs, 0, 0), 0);
}

/* As a walk over all objects does it, from which frees are called (walk/walk.c). */
static void test_no_free_releases_during_a_walk(void **unused)
{
        (void)unused;
        slabs->reserved = UINT32_MAX;
        spread(8);
        stook_slabs_give_kept(slabs, 0);
        assert_int_equal(stook_slabs_shrink(slabs), 8);
        slabs->reserved = 0;
        assert_int_equal(stook_slabs_shrink(slabs), 0);
}

static size_t destructed;

static void construct(void *object, void *data) { (void)object, (void)data; }

static void count_destructed(void *object, void *data)
{
        (void)object, (void)data;
        destructed++;
}

/* Of a cache with a destructor: as many slabs as are not reserved. */
static void test_reserved_are_not_destructed(void **unused)
{
        struct stook_slabs *one = slabs;

        (void)unused;
        slabs = fake_source(3, 4096, 8, false, construct, NULL);
        slabs->dtor = count_destructed;
        slabs->special = &(struct stook_slabs_special){
                .shrink = stook_special_destruct_empty, .may_go = stook_special_may_go };
        slabs->is_special = true;
        slabs->min_partial = INT32_MAX;
        spread(8);
        assert_int_equal(stook_slabs_reserve(slabs, 0, 6 * 16), 0);
        assert_int_equal(stook_slabs_count(slabs), 8);
        destructed = 0;
        assert_int_equal(stook_slabs_shrink(slabs), 6);
        assert_int_equal(destructed, 2 * 16);
        assert_int_equal(stook_slabs_reserve(slabs, 0, 0), 0);
        fake_source_end(slabs);
        assert_int_equal(destructed, 8 * 16);
        slabs = one;
}

/* A thread that pushed was stopped before it tried the lock. */
static void test_shrink_settles_pending(void **unused)
{
        (void)unused;
        slabs->min_partial = 2;
        fill(16);
        lock();
        drain(0, 16);
        assert_false(stook_pending_stack_empty_racy(&slabs->node[0].pending));
        unlock();
        assert_int_equal(stook_slabs_shrink(slabs), 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                ONE(test_kept),
                ONE(test_reserved_stay),
                ONE(test_reserved_stay_beside_another_release),
                ONE(test_no_free_releases_during_a_walk),
                ONE(test_reserved_are_not_destructed),
                ONE(test_shrink_settles_pending),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
