/*
 * Purpose: see checker.h. Memcheck is spoken to by client requests: instructions that do nothing on
 * a processor. They come from a header, and without it at build time (STOOK_MEMCHECK) there is no
 * memcheck. ASan is spoken to by functions of its runtime, which a program has if it was compiled
 * with -fsanitize=address.
 *
 * A library that is itself built with ASan tells it nothing unless it is asked to: its own tests
 * look at caches as they are without a checker.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "os/system_call.h"
#include "process/checker.h"

#ifdef STOOK_MEMCHECK
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(at, bytes)                ((void)(at), 0)
#define VALGRIND_MAKE_MEM_NOACCESS(at, bytes)               ((void)(at))
#define VALGRIND_MALLOCLIKE_BLOCK(at, bytes, zone, written) ((void)(at), (void)(written))
#define VALGRIND_RESIZEINPLACE_BLOCK(at, from, to, zone)    ((void)(at))
#define VALGRIND_FREELIKE_BLOCK(at, zone)                   ((void)(at))
#endif

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define IS_BUILT_WITH_ASAN true
#else
#define IS_BUILT_WITH_ASAN false
#endif

extern void __asan_poison_memory_region(const volatile void *at, size_t bytes)
        __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *at, size_t bytes)
        __attribute__((weak));
extern void __asan_set_error_report_callback(void (*tell)(const char *report))
        __attribute__((weak));
extern void *__asan_get_report_address(void) __attribute__((weak));
extern void __lsan_register_root_region(const void *at, size_t bytes) __attribute__((weak));

enum stook_checker stook_checker;

/* Other tools of Valgrind, such as callgrind, do not know the request and answer 0. */
bool stook_checker_is_memcheck(void)
{
        char byte = 0;

        return VALGRIND_MAKE_MEM_DEFINED(&byte, sizeof(byte)) != 0;
}

void stook_checker_detect(int wanted)
{
        if (!wanted || (wanted < 0 && IS_BUILT_WITH_ASAN))
                return;
        if (stook_checker_is_memcheck())
                stook_checker = STOOK_CHECKER_MEMCHECK;
        else if (__asan_poison_memory_region && __asan_unpoison_memory_region)
                stook_checker = STOOK_CHECKER_ASAN;
}

void stook_checker_await_kill(void)
{
        if (!stook_checker_is_memcheck())
                return;
        stook_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
                stook_call(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

void stook_checker_kill(int pid)
{
        if (pid > 0 && stook_checker_is_memcheck())
                stook_call(SYS_kill, pid, SIGKILL);
}

/*
 * To memcheck all mapped memory is a root. ASan takes a lock of its own; ranges are added at start,
 * and later only where address space is limited so that ASan could not run.
 */
void stook_checker_add_roots(const void *at, size_t bytes)
{
        if (stook_checker == STOOK_CHECKER_ASAN && __lsan_register_root_region)
                __lsan_register_root_region(at, bytes);
}

void stook_checker_open(const void *at, size_t bytes)
{
        if (stook_checker == STOOK_CHECKER_MEMCHECK)
                (void)VALGRIND_MAKE_MEM_DEFINED(at, bytes);
        else if (stook_checker == STOOK_CHECKER_ASAN)
                __asan_unpoison_memory_region(at, bytes);
}

void stook_checker_close(const void *at, size_t bytes)
{
        if (stook_checker == STOOK_CHECKER_MEMCHECK)
                (void)VALGRIND_MAKE_MEM_NOACCESS(at, bytes);
        else if (stook_checker == STOOK_CHECKER_ASAN)
                __asan_poison_memory_region(at, bytes);
}

void stook_checker_begin(void *object, size_t bytes, bool written)
{
        if (stook_checker == STOOK_CHECKER_MEMCHECK)
                VALGRIND_MALLOCLIKE_BLOCK(object, bytes, 0, written);
        else
                stook_checker_open(object, bytes);
}

void stook_checker_resize(void *object, size_t from, size_t to)
{
        if (stook_checker == STOOK_CHECKER_MEMCHECK) {
                VALGRIND_RESIZEINPLACE_BLOCK(object, from, to, 0);
        } else if (to < from) {
                stook_checker_close((char *)object + to, from - to);
        } else {
                stook_checker_open(object, to);
        }
}

void stook_checker_end(void *object, size_t bytes)
{
        if (stook_checker == STOOK_CHECKER_MEMCHECK)
                VALGRIND_FREELIKE_BLOCK(object, 0);
        else
                stook_checker_close(object, bytes);
}

static void (*tell_of)(const void *address);    /* const after the start */

static void on_error(const char *report)
{
        (void)report;
        tell_of(__asan_get_report_address());
}

void stook_checker_on_error(void (*tell)(const void *address))
{
        if (stook_checker != STOOK_CHECKER_ASAN || !__asan_set_error_report_callback ||
            !__asan_get_report_address)
                return;
        tell_of = tell;
        __asan_set_error_report_callback(on_error);
}
