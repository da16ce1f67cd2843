/*
 * Proves the swing of policy/ledger.h and what purge.c makes of it: memory that was given back in
 * vain is kept while the process goes on swinging, whatever its age. It is forgotten after that,
 * and what exceeds it is given back alone.
 */
#include "pages_env.h"
#include "pages/pages_node.h"
#include "policy/ledger.h"

#define MIB ((size_t)1 << 20)

static void what_swings_is_not_forgotten(void **state)
{
        struct stook_swing swing = { .since_ms = 5000 };

        (void)state;
        stook_swing_turn(&swing, 7000, 1000, 10 * MIB);
        assert_int_equal(stook_swing_bytes(&swing), 0);
        assert_int_equal(stook_swing_forget(&swing, 80 * MIB), 10 * MIB + 1);

        stook_swing_tell_low(&swing, 4 * MIB);
        stook_swing_tell_low(&swing, 6 * MIB);          /* neither the lowest nor the highest */
        stook_swing_tell_high(&swing, 68 * MIB);
        stook_swing_tell_high(&swing, 30 * MIB);
        assert_int_equal(stook_swing_bytes(&swing), 64 * MIB);
        assert_int_equal(stook_swing_forget(&swing, 64 * MIB), 0);
        assert_int_equal(stook_swing_forget(&swing, 65 * MIB), MIB);
        assert_int_equal(stook_swing_forget(&swing, 640 * MIB), 80 * MIB + 1);

        stook_swing_turn(&swing, 7999, 1000, 5 * MIB);  /* not yet */
        stook_swing_turn(&swing, 8000, 1000, 5 * MIB);
        assert_int_equal(stook_swing_bytes(&swing), 64 * MIB);
        stook_swing_turn(&swing, 9000, 1000, 5 * MIB);
        assert_int_equal(stook_swing_bytes(&swing), 0);

        stook_swing_tell_high(&swing, 68 * MIB);
        stook_swing_turn(&swing, 11000, 1000, 5 * MIB); /* after two windows nothing is of lately */
        assert_int_equal(stook_swing_bytes(&swing), 0);
        assert_int_equal(stook_swing_forget(&swing, 0), 0);
}

/* What lies free with content after @mib were taken, written and given in pieces of 256 KiB. */
static size_t kept_after_phase(size_t mib)
{
        static struct stook_span *spans[1024];
        struct stook_pages_stats stats;
        unsigned n = (unsigned)mib * 4;

        for (unsigned i = 0; i < n; i++) {
                spans[i] = stook_span_take(0, 256 << 10, 0);
                assert_non_null(spans[i]);
                memset((void *)spans[i]->start, 1, spans[i]->bytes);
        }
        for (unsigned i = 0; i < n; i++)
                stook_span_give(spans[i]);
        stook_pages_stats(&stats);
        return stats.free_dirty_bytes;
}

static void phases_keep_what_they_missed(void **state)
{
        size_t kept, missed;

        (void)state;
        stook_pages_set_decay_ms(UINT32_MAX / 4);       /* nothing by age, nothing forgotten */
        assert_true(kept_after_phase(64) <= 2 * MIB);   /* freed for the first time: it goes */
        kept = kept_after_phase(64);
        assert_true(kept > 60 * MIB && kept <= 66 * MIB);
        missed = stook_pages_nodes[0].ledger.refault;
        assert_true(missed > 60 * MIB && missed <= 64 * MIB);
        assert_sound();
        stook_pages_nodes[0].ledger.refault = 40 * MIB;  /* the other 24 escaped the first purge */
        assert_true(kept_after_phase(64) >= 64 * MIB);
        stook_pages_nodes[0].ledger.refault = missed;

        assert_true(kept_after_phase(160) <= 2 * MIB);  /* less than half of it was missed */
        assert_true(stook_pages_nodes[0].ledger.refault <= 68 * MIB);
        assert_sound();
        assert_true(resident_bytes() < 24 * MIB);
}

static void make_old(struct stook_pages_node *node, uint32_t decay_times)
{
        uint32_t old = (uint32_t)stook_os_clock_ms() - decay_times * stook_pages_decay_ms() - 3;

        stook_list_for_each_safe(e, &node->aged)
                stook_container_of(e, struct stook_span, list)->dirty_since_ms = old;
}

/* Runs after phases: 64 MiB were missed, and swing again. */
static void what_recurs_does_not_age(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];
        struct stook_swing swing;
        size_t kept;

        (void)state;
        assert_true(node->ledger.refault > 60 * MIB);
        memset(&node->ledger.swing, 0, sizeof(swing));
        assert_true(kept_after_phase(64) > 60 * MIB);
        swing = node->ledger.swing;
        make_old(node, 1);
        stook_pages_age();
        kept = node->bins[STOOK_SET_DIRTY].bytes;
        assert_true(kept > 60 * MIB && kept <= stook_swing_bytes(&swing));

        memset(&node->ledger.swing, 0, sizeof(swing));  /* as after two windows without a change */
        make_old(node, 1);
        stook_pages_age();
        assert_int_equal(node->bins[STOOK_SET_DIRTY].bytes, 0);
        node->ledger.swing = swing;

        assert_true(kept_after_phase(64) > 60 * MIB);   /* no window turns after it */
        make_old(node, 3);
        stook_pages_age();
        assert_int_equal(node->bins[STOOK_SET_DIRTY].bytes, 0);
        assert_sound();
}

/*
 * Steps are a decay time and more apart: what was missed is forgotten by one of them only after
 * two without a swing.
 */
static void steps_forget_what_ended(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];
        size_t missed = stook_swing_bytes(&node->ledger.swing), now;

        (void)state;
        assert_true(missed > 60 * MIB);
        node->ledger.refault = missed;
        stook_pages_set_decay_ms(1);
        node->next_step_ms = (uint32_t)stook_os_clock_ms();
        do {
                usleep(5000);
                stook_pages_step();
                now = __atomic_load_n(&node->ledger.refault, __ATOMIC_RELAXED);
                assert_true(now <= missed);
        } while (now);                                  /* a step that forgets nothing hangs here */
        assert_int_equal(stook_swing_bytes(&node->ledger.swing), 0);
        assert_sound();
}

/* From here on what is told is of what the test does. */
static void begin_windows(struct stook_pages_node *node)
{
        for (unsigned i = 0; i < 2; i++)
                node->ledger.swing.high[i] = node->ledger.swing.low[i] = node->ledger.used;
}

static void resizes_in_place_are_told(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];
        struct stook_span *span = stook_span_take(0, 8 * MIB, 0);

        (void)state;
        begin_windows(node);
        assert_true(stook_span_resize(span, MIB));
        assert_true(stook_span_resize(span, 6 * MIB));
        assert_int_equal(stook_swing_bytes(&node->ledger.swing), 7 * MIB);
        begin_windows(node);
        assert_true(stook_span_resize(span, 8 * MIB));
        assert_true(stook_span_resize(span, MIB));
        assert_int_equal(stook_swing_bytes(&node->ledger.swing), 2 * MIB);
        stook_span_give(span);
        assert_sound();
}

static void own_mappings_are_told(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];
        struct stook_span *span = stook_span_take(0, 48 * MIB, 0);

        (void)state;
        assert_true(span->own_mapping);
        begin_windows(node);
        stook_span_give(span);
        span = stook_span_take(0, 48 * MIB, 0);
        assert_int_equal(stook_swing_bytes(&node->ledger.swing), 48 * MIB);
        begin_windows(node);
        assert_true(stook_span_resize(span, 36 * MIB));
        assert_true(stook_span_resize(span, 48 * MIB));
        assert_int_equal(stook_swing_bytes(&node->ledger.swing), 12 * MIB);
        begin_windows(node);
        assert_true(stook_span_resize(span, 50 * MIB));
        assert_true(stook_span_resize(span, 36 * MIB));
        assert_int_equal(stook_swing_bytes(&node->ledger.swing), 2 * MIB);
        stook_span_give(span);
        assert_sound();
}

/* While pages move, both spans are in use. */
static void moves_are_told(void **state)
{
        struct stook_pages_node *node = &stook_pages_nodes[0];
        struct stook_span *span = stook_span_take(0, 6 * MIB, 0);

        (void)state;
        begin_windows(node);
        span = stook_span_move(span, 8 * MIB);
        assert_non_null(span);
        assert_true(span->own_mapping);
        assert_int_equal(stook_swing_bytes(&node->ledger.swing), 8 * MIB);
        stook_span_give(span);
        assert_sound();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_swings_is_not_forgotten),
                cmocka_unit_test(phases_keep_what_they_missed),
                cmocka_unit_test(what_recurs_does_not_age),
                cmocka_unit_test(steps_forget_what_ended),
                cmocka_unit_test(resizes_in_place_are_told),
                cmocka_unit_test(own_mappings_are_told),
                cmocka_unit_test(moves_are_told),
        };

        if (!stook_pages_start())
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
