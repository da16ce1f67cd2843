/*
 * Proves pages_fork.c by itself: a prepare that has all locks gives each back in the parent and in
 * the child; one that could not have all holds none; a child without a whole heap has each free
 * span once, the large object that was freed last and pending ones among them. Run with
 * STOOK_TOPOLOGY=nodes=4.
 */
#include "balance.h"
#include "../os/child.h"
#include "base/inject.h"
#include "base/lock.h"

#define KIB   ((size_t)1 << 10)
#define MIB   ((size_t)1 << 20)
#define NODES 4
#define SPANS 12

static bool none_is_locked(void)
{
        for (unsigned n = 0; n < NODES; n++)
                if (stook_lock_is_taken(&stook_pages_nodes[n].lock))
                        return false;
        return true;
}

static bool works(void)
{
        for (unsigned n = 0; n < NODES; n++) {
                struct stook_span *a = stook_span_take(n, 256 * KIB, 0),
                                  *b = stook_span_take(n, 256 * KIB, 0);

                if (!a || !b || a == b || (a->start < b->start + b->bytes &&
                                           b->start < a->start + a->bytes))
                        return false;
                stook_span_give(a);
                stook_span_give(b);
        }
        return none_is_locked() && !stook_pages_validate(print_fault);
}

static void child_of_a_whole_fork(void)
{
        stook_pages_fork_child(true);
        CHECK(none_is_locked());
        CHECK(works());
}

static void whole(void **state)
{
        (void)state;
        assert_true(stook_pages_fork_prepare());
        assert_child_fine(child_of_a_whole_fork);
        stook_pages_fork_parent();
        assert_true(none_is_locked());
        assert_true(works());
}

static void a_prepare_that_fails_holds_nothing(void **state)
{
        (void)state;
        for (unsigned every = 2; every <= NODES; every++) {
                /* One of the next @every locks is refused, so some were had before at some time. */
                for (unsigned i = 0; i < every; i++) {
                        stook_inject.lock_refuse_every = every;
                        if (stook_pages_fork_prepare())
                                stook_pages_fork_parent();
                        stook_inject.lock_refuse_every = 0;
                        assert_true(none_is_locked());
                }
        }
        assert_true(works());
}

static void child_of_a_part(void)
{
        unsigned free_before = 0;

        stook_pages_fork_child(false);
        for (unsigned n = 0; n < NODES; n++)
                for (unsigned set = 0; set < STOOK_SETS; set++)
                        free_before += (unsigned)stook_pages_nodes[n].bins[set].spans;
        CHECK(free_before);
        CHECK(stook_pages_validate(print_fault) == 0);
        CHECK(works());
        assert_balance();
}

/* Freed last, pending, in the bins of several nodes; and the lock is another call's. */
static void not_whole(void **state)
{
        struct stook_span *spans[SPANS];

        (void)state;
        for (unsigned i = 0; i < SPANS; i++)
                assert_non_null(spans[i] = stook_span_take(i % NODES, (i + 1) * 128 * KIB, 0));
        for (unsigned i = 0; i < SPANS; i += 2)
                stook_span_give(spans[i]);
        stook_pages_purge(0);
        stook_span_give(stook_span_take(0, 256 * KIB, 0));
        assert_true(stook_recent_bytes(&stook_pages_nodes[0]) != 0);
        assert_true(stook_lock_take(&stook_pages_nodes[1].lock));
        stook_span_give(spans[1]);
        stook_span_give(spans[5]);
        assert_child_fine(child_of_a_part);
        stook_pages_unlock(&stook_pages_nodes[1]);
        for (unsigned i = 3; i < SPANS; i += i == 3 ? 4 : 2)
                stook_span_give(spans[i]);
        assert_true(works());
        assert_balance();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(whole),
                cmocka_unit_test(a_prepare_that_fails_holds_nothing),
                cmocka_unit_test(not_whole),
        };

        stook_os_topology_detect();
        if (stook_os_node_count() != NODES || !stook_pages_start())
                return 1;
        stook_pages_set_decay_ms(UINT32_MAX / 4);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
