/*
 * Purpose: one line about misuse, to stderr and to the program's own hook; then an abort, or not.
 * Place: called by every layer that notices something; calls os (write, abort).
 * Concurrency: any thread, any instruction. The hook and its data are one pair (base/pair.h), so
 *  that a call never gets the data of another hook.
 */
#include <stdarg.h>

#include "base/lock.h"
#include "base/pair.h"
#include "os/os.h"
#include "report/report.h"

static struct stook_pair hook;          /* function, data */
uint32_t stook_report_policy;
static uint64_t reports;                /* atomic */

/* ---- format ---- */

struct out {
        char  *buffer;
        size_t bytes, room;             /* written; at most, without the 0 at the end */
};

static void put(struct out *out, char c)
{
        if (out->bytes < out->room)
                out->buffer[out->bytes++] = c;
}

static void put_text(struct out *out, const char *text)
{
        while (*text)
                put(out, *text++);
}

static void put_number(struct out *out, uint64_t n, unsigned base)
{
        char digits[20];
        int i = 0;

        do {
                digits[i++] = "0123456789abcdef"[n % base];
                n /= base;
        } while (n);
        while (i)
                put(out, digits[--i]);
}

static void put_pointer(struct out *out, const void *pointer)
{
        put_text(out, "0x");
        put_number(out, (uintptr_t)pointer, 16);
}

size_t stook_report_format(char *buffer, size_t bytes, const char *format, ...)
{
        struct out out = { .buffer = buffer, .room = bytes - 1 };
        const char *text;
        va_list args;

        if (!bytes)
                return 0;
        va_start(args, format);
        for (; *format; format++) {
                if (*format != '%') {
                        put(&out, *format);
                        continue;
                }
                switch (*++format) {
                case 's':
                        text = va_arg(args, const char *);
                        put_text(&out, text ? text : "(none)");
                        break;
                case 'p':
                        put_pointer(&out, va_arg(args, const void *));
                        break;
                case 'u':
                        put_number(&out, va_arg(args, uint64_t), 10);
                        break;
                case 'x':
                        put_number(&out, va_arg(args, uint64_t), 16);
                        break;
                case '\0':
                        format--;
                        break;
                default:
                        put(&out, *format);
                }
        }
        va_end(args);
        buffer[out.bytes] = '\0';
        return out.bytes;
}

/* ---- reports ---- */

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
};

static void put_report(struct out *out, const struct stook_report *report, const char *detail)
{
        put_text(out, "stook: ");
        put_text(out, words[report->fault]);
        if (report->object) {
                put_text(out, ": pointer ");
                put_pointer(out, report->object);
        }
        if (report->cache_name || report->slab) {
                put_text(out, " (");
                if (report->cache_name) {
                        put_text(out, "cache ");
                        put_text(out, report->cache_name);
                }
                if (report->slab) {
                        put_text(out, report->cache_name ? ", slab " : "slab ");
                        put_pointer(out, report->slab);
                        put_text(out, " offset ");
                        put_number(out, report->offset, 10);
                }
                put(out, ')');
        }
        if (detail) {
                put_text(out, ": ");
                put_text(out, detail);
        }
}

STOOK_COLD void stook_report_found(enum stook_fault fault, const void *object,
                                   const char *cache_name, const void *slab, size_t offset,
                                   const char *detail)
{
        /* A cache's name is at most 63 bytes, so is twice that of details. */
        char text[320];
        struct out out = { .buffer = text, .room = sizeof(text) - 2 };
        struct stook_report report = {
                .report_size = sizeof(report), .fault = fault, .text = text, .object = object,
                .cache_name = cache_name, .slab = slab, .offset = offset,
        };
        struct stook_pair call = stook_pair_read(&hook);

        __atomic_fetch_add(&reports, 1, __ATOMIC_RELAXED);
        put_report(&out, &report, detail);
        text[out.bytes] = '\n';
        stook_os_write(text, out.bytes + 1);
        text[out.bytes] = '\0';
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

STOOK_COLD void stook_report_fault(enum stook_fault fault, const void *object,
                                   const char *cache_name, const void *slab, size_t offset,
                                   const char *detail)
{
        stook_report_found(fault, object, cache_name, slab, offset, detail);
        if (__atomic_load_n(&stook_report_policy, __ATOMIC_RELAXED) == STOOK_ON_FAULT_ABORT)
                stook_os_abort();
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
