/*
 * Purpose: reports about misuse, to stderr and to the program's own hook; then an abort, or not.
 * Place: called by every layer that notices something; calls os (write, abort).
 * Concurrency: any thread, any instruction. The hook and its data are one pair (base/pair.h), so
 *  that a call never gets the data of another hook.
 * The first line is made on the stack of the call. What follows it needs memory, which
 * report_tell.c maps for each report: one that gets none has its first line only.
 */
#include "base/lock.h"
#include "base/pair.h"
#include "os/os.h"
#include "report/report.h"
#include "report/report_inside.h"

static struct stook_pair hook;          /* function, data */
uint32_t stook_report_policy;
static uint64_t reports;                /* atomic */

static const char *const words[] = {
        [STOOK_FAULT_FOREIGN] = "foreign pointer",
        [STOOK_FAULT_NOT_LIVE] = "pointer to no live object",
        [STOOK_FAULT_INTERIOR] = "interior pointer",
        [STOOK_FAULT_WRONG_CACHE] = "wrong cache",
        [STOOK_FAULT_DOUBLE_FREE] = "double free",
        [STOOK_FAULT_OBJECTS_LEFT] = "objects left",
        [STOOK_FAULT_CORRUPT] = "corrupted",
        [STOOK_FAULT_RCU] = "endless wait",
        [STOOK_FAULT_DEADLOCK] = "deadlock",
        [STOOK_FAULT_OVERRUN] = "overrun",
        [STOOK_FAULT_UNDERRUN] = "underrun",
        [STOOK_FAULT_WRITE_AFTER_FREE] = "write after free",
        [STOOK_FAULT_WRONG_SIZE] = "wrong size",
        [STOOK_FAULT_LEAK] = "leak",
        [STOOK_FAULT_INJECTED] = "allocation made to fail",
        [STOOK_FAULT_MISMATCH] = "mismatched free",
        [STOOK_FAULT_USE_AFTER_FREE] = "use after free",
};

const char *stook_report_fault_words(enum stook_fault fault)
{
        return words[fault];
}

static void put_place(struct stook_text *text, const struct stook_report_about *about)
{
        const char *name = about->heap_name ? about->heap_name : about->cache_name;

        if (!name && !about->slab)
                return;
        stook_text_words(text, " (");
        if (name) {
                stook_text_words(text, about->heap_name ? "heap " : "cache ");
                stook_text_plain(text, name);
        }
        if (about->slab) {
                stook_text_words(text, name ? ", slab " : "slab ");
                stook_text_pointer(text, about->slab);
                stook_text_words(text, " offset ");
                stook_text_number(text, about->offset, 10);
        }
        stook_text_put(text, ')');
}

static void put_first_line(struct stook_text *text, const struct stook_report_about *about)
{
        stook_text_words(text, "stook: ");
        stook_text_words(text, words[about->fault]);
        if (about->object) {
                stook_text_words(text, ": pointer ");
                stook_text_pointer(text, about->object);
        }
        put_place(text, about);
        if (about->detail) {
                stook_text_words(text, ": ");
                stook_text_words(text, about->detail);
        }
}

static void call_hook(const struct stook_report_about *about, const char *line)
{
        struct stook_report report = {
                .report_size = sizeof(report), .fault = about->fault, .text = line,
                .object = about->object, .cache_name = about->cache_name,
                .heap_name = about->heap_name, .slab = about->slab,
                .offset = about->offset,
        };
        struct stook_pair call = stook_pair_read(&hook);

        /* Exchanging the pair for itself reads it whole. */
        while (!stook_pair_cas(&hook, &call, call))
                ;
        if (call.lo) {
                /* The program's: it may allocate, or jump. */
                uint32_t held = stook_lock_pin();

                ((void (*)(const struct stook_report *, void *))call.lo)(&report, (void *)call.hi);
                stook_lock_unpin(held);
        }
}

static void tell(const struct stook_report_about *about, bool found)
{
        /* A cache's name is at most 63 bytes, so is twice that of details. */
        char line[320];
        struct stook_text text = { .buffer = line, .room = sizeof(line) - 2 };

        __atomic_fetch_add(&reports, 1, __ATOMIC_RELAXED);
        put_first_line(&text, about);
        line[text.bytes] = '\n';
        stook_report_tell(about, line, text.bytes + 1, found);
        line[text.bytes] = '\0';
        call_hook(about, line);
}

STOOK_COLD void stook_report_about_found(const struct stook_report_about *about)
{
        tell(about, true);
}

STOOK_COLD void stook_report_event(const struct stook_report_about *about)
{
        tell(about, false);
}

STOOK_COLD void stook_report_about(const struct stook_report_about *about)
{
        tell(about, false);
        if (!stook_report_goes_on())
                stook_os_abort();
}

#define ABOUT \
        { .fault = fault, .object = object, .cache_name = cache_name, .slab = slab, \
          .offset = offset, .detail = detail }

STOOK_COLD void stook_report_found(enum stook_fault fault, const void *object,
                                   const char *cache_name, const void *slab, size_t offset,
                                   const char *detail)
{
        stook_report_about_found(&(struct stook_report_about)ABOUT);
}

STOOK_COLD void stook_report_fault(enum stook_fault fault, const void *object,
                                   const char *cache_name, const void *slab, size_t offset,
                                   const char *detail)
{
        stook_report_about(&(struct stook_report_about)ABOUT);
}

bool stook_report_size_is(size_t said, size_t bytes, const char *field)
{
        static const char format[] = "stook: %s is %u, not the size of its structure, %u\n";
        char text[128];

        if (said == bytes)
                return true;
        stook_os_write(text, stook_report_format(text, sizeof(text), format, field, (uint64_t)said,
                                                 (uint64_t)bytes));
        return false;
}

STOOK_COLD void stook_report_impossible(const char *label)
{
        char text[128];
        size_t bytes = stook_report_format(text, sizeof(text),
                                           "stook: internal fault: %s does not hold\n", label);

        stook_os_write(text, bytes);
        stook_os_abort();
}

#if STOOK_LOCK_RANKS
STOOK_COLD void stook_report_rank(const char *held, const char *wanted)
{
        char text[128];
        size_t bytes = stook_report_format(text, sizeof(text),
                                           "stook: lock order: waits for %s while it holds %s\n",
                                           wanted, held);

        stook_os_write(text, bytes);
        stook_os_abort();
}
#endif

void stook_report_set_policy(enum stook_on_fault to)
{
        __atomic_store_n(&stook_report_policy, to, __ATOMIC_RELAXED);
}

uint64_t stook_report_count(void)
{
        return __atomic_load_n(&reports, __ATOMIC_RELAXED);
}

STOOK_API void stook_on_report(void (*call)(const struct stook_report *report, void *data),
                               void *data)
{
        struct stook_pair old = stook_pair_read(&hook), new = { (uintptr_t)call, (uintptr_t)data };

        while (!stook_pair_cas(&hook, &old, new))
                ;
}
