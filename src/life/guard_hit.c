/*
 * Purpose: names the object whose guard page a program has touched, or which it used after it was
 * freed: a large one (STOOK_HARDEN=guard, or debug mode Z: harden/guard.c), or a guarded sample
 * (STOOK_SAMPLE=guard: sample/guarded.c); and the calls where a program crashes after an allocation
 * was made to fail (STOOK_FAIL=...,tell=1: debug/fail.c). The program then ends by SIGSEGV, or
 * SIGABRT, as it would without this. The same of an object that AddressSanitizer reports (mode U).
 * Place: called by options.c at start, and by sampling.c; reads pages, calls report.
 * Invariants:
 *  I1 a program that ignores or handles the signal when the library starts is left alone. It may
 *     install a handler of its own later; then the signal is the program's.
 *  I2 the handler returns with the system's own action in force: the instruction faults once more.
 *     So a core shows it, and a fault elsewhere ends as ever.
 *  I3 where reports do not abort, a page of a guarded sample is opened instead, and the instruction
 *     goes on: a program in production is not ended by a sample. One report for each page.
 */
#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "debug/debug_modes.h"
#include "harden/harden.h"
#include "life/life.h"
#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/span.h"
#include "process/checker.h"
#include "report/report.h"
#include "sample/sample.h"
#include "watch/watch.h"

/* The large object that the map knows at @at; NULL: none. */
static const struct stook_span *large_at(uintptr_t at)
{
        const struct stook_span *span = stook_entry_span(stook_pagemap_get(at));

        return span && span->kind == STOOK_SPAN_LARGE ? span : NULL;
}

/* @page is behind the object, or in the address space that its own mapping has behind it. */
static bool is_behind(const struct stook_span *span, uintptr_t page)
{
        return span && page >= span->start + span->bytes &&
               page <= span->start + (span->own_mapping ? span->reserved : span->bytes);
}

/* With what debug modes know of the object. One that was freed gets its access back for that. */
static void report(enum stook_fault fault, const struct stook_span *span, const char *detail)
{
        struct stook_report_about about = {
                .fault = fault, .object = (void *)(span->start + span->use.lead),
                .object_bytes = span->bytes, .detail = detail,
        };

        if (stook_os_enable((void *)span->start, span->bytes))
                stook_watch_large_describe(span, &about);
        stook_report_event(&about);
}

/* False: @at lies in no object that was freed lately. */
static bool tell_freed(uintptr_t at, const char *access)
{
        const struct stook_span *span = stook_guard_closed_at(at);
        char detail[96];

        if (!span)
                return false;
        stook_report_format(detail, sizeof(detail), "it was %s at %p", access, (void *)at);
        report(STOOK_FAULT_USE_AFTER_FREE, span, detail);
        return true;
}

/* False: @at lies in no slab of a cache that was destroyed lately. */
static bool tell_destroyed(uintptr_t at, const char *access)
{
        struct stook_report_about about = { .fault = STOOK_FAULT_USE_AFTER_FREE };
        char detail[96];

        if (!stook_debug_describe_closed(at, &about))
                return false;
        stook_report_format(detail, sizeof(detail), "its cache was destroyed; it was %s", access);
        about.detail = detail;
        stook_report_event(&about);
        return true;
}

/* A guarded sample. False: @at lies in none, nor beside one. */
static bool tell_sample(uintptr_t at, const char *access)
{
        struct stook_report_about about = { 0 };
        char detail[96];

        if (!stook_guarded_describe(at, &about))
                return false;
        stook_report_format(detail, sizeof(detail), "it was %s at %p", access, (void *)at);
        about.detail = detail;
        stook_report_event(&about);
        return true;
}

static void tell(uintptr_t at, const char *access)
{
        size_t page = stook_os_page_bytes();
        uintptr_t here = at & ~(page - 1);
        const struct stook_span *span = large_at(here - 1);
        bool over = is_behind(span, here) || is_behind(span = large_at(here), here);
        char detail[96];

        if (!over)
                span = large_at(here + page);
        if (span && !over && span->start != here + page)
                span = NULL;
        if (tell_sample(at, access) || tell_freed(at, access) || tell_destroyed(at, access) ||
            !span)
                return;
        stook_report_format(detail, sizeof(detail), "the guard page %s it was %s at %p",
                            over ? "behind" : "before", access, (void *)at);
        report(over ? STOOK_FAULT_OVERRUN : STOOK_FAULT_UNDERRUN, span, detail);
}

/* What ASan has reported: who allocated and freed the object there. */
static void tell_checked(const void *address)
{
        unsigned index = stook_entry_cache(stook_pagemap_get((uintptr_t)address));
        const struct stook_span *large = large_at((uintptr_t)address);
        struct stook_report_about about = {
                .fault = STOOK_FAULT_OVERRUN, .object = address,
                .detail = "it was read or written, as AddressSanitizer says",
        };

        if (index)
                stook_watch_describe(stook_cache_at(index), address, &about);
        else if (large)
                stook_watch_large_describe(large, &about);
        if (about.freed)
                about.fault = STOOK_FAULT_WRITE_AFTER_FREE;
        if (about.allocated)
                stook_report_event(&about);
}

/* The report has the stack of this handler, so that of the crash. */
static void tell_after_failure(int number)
{
        if (stook_fail_has_told())
                stook_report_event(&(struct stook_report_about){
                        .fault = STOOK_FAULT_INJECTED,
                        .detail = number == SIGABRT ? "the program aborts after it"
                                                    : "the program crashes after it",
                });
}

/* What the instruction did, as the processor tells by the error code of the fault. */
#if defined(__x86_64__)
#define ERROR_WRITE 2                   /* of a page fault's */

static const char *access_of(const ucontext_t *context)
{
        return context->uc_mcontext.gregs[REG_ERR] & ERROR_WRITE ? "written" : "read";
}
#elif defined(__aarch64__)
#define ESR_WRITE 0x40                  /* WnR, of a data abort's */

/* The kernel adds records behind the registers; the last one has no size. */
static const char *access_of(const ucontext_t *context)
{
        const char *at = (const char *)context->uc_mcontext.__reserved;
        const char *end = at + sizeof(context->uc_mcontext.__reserved);

        while (at + sizeof(struct esr_context) <= end) {
                const struct _aarch64_ctx *head = (const void *)at;

                if (head->magic == ESR_MAGIC)
                        return ((const struct esr_context *)at)->esr & ESR_WRITE ? "written"
                                                                                : "read";
                if (!head->size)
                        break;
                at += head->size;
        }
        return "read or written";
}
#else
static const char *access_of(const ucontext_t *context)
{
        (void)context;
        return "read or written";
}
#endif

static void hit(int number, siginfo_t *info, void *context)
{
        if (info->si_code > 0 && number == SIGSEGV) {
                tell((uintptr_t)info->si_addr, access_of(context));
                if (stook_report_goes_on() && stook_guarded_open((uintptr_t)info->si_addr))
                        return;                                                 /* I3 */
        }
        tell_after_failure(number);
        sigaction(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);  /* I2 */
        if (info->si_code <= 0)         /* sent by a process: it does not come again by itself */
                raise(number);
}

static void catch(int number)
{
        struct sigaction action = { .sa_sigaction = hit, .sa_flags = SA_SIGINFO | SA_ONSTACK };
        struct sigaction before;

        /* Of two copies of the library the program uses one. */
        if (!stook_self_is_programs())
                return;
        if (!sigaction(number, NULL, &before) && before.sa_handler == SIG_DFL)          /* I1 */
                sigaction(number, &action, NULL);
}

void stook_guard_hits_report(void)
{
        catch(SIGSEGV);
}

void stook_checked_faults_report(void)
{
        stook_checker_on_error(tell_checked);
}

void stook_crashes_report(void)
{
        catch(SIGSEGV);
        catch(SIGABRT);
}
