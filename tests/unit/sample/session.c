/*
 * What this proves: the terms of a session as a text, each with its bounds; which share of samples
 * a session keeps as its windows of time see more or fewer than their part, and what those stand
 * for. Time and chance are the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/chance.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "profile/profile.h"
#include "sample/sample.h"

#define WHOLE  (UINT64_C(1) << 32)
#define WINDOW 64                       /* ms */
#define STRIDE 100

/* ---- fakes ---- */

struct stook_sampling stook_sampling;
bool stook_malloc_has_guarded;
uint64_t stook_guarded_a_second;

static uint64_t clock_ms = 1000000, random_high;
static bool table_refused;
static struct { uint64_t interval; bool lifetimes; } table;

uint64_t stook_os_clock_ms(void) { return clock_ms; }
uint64_t stook_os_random(void) { return random_high << 32; }

bool stook_profile_table_start(uint64_t interval, bool lifetimes)
{
        table.interval = interval;
        table.lifetimes = lifetimes;
        return !table_refused;
}

/* ---- sessions ---- */

static uint64_t share(void) { return stook_sample_counts.share; }

static void start(uint64_t most)
{
        struct stook_sample_terms terms = { .interval = 1000, .most = most };

        random_high = 0;                /* the coin keeps */
        assert_true(stook_sample_start(&terms));
        clock_ms += 100 * WINDOW - clock_ms % WINDOW;
}

/* Of @n samples how many are kept; each stands for what the share says before it. */
static unsigned keep(unsigned n)
{
        unsigned kept = 0;
        double weight = 0;

        for (unsigned i = 0; i < n; i++)
                if (stook_sample_keep(STRIDE, &weight)) {
                        kept++;
                        assert_true(weight == (double)WHOLE / (double)share() /
                                                      stook_chance_share(STRIDE / 1000.0));
                }
        return kept;
}

static void all_are_kept_without_a_bound(void **state)
{
        struct stook_sample_counts before = stook_sample_counts;

        (void)state;
        start(0);
        random_high = WHOLE - 1;
        assert_int_equal(keep(1000), 1000);
        assert_int_equal(stook_sample_counts.marks - before.marks, 1000);
        assert_int_equal(stook_sample_counts.kept - before.kept, 1000);
        assert_int_equal(share(), WHOLE);
}

static void a_window_halves_at_twice_its_part(void **state)
{
        uint64_t marks, kept;

        (void)state;
        start(1000);                    /* 64 a window */
        keep(128);
        assert_int_equal(share(), WHOLE);
        keep(1);
        assert_int_equal(share(), WHOLE / 2);
        keep(127);                      /* a halved window begins anew: the one above counts */
        assert_int_equal(share(), WHOLE / 2);
        keep(1);
        assert_int_equal(share(), WHOLE / 4);
        marks = stook_sample_counts.marks;
        kept = stook_sample_counts.kept;
        random_high = WHOLE / 4;        /* the coin refuses from the share on */
        assert_int_equal(keep(10), 0);
        random_high = WHOLE / 4 - 1;
        assert_int_equal(keep(10), 10);
        assert_int_equal(stook_sample_counts.marks - marks, 20);
        assert_int_equal(stook_sample_counts.kept - kept, 10);
}

/* A window that saw @n, one below the share of 1/4. What becomes of the share with the next. */
static uint64_t after_a_window_of(unsigned n)
{
        start(1000);
        keep(128 + 1 + 127 + 1);
        assert_int_equal(share(), WHOLE / 4);
        keep(n - 1);                    /* one was seen since it was halved */
        clock_ms += WINDOW;
        keep(1);
        return share();
}

static void the_next_window_has_another_share(void **state)
{
        (void)state;
        assert_int_equal(after_a_window_of(65), WHOLE / 8);
        assert_int_equal(after_a_window_of(64), WHOLE / 4);
        assert_int_equal(after_a_window_of(48), WHOLE / 4);
        assert_int_equal(after_a_window_of(47), WHOLE / 4 + WHOLE / 16);
        assert_int_equal(after_a_window_of(1), WHOLE / 4 + WHOLE / 16);
        /* The window after it begins with none seen. */
        keep(127);
        assert_int_equal(share(), WHOLE / 4 + WHOLE / 16);
        for (unsigned i = 0; i < 20; i++) {
                clock_ms += WINDOW;
                random_high = WHOLE - 1;
                stook_sample_keep(STRIDE, &(double){ 0 });
        }
        assert_int_equal(share(), WHOLE);
}

static void a_share_has_its_least(void **state)
{
        (void)state;
        start(1);                       /* one, not all */
        assert_int_equal(keep(1), 1);
        keep(2);
        assert_int_equal(share(), WHOLE / 2);
        keep(10000);
        assert_int_equal(share(), WHOLE >> 24);
        /* At the end of a window, too: three seen of one. */
        clock_ms += WINDOW;
        keep(2);
        clock_ms += WINDOW;
        keep(1);
        assert_int_equal(share(), WHOLE >> 24);
        start(1);
        assert_int_equal(share(), WHOLE);
}

/* What the last session saw is not this one's, though the window is the same. */
static void a_session_begins_anew(void **state)
{
        struct stook_sample_terms terms = { .interval = 1000, .most = 1000 };

        (void)state;
        start(1000);
        keep(127);
        assert_true(stook_sample_start(&terms));
        keep(128);
        assert_int_equal(share(), WHOLE);
        keep(1);
        assert_int_equal(share(), WHOLE / 2);
}

static void sessions_have_numbers(void **state)
{
        struct stook_sample_terms terms = { .interval = 4096, .most = 7, .guard = 3,
                                            .lifetimes = true };
        uint64_t before = 0, all = 0;

        (void)state;
        stook_malloc_has_guarded = false;
        for (unsigned i = 0; i < 21; i++) {
                assert_true(stook_sample_start(&terms));
                assert_int_equal(stook_sampling.interval, 4096);
                assert_true(table.interval == 4096 && table.lifetimes);
                assert_int_equal(stook_guarded_a_second, 3);
                assert_true(stook_malloc_has_guarded);
                assert_int_not_equal(stook_sampling.session, before);
                before = stook_sampling.session;
                assert_in_range(before >> STOOK_WORD_SESSION_SHIFT, 1, 7);
                all |= UINT64_C(1) << (before >> STOOK_WORD_SESSION_SHIFT);
        }
        assert_int_equal(all, 0xfe);
        /* Objects that were guarded may be there still. */
        terms.guard = 0;
        terms.lifetimes = false;
        assert_true(stook_sample_start(&terms));
        assert_true(stook_malloc_has_guarded && !stook_guarded_a_second && !table.lifetimes);
        before = stook_sampling.session;
        table_refused = true;
        terms.interval = 8192;
        assert_false(stook_sample_start(&terms));
        table_refused = false;
        assert_true(stook_sampling.session == before && stook_sampling.interval == 4096);
        stook_sample_stop();
        assert_int_equal(stook_sampling.session, 0);
}

/* ---- terms ---- */

static struct stook_sample_terms read_terms(const char *text)
{
        struct stook_sample_terms terms = stook_sample_terms_usual();

        if (!stook_sample_read_terms(text, &terms))
                fail_msg("refused: %s", text);
        return terms;
}

static void terms_are_read(void **state)
{
        struct stook_sample_terms t = read_terms("on");

        (void)state;
        assert_true(t.interval == 2 << 20 && t.most == 200 && !t.guard && !t.lifetimes && !t.off &&
                    !t.signal && !t.file);
        t = read_terms("off,guard,lifetimes,signal=64,file=a,b");
        assert_true(t.off && t.guard == 10 && t.lifetimes && t.signal == 64);
        assert_string_equal(t.file, "a,b");
        t = read_terms("512K,most=3K,guard=2K");
        assert_true(t.interval == 512 << 10 && t.most == 3 << 10 && t.guard == 2 << 10 && !t.off);
        assert_int_equal(read_terms("guard=1000000").guard, 1000000);
        assert_int_equal(read_terms("2M").interval, 2 << 20);
        assert_int_equal(read_terms("interval=1").interval, 1);
        assert_int_equal(read_terms("1048576M").interval, UINT64_C(1) << 40);
        assert_int_equal(read_terms("most=1000000,interval=1099511627776").most, 1000000);
}

static void other_texts_are_refused(void **state)
{
        static const char *const texts[] = {
                "", "x", "onx", "on,", "on,on", "on,off", "on 1", "0", "1G", "1048577M", "1k",
                "1099511627777", "18446744073709551617", "interval=", "interval=0", "most=0",
                "most=1000001", "most=977M", "guard=0", "guard=", "guard=1000001", "signal=0",
                "signal=65", "lifetimes=1", "file=", "K", "on;most=1",
        };

        (void)state;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                struct stook_sample_terms terms = stook_sample_terms_usual();

                if (stook_sample_read_terms(texts[i], &terms))
                        fail_msg("read: %s", texts[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_are_kept_without_a_bound),
                cmocka_unit_test(a_window_halves_at_twice_its_part),
                cmocka_unit_test(the_next_window_has_another_share),
                cmocka_unit_test(a_share_has_its_least),
                cmocka_unit_test(a_session_begins_anew),
                cmocka_unit_test(sessions_have_numbers),
                cmocka_unit_test(terms_are_read),
                cmocka_unit_test(other_texts_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
