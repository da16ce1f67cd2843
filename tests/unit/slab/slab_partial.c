/*
 * What this proves of slab_partial.c: while another thread holds the lock, what waits on pending,
 * and which thread finds it (P1, P2). With the lock a fill takes from the fullest slabs first, and
 * a shrink sorts them. A shrink waits long for a holder. Where threads meet, few slabs are made: a
 * fill waits for a holder that is away for some ms, and one that is refused the lock keeps one slab
 * from others.
 */
#include "parts.h"

#include "base/inject.h"

/* ---- without the lock ---- */

static void test_locked_free_pends(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(16);
        slab = slab_of(objects[0]);
        lock();
        drain(0, 1);
        expect(slab, 0, 1, CLAIM);
        assert_true(on_pending(slab) && slab->pending == 1);
        drain(1, 3);                                    /* claimed already: not there twice */
        assert_true(on_pending(slab) && slab->pending == 1);
        assert_null(stook_slab_span(slab)->link.next);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        unlock();
        fill(1);                                        /* the next one with the lock sees to it */
        assert_true(stook_pending_stack_empty_racy(&slabs->node[0].pending));
        assert_int_equal(slab->pending, 0);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 1);
        expect(slab, 0, 14, LISTED);
        objects[3] = objects[0];
        drain(3, 13);
        assert_int_equal(fake_spans_taken(), 0);
}

/* Claims of several parts gather in one word: the slab is on the stack once (P1). */
static void test_locked_parts_gather(void **unused)
{
        struct stook_slab *slab, *second;
        size_t n = slabs->objects;

        (void)unused;
        fill(2 * n);
        slab = slab_of(objects[0]);
        second = slab_of(objects[n]);
        lock();
        drain(70, 1);
        drain(n, 1);
        assert_true(on_pending(second));
        drain(0, 1); drain(128, 1);
        assert_true(on_pending(second));
        assert_ptr_equal(stook_slab_span(second)->link.next, &stook_slab_span(slab)->link);
        assert_null(stook_slab_span(slab)->link.next);
        assert_int_equal(slab->pending, 7);
        assert_int_equal(second->pending, 1);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drop();
        assert_int_equal(slab->listed, 7);
        assert_int_equal(second->listed, 1);
        assert_true(!slab->pending && !second->pending);
        drain(1, 69); drain(71, 57); drain(129, n - 129); drain(n + 1, n - 1);
        assert_int_equal(fake_spans_taken(), 0);
}

/* As a nolock call fills: every lock is only tried. */
static size_t fill_tried(size_t n, void **to)
{
        size_t got;

        stook_lock_forbid_waits();
        got = stook_slab_fill(slabs, 0, n, to, 0);
        stook_lock_allow_waits();
        return got;
}

static void test_locked_fill_takes_pending(void **unused)
{
        (void)unused;
        fill(16);
        lock();
        drain(0, 10);
        assert_int_equal(fill_tried(4, objects), 4);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 1);
        assert_false(stook_pending_stack_empty_racy(&slabs->node[0].pending));
        /* the rest of it, then a fresh slab, whose remainder goes there as well */
        assert_int_equal(fill_tried(16, objects + 16), 16);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        assert_int_equal(slabs->node[0].partial, 0);
        assert_int_equal(stook_slab_fill(slabs, 0, 6, objects + 4, 0),
                         6); /* one that waits, in vain */
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        unlock();
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(0, 32);
        assert_int_equal(fake_spans_taken(), 0);
}

/* Some claims of a slab are taken from to the end, the others go back to pending. */
static void test_locked_fill_takes_parts(void **unused)
{
        struct stook_slab *slab;
        size_t n = slabs->objects;
        void *got[4];

        (void)unused;
        fill(n);
        slab = slab_of(objects[0]);
        lock();
        drain(0, 2); drain(64, 3); drain(128, 4);
        assert_int_equal(fill_tried(4, got), 4);
        expect(slab, 0, 0, 0);
        expect(slab, 1, 4, CLAIM);
        assert_true(on_pending(slab) && slab->pending == 6);
        stook_slab_drain(slabs, 4, got);
        assert_int_equal(slab->pending, 7);
        drop();
        assert_int_equal(slab->listed, 7);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(2, 62); drain(67, 61); drain(132, n - 132);
        assert_int_equal(fake_spans_taken(), 0);
}

/* S1: a claim on a listed part is not to be taken from without the lock. */
static void test_locked_listed_stays_pending(void **unused)
{
        struct stook_slab *slab;

        (void)unused;
        fill(3);
        slab = slab_of(objects[0]);
        lock();
        drain(0, 3); /* listed, emptied, surplus: to be released */
        expect(slab, 0, 0xffff, LISTED | CLAIM);
        fill(2);                                        /* may not be taken from: a fresh slab */
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 2);
        expect(slab, 0, 0xffff, LISTED | CLAIM);
        drop();
        assert_int_equal(fake_spans_taken(), 1);
        assert_int_equal(slabs->node[0].partial, 1);
        drain(0, 2);
        assert_int_equal(fake_spans_taken(), 0);
}

/* ---- where threads meet ---- */

static unsigned sleeps;

static void sleep_50_times(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        if (++sleeps == 50)
                unlock();
}

static void wake_none(uint32_t *word) { (void)word; }

/* Its holder is preempted, and other threads are ready to run. */
static void test_away_costs_no_slab(void **unused)
{
        const struct stook_lock_sleep away = { sleep_50_times, wake_none };
        const struct stook_lock_sleep *before = stook_lock_sleep();

        (void)unused;
        fill(16);
        drain(0, 15);
        stook_lock_set_sleep(&away);
        sleeps = 0;
        lock();
        fill(15);
        stook_lock_set_sleep(before);
        assert_int_equal(sleeps, 50);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 1);
        drain(0, 16);
}

static void *other[2];
static unsigned calls;

/* A fill is preempted here, and other threads go on. */
static void others_fill(void *unused)
{
        (void)unused;
        if (calls < 2) {
                calls++;
                assert_int_equal(fill_tried(1, &other[calls - 1]), 1);
        }
}

static void test_in_hands_is_one_slab(void **unused)
{
        (void)unused;
        fill(48);
        lock();
        drain(0, 1); drain(16, 1); drain(32, 1);
        calls = 0;
        __atomic_store_n(&stook_inject.in_hands, others_fill, __ATOMIC_RELAXED);
        assert_int_equal(fill_tried(1, objects), 1);
        __atomic_store_n(&stook_inject.in_hands, NULL, __ATOMIC_RELAXED);
        assert_int_equal(calls, 2);
        assert_int_equal(counted(STOOK_STAT_alloc_slab), 3);
        objects[16] = other[0];
        objects[32] = other[1];
        drop();
        drain(0, 48);
        assert_int_equal(fake_spans_taken(), 0);
}

/* ---- placement ---- */

static void test_fullest_first(void **unused)
{
        struct stook_slab *a, *b, *c;

        (void)unused;
        fill(48);
        a = slab_of(objects[0]);
        b = slab_of(objects[16]);
        c = slab_of(objects[32]);
        drain(0, 8);
        drain(16, 2);
        drain(32, 5);
        /* list: a b c; fullest first: b (2), c (3 of 5), and what it keeps stays where it is */
        fill(5);
        expect(a, 0, 0xff, LISTED);
        expect(b, 0, 0, 0);
        expect(c, 0, 0x18, LISTED);
        assert_ptr_equal(slabs->node[0].list.next, &stook_slab_span(a)->list);
        assert_ptr_equal(slabs->node[0].list.prev, &stook_slab_span(c)->list);
        memcpy(objects + 32, objects, 5 * sizeof(*objects));
        drain(8, 8); drain(18, 14); drain(32, 16);
}

/* The lock's holder drops it while a thread waits for it. */
static void drop_lock(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        unlock();
}

/* A fill that had to wait compares two slabs, not more: others wait for it in turn. */
static void test_busy_compares_two(void **unused)
{
        const struct stook_lock_sleep drops = { drop_lock, wake_none };
        const struct stook_lock_sleep *before = stook_lock_sleep();
        struct stook_slab *a, *b, *c;

        (void)unused;
        fill(48);
        a = slab_of(objects[0]);
        b = slab_of(objects[16]);
        c = slab_of(objects[32]);
        drain(0, 8);
        drain(16, 6);
        drain(32, 2);
        /* list: a b c */
        stook_lock_set_sleep(&drops);
        lock();
        fill(3);
        stook_lock_set_sleep(before);
        expect(a, 0, 0xff, LISTED);
        expect(b, 0, 0x38, LISTED);
        expect(c, 0, 0x3, LISTED);
        drain(0, 3);
        fill(1); /* nothing to wait for: c is the fullest */
        expect(b, 0, 0x3f, LISTED);
        expect(c, 0, 0x2, LISTED);
        drain(0, 1);
        drain(8, 8); drain(22, 10); drain(34, 14);
}

static void test_shrink_sorts(void **unused)
{
        struct stook_list *e;

        (void)unused;
        slabs->min_partial = 4;
        fill(64);
        drain(0, 9); drain(16, 1); drain(32, 4); drain(48, 16);
        assert_int_equal(stook_slabs_shrink(slabs), 3);
        e = slabs->node[0].list.next;
        assert_ptr_equal(e, &stook_slab_span(slab_of(objects[17]))->list);
        assert_ptr_equal(e->next, &stook_slab_span(slab_of(objects[36]))->list);
        assert_ptr_equal(e->next->next, &stook_slab_span(slab_of(objects[9]))->list);
        assert_int_equal(stook_slabs_validate(slabs), 0);
        drain(9, 7); drain(17, 15); drain(36, 12);
}

static unsigned pauses;

static void sleep_in_vain(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        sleeps++;
}

static void drop_at_last(void)
{
        if (++pauses == 50)
                unlock();
}

/* A holder that comes late is waited for, though the first wait marked its lock as stuck. */
static void test_shrink_waits_long(void **unused)
{
        const struct stook_lock_sleep in_vain = { sleep_in_vain, wake_none };
        const struct stook_lock_sleep *before = stook_lock_sleep();

        (void)unused;
        slabs->min_partial = 4;
        fill(32);
        drain(0, 16);
        stook_lock_set_sleep(&in_vain);
        fake_pause = drop_at_last;
        sleeps = pauses = 0;
        lock();
        assert_int_equal(stook_slabs_shrink(slabs), 1);
        assert_int_equal(pauses, 50);
        assert_int_equal(sleeps, 100);
        /* One that never comes is not waited for for ever. */
        drain(16, 16);
        pauses = 50;
        lock();
        assert_int_equal(stook_slabs_shrink(slabs), 1);
        assert_in_range(pauses, 51, 1000);
        stook_lock_set_sleep(before);
        fake_pause = NULL;
        unlock();
        assert_int_equal(stook_slabs_shrink(slabs), 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                ONE(test_locked_free_pends),
                THREE(test_locked_parts_gather),
                ONE(test_locked_fill_takes_pending),
                THREE(test_locked_fill_takes_parts),
                ONE(test_locked_listed_stays_pending),
                ONE(test_away_costs_no_slab),
                ONE(test_in_hands_is_one_slab),
                ONE(test_fullest_first),
                ONE(test_busy_compares_two),
                ONE(test_shrink_sorts),
                ONE(test_shrink_waits_long),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
