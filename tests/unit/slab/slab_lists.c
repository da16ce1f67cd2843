/*
 * What this proves of slab_lists.c: when a node's lists are divided, and when not. Which list a
 * fill takes from, and which one a slab goes to (L2). A claim finds its slab's list although the
 * slab went over meanwhile. Reserved slabs stay, wherever they are listed (L3). Shrinks, walks, a
 * fork's child and validation see all lists.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "base/inject.h"
#include "parts.h"

#define LISTS 4

static struct stook_slabs_node *list(unsigned n)
{
        return stook_slabs_list(&slabs->node[0], n);
}

static void own(unsigned n) { stook_inject.slab_list_plus_1 = n + 1; }

static int setup(void **unused)
{
        setup_one(unused);
        stook_slabs_start(LISTS * STOOK_SLAB_LIST_CPUS);
        stook_slabs_divide(slabs, &slabs->node[0]);
        assert_int_equal(stook_slabs_lists(&slabs->node[0]), LISTS);
        own(0);
        return 0;
}

static int end(void **unused)
{
        stook_inject.slab_list_plus_1 = 0;
        stook_slabs_start(1);
        return teardown(unused);
}

static uint32_t number_of(const void *object)
{
        return stook_slab_span(slab_of(object))->list_number;
}

/* ---- division ---- */

static void drop_lock(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        unlock();
}

static void wake_none(uint32_t *word) { (void)word; }

/* So many fills find the lock taken, or free. Return: lists. */
static unsigned meet(unsigned fills, bool busy)
{
        const struct stook_lock_sleep drops = { drop_lock, wake_none };
        const struct stook_lock_sleep *before = stook_lock_sleep();

        stook_lock_set_sleep(&drops);
        for (unsigned i = 0; i < fills; i++) {
                if (busy)
                        lock();
                fill(1);
                unlock();
                drain(0, 1);
        }
        stook_lock_set_sleep(before);
        return stook_slabs_lists(&slabs->node[0]);
}

static void test_divided_where_fills_meet(void **unused)
{
        void *kept[1];

        (void)unused;
        fill(2);
        kept[0] = objects[1];
        drain(0, 1);                            /* a slab stays on the list */
        stook_slabs_start(2 * STOOK_SLAB_LIST_CPUS - 1);
        assert_int_equal(meet(300, true), 1);   /* too few CPUs */
        stook_slabs_start(1000 * STOOK_SLAB_LIST_CPUS);
        assert_int_equal(meet(2000, false), 1);
        assert_int_equal(meet(100, true), 1);
        assert_int_equal(meet(2000, false), 1); /* forgotten */
        assert_int_equal(meet(100, true), 1);
        assert_int_equal(meet(100, true), 16);  /* bounded */
        stook_slab_drain(slabs, 1, kept);
        stook_slabs_start(1);
}

/* ---- which list ---- */

static void test_own_list_first(void **unused)
{
        (void)unused;
        fill(16);
        assert_int_equal(number_of(objects[0]), 0);
        own(2);
        assert_int_equal(stook_slab_fill(slabs, 0, 16, objects + 16, STOOK_FILL_ASCENDING), 16);
        assert_int_equal(number_of(objects[16]), 2);
        drain(0, 4);
        drain(16, 4);
        assert_true(list(0)->partial == 1 && list(2)->partial == 1);
        assert_int_equal(stook_slabs_partial(slabs, 0), 2);
        assert_int_equal(stook_slab_fill(slabs, 0, 4, objects + 16, STOOK_FILL_ASCENDING), 4);
        assert_true(list(0)->partial == 1 && list(2)->partial == 0);
        /* then the others, before a new slab; what it uses up goes over */
        assert_int_equal(stook_slab_fill(slabs, 0, 4, objects, STOOK_FILL_ASCENDING), 4);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        assert_int_equal(number_of(objects[0]), 2);
        own(1);
        drain(0, 4);
        assert_int_equal(list(2)->partial, 1);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(4, 28);
}

/* Of several parts some are still listed: the slab stays. */
static void test_part_keeps_slab(void **unused)
{
        struct stook_slabs *one = slabs;
        size_t n;

        setup_three(unused);
        stook_slabs_divide(slabs, &slabs->node[0]);
        n = slabs->objects;
        fill(n);
        drain(0, 1);
        drain(128, 1);
        own(1);
        fill(1);
        assert_int_equal(number_of(objects[0]), 0);
        assert_int_equal(stook_slab_fill(slabs, 0, 1, objects + 128, 0), 1);
        assert_int_equal(number_of(objects[0]), 1);
        drain(0, n);
        fake_source_end(slabs);
        slabs = one;
}

/* ---- claims whose slab went over ---- */

/* Claimed while another thread has the lock of list 0; that thread lets the slab go over to 2. */
static struct stook_slab *gone_over(void)
{
        struct stook_slab *slab;

        fill(16);
        slab = slab_of(objects[0]);
        lock();
        drain(0, 3);
        assert_true(on_pending(slab));
        stook_slab_span(slab)->list_number = 2;
        return slab;
}

static void test_pending_is_handed_on(void **unused)
{
        struct stook_slab *slab = gone_over();

        (void)unused;
        drop();
        expect(slab, 0, 7, LISTED);
        assert_true(list(0)->partial == 0 && list(2)->partial == 1 && !slab->pending);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(3, 13);
}

static void test_pending_waits_at_other(void **unused)
{
        struct stook_slab *slab = gone_over();

        (void)unused;
        list(2)->lock.word = 1;
        drop();
        expect(slab, 0, 7, CLAIM);
        assert_true(!on_pending(slab) && slab->pending == 1);
        assert_ptr_equal(list(2)->pending.first, &stook_slab_span(slab)->link);
        stook_self->locks_held++;
        stook_slab_unhold(&(struct stook_slab_hold){ .slabs = slabs, .node = list(2) });
        expect(slab, 0, 7, LISTED);
        assert_int_equal(list(2)->partial, 1);
        drain(3, 13);
}

/* A drain that gathered its claim for list 0. */
static void test_claim_for_old_list(void **unused)
{
        struct stook_slab *slab;
        stook_part_key key;
        uint64_t mask = 7;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        key = stook_part_key_of(slab, 0);
        assert_int_equal(stook_part_free(slabs, slab, 0, &mask, objects[0]), STOOK_FREED_CLAIMED);
        stook_slab_span(slab)->list_number = 3;
        stook_lock_forbid_waits();
        stook_slab_settle_keys(slabs, list(0), &key, 1);
        stook_lock_allow_waits();
        assert_true(list(0)->partial == 0 && list(3)->partial == 1);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(3, 13);
}

/* A thread that pushes at the slab's old list was stopped before it had that list's lock. */
static void test_shrink_settles_old_lists(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        slabs->min_partial = 2;
        fill(16);
        slab = slab_of(objects[0]);
        lock();
        drain(0, 16);
        assert_true(on_pending(slab));
        stook_pending_stack_push(&list(3)->pending,
                                 stook_pending_stack_take_all(&list(0)->pending));
        unlock();
        assert_int_equal(stook_slabs_shrink(slabs), 0);
}

/* ---- what is kept ---- */

/* A slab with all objects out for each list, then all come back. */
static void spread(unsigned each)
{
        for (unsigned n = 0; n < LISTS; n++) {
                own(n);
                assert_int_equal(stook_slab_fill(slabs, 0, each * 16, objects + n * each * 16,
                                                 STOOK_FILL_ASCENDING), each * 16);
        }
        drain(0, LISTS * each * 16);
}

static void test_kept_by_list(void **unused)
{
        (void)unused;
        slabs->min_partial = 2;
        spread(4);
        for (unsigned n = 0; n < LISTS; n++)
                assert_int_equal(list(n)->partial, 2);
        stook_slabs_give_kept(slabs, 0);
        assert_int_equal(stook_slabs_count(slabs), 0);
        spread(1);
        assert_int_equal(stook_slabs_count(slabs), LISTS);
        assert_int_equal(stook_slabs_shrink(slabs), 0);
}

static void test_reserved_stay(void **unused)
{
        (void)unused;
        assert_int_equal(stook_slabs_reserve(slabs, 0, 9 * 16), 0);
        assert_int_equal(list(0)->partial, 9);
        spread(4);
        assert_in_range(stook_slabs_count(slabs), 9, 9 + LISTS - 1);
        assert_int_equal(stook_slabs_partial(slabs, 0), stook_slabs_count(slabs));
        assert_int_equal(stook_slabs_reserve(slabs, 0, 9 * 16), 0); /* there are, on all lists */
        assert_in_range(stook_slabs_count(slabs), 9, 9 + LISTS - 1);
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
        spread(3);
        assert_int_equal(stook_slabs_reserve(slabs, 0, 9 * 16), 0);
        fake_unmake = give_kept_once;
        assert_int_equal(stook_slabs_shrink(slabs), 9);
        assert_null(fake_unmake);
        assert_int_equal(slabs->node[0].going, 0);

        /* Frees, which count what is listed, beside a thread that counts all slabs. */
        fill(3 * 16);
        own(1);
        for (unsigned n = 3; n < 12; n++)
                assert_int_equal(stook_slab_fill(slabs, 0, 16, objects + n * 16, 0), 16);
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
        spread(2);
        stook_slabs_give_kept(slabs, 0);
        assert_int_equal(stook_slabs_shrink(slabs), LISTS * 2);
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

/* Of a cache with a destructor: as many slabs as are not reserved, wherever they are listed. */
static void test_reserved_are_not_destructed(void **unused)
{
        struct stook_slabs *one = slabs;

        (void)unused;
        slabs = fake_source(3, 4096, 8, false, construct, NULL);
        slabs->dtor = count_destructed;
        slabs->min_partial = INT32_MAX;
        stook_slabs_divide(slabs, &slabs->node[0]);
        spread(2);
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

/* ---- all lists ---- */

static void test_validate_finds_wrong_list(void **unused)
{
        struct stook_slab *slab;
        unsigned reports;

        (void)unused;
        own(1);
        fill(8);
        slab = slab_of(objects[0]);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        stook_slab_span(slab)->list_number = 0;
        assert_int_not_equal(stook_slabs_validate(slabs), 0);
        stook_slab_span(slab)->list_number = LISTS;
        assert_int_not_equal(stook_slabs_validate(slabs), 0);
        fake_report(&reports);
        stook_slab_span(slab)->list_number = 1;
        /* One walk for all lists. */
        fake_walks = 0;
        assert_int_equal(stook_slabs_validate(slabs), 0);
        assert_int_equal(fake_walks, 1);
        drain(0, 8);
}

static void test_fork(void **unused)
{
        (void)unused;
        for (int whole = 0; whole < 2; whole++) {
                int status;
                pid_t pid;

                own(3);
                fill(24);
                drain(0, 4);
                if (whole)
                        assert_true(stook_slabs_fork_prepare(slabs));
                else
                        list(3)->lock.word = 1;
                pid = fork();
                assert_true(pid >= 0);
                if (!pid) {
                        stook_slabs_fork_child(slabs, whole);
                        stook_slabs_fork_mend(whole);
                        if (whole)
                                stook_slabs_fork_parent(slabs);
                        if (list(3)->lock.word || list(3)->partial != 2 ||
                            stook_slabs_validate(slabs))
                                _exit(1);
                        _exit(stook_slab_fill(slabs, 0, 12, objects, 0) == 12 ? 0 : 2);
                }
                if (whole)
                        stook_slabs_fork_parent(slabs);
                else
                        list(3)->lock.word = 0;
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFEXITED(status));
                assert_int_equal(WEXITSTATUS(status), 0);
                drain(4, 20);
        }
        /* A prepare that one list refuses holds none. What came to pending meanwhile is settled. */
        own(0);
        fill(16);
        lock();
        drain(0, 16);
        unlock();
        assert_int_equal(list(0)->partial, 0);
        list(2)->lock.word = 1;
        assert_false(stook_slabs_fork_prepare(slabs));
        assert_true(stook_pending_stack_empty_racy(&list(0)->pending));
        assert_int_equal(list(0)->lock.word, 0);
        assert_int_equal(list(1)->lock.word, 0);
        list(2)->lock.word = 0;
        assert_int_equal(stook_self->locks_held, 0);
}

#define DIVIDED(name) cmocka_unit_test_setup_teardown(name, setup, end)

int main(void)
{
        static const struct CMUnitTest tests[] = {
                ONE(test_divided_where_fills_meet),
                DIVIDED(test_own_list_first),
                DIVIDED(test_part_keeps_slab),
                DIVIDED(test_pending_is_handed_on),
                DIVIDED(test_pending_waits_at_other),
                DIVIDED(test_claim_for_old_list),
                DIVIDED(test_shrink_settles_old_lists),
                DIVIDED(test_kept_by_list),
                DIVIDED(test_reserved_stay),
                DIVIDED(test_reserved_stay_beside_another_release),
                DIVIDED(test_no_free_releases_during_a_walk),
                DIVIDED(test_reserved_are_not_destructed),
                DIVIDED(test_validate_finds_wrong_list),
                DIVIDED(test_fork),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
