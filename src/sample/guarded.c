/*
 * Purpose: see sample.h: guarded samples, which a wrong access stops at.
 *
 *      guard page          | lead |  object  | slack |         guard page
 *
 * The span and its guards are those that hardening has (harden/guard.c): a freed one is closed, and
 * waits. A coin decides whether the object lies at the left end, where an underrun is stopped, or
 * at the right end. There it is aligned as its class is, or to 16; the slack behind it holds a
 * pattern, which its free looks at.
 * Invariants:
 *  I1 at most LIVE_MOST live, each in one page: so much memory is resident for them. Those that
 *     wait have none.
 *  I2 a record is changed by the thread that took its `state` to MAKING, and by the call that won
 *     the free. A waiting record may become another one's while its span waits still: then nothing
 *     is known of that span.
 * Concurrency: any thread, any instruction. M1: the release of `state` pairs with the acquire of a
 *  reader, which may be a handler in another thread: what it reads may be half a free.
 */
#include <string.h>

#include "harden/harden.h"
#include "malloc/malloc.h"
#include "os/os.h"
#include "pages/span.h"
#include "process/process.h"
#include "report/report.h"
#include "sample/sample.h"
#include "sample/sample_inside.h"
#include "stack/stack.h"

#define LIVE_MOST  64
#define RECORDS    256                  /* live ones, those that wait (guard.c), and some */
#define OF_A_STACK 2                    /* live ones, once half of them all are in use */
#define SLACK_MOST 64                   /* bytes of pattern */
#define PATTERN    0xb5

enum state { UNUSED, MAKING, LIVE, WAITING };

struct stook_guarded {
        uint32_t state;                 /* atomic: M1, I2 */
        /* Atomic, relaxed, all of them: a reader may have an older state. */
        uint32_t bytes;                 /* that were asked for */
        const struct stook_span *span;
        uintptr_t object;
        struct stook_report_track allocated, freed;
};

static struct stook_guarded records[RECORDS] STOOK_MOSTLY_UNUSED;

/* Atomic, relaxed. */
static uint32_t next, live;
static uint64_t second, begun;          /* guarded in that second */
uint64_t stook_guarded_a_second;

#define GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

static bool is_due(void)
{
        uint64_t now = stook_os_clock_ms() / 1000, before = GET(second);

        if (now != before && __atomic_compare_exchange_n(&second, &before, now, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                SET(begun, 0);
        return GET(begun) < GET(stook_guarded_a_second);
}

static unsigned count_live(uint32_t stack)
{
        unsigned count = 0;

        for (unsigned i = 0; i < RECORDS; i++)
                count += GET(records[i].state) == LIVE && GET(records[i].allocated.stack) == stack;
        return count;
}

/* The one that was taken longest ago, mostly. */
static struct stook_guarded *take_record(void)
{
        unsigned from = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);

        for (unsigned i = 0; i < RECORDS; i++) {
                struct stook_guarded *record = &records[(from + i) % RECORDS];
                uint32_t state = GET(record->state);

                if ((state == UNUSED || state == WAITING) &&
                    __atomic_compare_exchange_n(&record->state, &state, MAKING, false,
                                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                        return record;
        }
        return NULL;
}

void stook_guarded_drop(struct stook_guarded *guarded)
{
        __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&guarded->state, UNUSED, __ATOMIC_RELEASE);
}

struct stook_guarded *stook_guarded_claim(size_t bytes)
{
        struct stook_guarded *record = NULL;

        if (!GET(stook_guarded_a_second) || !bytes || bytes > stook_os_page_bytes() - 16 ||
            !is_due())
                return NULL;
        if (__atomic_fetch_add(&live, 1, __ATOMIC_RELAXED) < LIVE_MOST)
                record = take_record();
        if (!record)
                __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
        return record;
}

/* What is known of @span's life before: it is another object's now. */
static void forget(const struct stook_span *span)
{
        for (unsigned i = 0; i < RECORDS; i++) {
                uint32_t waiting = WAITING;

                if (GET(records[i].span) == span)
                        __atomic_compare_exchange_n(&records[i].state, &waiting, UNUSED, false,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
}

bool stook_guarded_begin(struct stook_guarded *guarded, struct stook_span *span, size_t bytes,
                         size_t align, const struct stook_profile_life *life)
{
        bool left = stook_os_random() >> 63;
        size_t lead = left ? 0 : span->bytes - ((bytes + align - 1) & ~(align - 1));
        size_t slack = span->bytes - lead - bytes;

        if (!span->use.guarded || (GET(live) > LIVE_MOST / 2 &&
                                   count_live(life->stack) >= OF_A_STACK)) {
                stook_guarded_drop(guarded);
                return false;
        }
        __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&stook_sample_counts.guarded, 1, __ATOMIC_RELAXED);
        span->use.guarded = STOOK_GUARDED_SAMPLE;
        span->use.lead = (uint16_t)lead;
        span->use.slack = (uint16_t)slack;
        memset((char *)span->start + lead + bytes, PATTERN, slack < SLACK_MOST ? slack
                                                                              : SLACK_MOST);
        forget(span);
        SET(guarded->span, span);
        SET(guarded->object, span->start + lead);
        SET(guarded->bytes, (uint32_t)bytes);
        SET(guarded->allocated.stack, life->stack);
        SET(guarded->allocated.thread, stook_process_thread_id());
        SET(guarded->allocated.at_ms, life->born / 1000000);
        __atomic_store_n(&guarded->state, LIVE, __ATOMIC_RELEASE);      /* M1 */
        return true;
}

static struct stook_guarded *record_of(const struct stook_span *span)
{
        for (unsigned i = 0; i < RECORDS; i++)
                if (__atomic_load_n(&records[i].state, __ATOMIC_ACQUIRE) == LIVE &&
                    GET(records[i].span) == span)
                        return &records[i];
        return NULL;
}

static STOOK_COLD void report_slack(const struct stook_guarded *record, const uint8_t *bad)
{
        stook_report_about(&(struct stook_report_about){
                .fault = STOOK_FAULT_OVERRUN, .object = (void *)record->object,
                .object_bytes = record->bytes, .allocated = &record->allocated,
                .freed = &record->freed, .bad = bad, .expected = PATTERN, .found = *bad,
                .detail = "bytes behind the object were written, found when it was freed",
        });
}

void stook_guarded_end(struct stook_span *span)
{
        struct stook_guarded *record = record_of(span);
        const uint8_t *slack = (uint8_t *)span->start + span->bytes - span->use.slack;

        if (!record)
                return;
        SET(record->freed.stack, stook_stack_deep(1));
        SET(record->freed.thread, stook_process_thread_id());
        SET(record->freed.at_ms, stook_os_clock_ms());
        for (size_t i = 0; i < span->use.slack && i < SLACK_MOST; i++)
                if (STOOK_UNLIKELY(slack[i] != PATTERN)) {
                        report_slack(record, &slack[i]);
                        break;
                }
        __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&record->state, WAITING, __ATOMIC_RELEASE);    /* M1 */
}

/* ---- what is known of an address ---- */

/* Does its page, or a guard beside it, have @address, and is the span still what it was? */
static bool is_around(const struct stook_guarded *record, uint32_t state, uintptr_t address)
{
        size_t page = stook_os_page_bytes();
        uintptr_t start = GET(record->object) & ~(page - 1);

        return address - (start - page) < 3 * page &&
               (state == LIVE || stook_guard_closed_at(start) == GET(record->span));
}

static const struct stook_guarded *find(uintptr_t address, uint32_t *state)
{
        for (unsigned i = 0; i < RECORDS; i++) {
                *state = __atomic_load_n(&records[i].state, __ATOMIC_ACQUIRE);  /* M1 */
                if ((*state == LIVE || *state == WAITING) &&
                    is_around(&records[i], *state, address))
                        return &records[i];
        }
        return NULL;
}

bool stook_guarded_describe(uintptr_t address, struct stook_report_about *about)
{
        uint32_t state;
        const struct stook_guarded *record = find(address, &state);

        if (!record)
                return false;
        about->fault = state == WAITING ? STOOK_FAULT_USE_AFTER_FREE
                       : address < GET(record->object) ? STOOK_FAULT_UNDERRUN : STOOK_FAULT_OVERRUN;
        about->object = (const void *)GET(record->object);
        about->object_bytes = GET(record->bytes);
        about->allocated = &record->allocated;
        about->freed = state == WAITING ? &record->freed : NULL;
        return true;
}

bool stook_guarded_open(uintptr_t address)
{
        size_t page = stook_os_page_bytes();
        uint32_t state;

        return find(address, &state) && stook_os_enable((void *)(address & ~(page - 1)), page);
}
