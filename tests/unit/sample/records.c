/*
 * What this proves: which samples are guarded: so many a second, 64 alive, of one stack two once
 * half of those are in use, and of which sizes; where a guarded object lies in its page; that a
 * record which is given up serves again; what is told of an address in the page or in a guard
 * beside it, alive and freed; which bytes behind an object are looked at when it is freed. Time,
 * chance and reports are the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "harden/harden.h"
#include "os/os.h"
#include "process/process.h"
#include "report/report.h"
#include "sample/sample.h"
#include "sample/sample_inside.h"
#include "stack/stack.h"

#define PAGE   4096
#define LIVE   64
#define BYTES  100
#define UNTOLD 0x11                     /* a byte that nobody wrote */

/* ---- fakes ---- */

struct stook_sample_counts stook_sample_counts;
static uint64_t clock_ms = 5000000;
static bool left_end;
static uint32_t thread = 3;
static const struct stook_span *closed;
static uintptr_t enabled;
static bool refuses_access;
static struct stook_report_about said;
static unsigned reports;

uint64_t stook_os_clock_ms(void) { return clock_ms; }
uint64_t stook_os_random(void) { return (uint64_t)left_end << 63; }
size_t stook_os_page_bytes(void) { return PAGE; }
uint32_t stook_process_thread_id(void) { return thread; }
uint32_t stook_stack_deep(unsigned skip) { return (void)skip, 77; }

const struct stook_span *stook_guard_closed_at(uintptr_t address)
{
        return closed && address - closed->start < closed->bytes ? closed : NULL;
}

bool stook_os_enable(void *at, size_t bytes)
{
        assert_int_equal(bytes, PAGE);
        enabled = (uintptr_t)at;
        return !refuses_access;
}

void stook_report_about(const struct stook_report_about *about)
{
        said = *about;
        reports++;
}

/* ---- guarded samples ---- */

static struct sample {
        struct stook_span span;
        char *page;
} samples[2 * LIVE];
/* Each page has a page before and behind it that are no other's. */
static _Alignas(PAGE) char memory[3 * 2 * LIVE][PAGE];

static struct stook_guarded *claim(void)
{
        return stook_guarded_claim(BYTES);
}

static bool begin(unsigned i, struct stook_guarded *guarded, uint32_t stack, size_t bytes,
                  size_t align)
{
        struct sample *s = &samples[i];

        s->page = memory[3 * i + 1];
        memset(s->page, UNTOLD, PAGE);
        s->span = (struct stook_span){ .start = (uintptr_t)s->page, .bytes = PAGE };
        s->span.use.guarded = 1;
        return stook_guarded_begin(guarded, &s->span, bytes, align,
                                   &(struct stook_profile_life){ .stack = stack, .thread = 3,
                                                                 .born = 1234567890123 });
}

static bool get(unsigned i, uint32_t stack)
{
        struct stook_guarded *guarded = claim();

        return guarded && begin(i, guarded, stack, BYTES, 16);
}

static void put(unsigned i)
{
        stook_guarded_end(&samples[i].span);
}

static int in_a_new_second(void **state)
{
        (void)state;
        stook_guarded_a_second = 1000000;
        clock_ms += 1000;
        left_end = refuses_access = false;
        closed = NULL;
        reports = 0;
        return 0;
}

/* ---- how many ---- */

static void so_many_a_second(void **state)
{
        (void)state;
        stook_guarded_a_second = 0;
        assert_null(claim());
        stook_guarded_a_second = 3;
        for (unsigned second = 0; second < 4; second++) {
                clock_ms += 1000 - clock_ms % 1000;
                for (unsigned i = 0; i < 3; i++) {
                        stook_guarded_drop(claim());            /* it is none of the three */
                        assert_true(get(i, i));
                }
                assert_null(claim());
                clock_ms += 999;
                assert_null(claim());
                for (unsigned i = 0; i < 3; i++)
                        put(i);
        }
}

static void so_many_live(void **state)
{
        uint64_t before = stook_sample_counts.guarded;

        (void)state;
        for (unsigned i = 0; i < 3 * LIVE; i++)
                stook_guarded_drop(claim());
        for (unsigned round = 0; round < 3; round++) {
                for (unsigned i = 0; i < LIVE; i++)
                        assert_true(get(i, 100 + i));
                /* Those that are refused are not alive. */
                for (unsigned i = 0; i < 2 * LIVE; i++)
                        assert_null(claim());
                put(LIVE / 2);
                assert_true(get(LIVE / 2, 100 + LIVE));
                assert_null(claim());
                for (unsigned i = 0; i < LIVE; i++)
                        put(i);
        }
        assert_int_equal(stook_sample_counts.guarded - before, 3 * (LIVE + 1));
}

static void so_many_of_a_stack(void **state)
{
        unsigned n = 0;

        (void)state;
        while (get(n, 5))
                n++;
        assert_int_equal(n, LIVE / 2);
        assert_false(get(n, 5));
        assert_true(get(n++, 6));
        assert_true(get(n++, 6));
        assert_false(get(n, 6));
        /* Those that were refused have no place. */
        while (n < LIVE) {
                assert_true(get(n, 1000 + n));
                n++;
        }
        assert_null(claim());
        while (n)
                put(--n);
        /* None of the freed ones counts any more. */
        for (unsigned i = 0; i < LIVE / 2; i++)
                assert_true(get(i, 5));
        for (unsigned i = 0; i < LIVE / 2; i++)
                put(i);
}

static void records_serve_again(void **state)
{
        (void)state;
        for (unsigned i = 0; i < 2000; i++) {
                assert_true(get(0, i));
                put(0);
        }
}

static void sizes(void **state)
{
        struct stook_guarded *guarded;

        (void)state;
        assert_null(stook_guarded_claim(0));
        assert_null(stook_guarded_claim(PAGE - 15));
        guarded = stook_guarded_claim(PAGE - 16);
        assert_non_null(guarded);
        stook_guarded_drop(guarded);
        guarded = stook_guarded_claim(1);
        assert_non_null(guarded);
        /* A span that has no guards. */
        assert_false(stook_guarded_begin(guarded, &(struct stook_span){ .bytes = PAGE }, 1, 16,
                                         &(struct stook_profile_life){ 0 }));
        for (unsigned i = 0; i < LIVE; i++)
                assert_true(get(i, i));
        for (unsigned i = 0; i < LIVE; i++)
                put(i);
}

/* ---- where ---- */

static void assert_lies_at(size_t bytes, size_t align, size_t lead)
{
        const struct stook_span *span = &samples[0].span;
        size_t slack = PAGE - lead - bytes;

        assert_true(begin(0, stook_guarded_claim(bytes), 9, bytes, align));
        assert_int_equal(span->use.guarded, STOOK_GUARDED_SAMPLE);
        assert_int_equal(span->use.lead, lead);
        assert_int_equal(span->use.slack, slack);
        assert_int_equal(stook_sample_usable(span), bytes);
        /* The object's bytes are as they were; so is what lies far behind it. */
        for (size_t i = 0; i < PAGE; i++)
                assert_int_equal(samples[0].page[i] == UNTOLD,
                                 i < lead + bytes || i >= lead + bytes + 64);
        put(0);
        assert_int_equal(reports, 0);
}

static void at_either_end(void **state)
{
        (void)state;
        assert_lies_at(96, 16, PAGE - 96);
        assert_lies_at(97, 16, PAGE - 112);
        assert_lies_at(1, 16, PAGE - 16);
        assert_lies_at(129, 128, PAGE - 256);
        assert_lies_at(PAGE - 16, 16, 16);
        left_end = true;
        assert_lies_at(1, 16, 0);
        assert_lies_at(100, 64, 0);
        assert_lies_at(PAGE - 16, 16, 0);
}

/* ---- what is looked at, and told ---- */

static void assert_slack_is_looked_at(size_t bytes, size_t offset, bool found)
{
        char *object, *at;
        unsigned before = reports;

        assert_true(begin(0, stook_guarded_claim(bytes), 9, bytes, 16));
        object = samples[0].page + samples[0].span.use.lead;
        at = object + bytes + offset;
        *at = 3;
        thread = 8;
        put(0);
        thread = 3;
        assert_int_equal(reports - before, found);
        if (!found)
                return;
        assert_int_equal(said.fault, STOOK_FAULT_OVERRUN);
        assert_ptr_equal(said.object, object);
        assert_int_equal(said.object_bytes, bytes);
        assert_ptr_equal(said.bad, at);
        assert_int_equal(said.found, 3);
        assert_int_not_equal(said.expected, 3);
        assert_int_equal(said.allocated->stack, 9);
        assert_int_equal(said.allocated->thread, 3);
        assert_int_equal(said.allocated->at_ms, 1234567);
        assert_int_equal(said.freed->stack, 77);
        assert_int_equal(said.freed->thread, 8);
        assert_int_equal(said.freed->at_ms, clock_ms);
}

static void bytes_behind_an_object(void **state)
{
        (void)state;
        assert_slack_is_looked_at(97, 0, true);
        assert_slack_is_looked_at(97, 14, true);
        left_end = true;
        assert_slack_is_looked_at(PAGE - 20, 0, true);
        assert_slack_is_looked_at(PAGE - 20, 19, true);
        assert_slack_is_looked_at(97, 63, true);
        assert_slack_is_looked_at(97, 64, false);
}

static void assert_told(uintptr_t address, enum stook_fault fault, bool freed)
{
        struct stook_report_about about = { 0 };

        assert_true(stook_guarded_describe(address, &about));
        if (!freed)
                assert_int_equal(about.fault, fault);
        else
                assert_true(about.fault != STOOK_FAULT_OVERRUN &&
                            about.fault != STOOK_FAULT_UNDERRUN);
        assert_ptr_equal(about.object, samples[0].page + samples[0].span.use.lead);
        assert_int_equal(about.object_bytes, BYTES);
        assert_int_equal(about.allocated->stack, 9);
        assert_int_equal(about.freed != NULL, freed);
        if (freed)
                assert_int_equal(about.freed->stack, 77);
}

static void assert_not_told(uintptr_t address)
{
        struct stook_report_about about = { 0 };

        assert_false(stook_guarded_describe(address, &about));
        assert_false(stook_guarded_open(address));
}

static void around_a_live_one(void **state)
{
        uintptr_t page, object;

        (void)state;
        assert_true(get(0, 9));
        page = samples[0].span.start;
        object = page + samples[0].span.use.lead;
        assert_not_told(page - PAGE - 1);
        assert_told(page - PAGE, STOOK_FAULT_UNDERRUN, false);
        assert_told(object - 1, STOOK_FAULT_UNDERRUN, false);
        assert_told(object + BYTES, STOOK_FAULT_OVERRUN, false);
        assert_told(page + 2 * PAGE - 1, STOOK_FAULT_OVERRUN, false);
        assert_not_told(page + 2 * PAGE);
        assert_true(stook_guarded_open(page + PAGE + 5));
        assert_int_equal(enabled, page + PAGE);
        refuses_access = true;
        assert_false(stook_guarded_open(page - 1));
        assert_int_equal(enabled, page - PAGE);
        put(0);
}

/* A freed one is known as long as its span waits, and is not taken again. */
static void around_a_freed_one(void **state)
{
        uintptr_t page;

        (void)state;
        assert_true(get(0, 9));
        page = samples[0].span.start;
        put(0);
        assert_not_told(page);
        closed = &samples[0].span;
        assert_told(page, 0, true);
        assert_told(page - 1, 0, true);
        assert_true(stook_guarded_open(page));
        closed = &(struct stook_span){ .start = page, .bytes = PAGE };
        assert_not_told(page);
        /* An end that no record knows of. */
        put(0);
        assert_int_equal(reports, 0);
        assert_true(get(0, 9));
        put(0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(so_many_a_second, in_a_new_second),
                cmocka_unit_test_setup(so_many_live, in_a_new_second),
                cmocka_unit_test_setup(so_many_of_a_stack, in_a_new_second),
                cmocka_unit_test_setup(records_serve_again, in_a_new_second),
                cmocka_unit_test_setup(sizes, in_a_new_second),
                cmocka_unit_test_setup(at_either_end, in_a_new_second),
                cmocka_unit_test_setup(bytes_behind_an_object, in_a_new_second),
                cmocka_unit_test_setup(around_a_live_one, in_a_new_second),
                cmocka_unit_test_setup(around_a_freed_one, in_a_new_second),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
