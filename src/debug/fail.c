/*
 * Purpose: allocations that fail on purpose, so that a program's handling of ENOMEM can be tested.
 * STOOK_FAIL, or stook_set_fail() of <stook/debug.h>, says which. The terms are those of the
 * kernel's fault injection, with their meanings:
 *
 *      probability=PERCENT   0 to 100; of the allocations that come this far. 100 by default
 *      interval=N            only each N-th allocation comes this far; 1 by default
 *      times=N               so many fail at most; no limit by default
 *      space=BYTES           none fails until so many bytes were allocated; 0 by default
 *      caches=NAME[:NAME...] caches, by name; a name may end with `*`. `large`: large objects of
 *                            malloc. All by default
 *      stack=FROM-TO[:FROM-TO...]
 *                            only allocations that are made below code at these addresses:
 *                            hexadecimal offsets in the program's file
 *      tell=0|1              1: one line on standard error for each that fails, and where the
 *                            program then ends by SIGSEGV or SIGABRT (life/guard_hit.c)
 *
 * They are taken in this order: space, interval, probability, stack, times.
 * Numbers of allocations are of this process. A forked child goes on counting.
 * Place: called by watch, for allocations that may fail; calls os. It knows no cache but by name.
 * Concurrency: any thread, any instruction. Each number is atomic and relaxed. Two calls at once
 *  may come in either order, and each is counted once.
 * Source: Documentation/fault-injection/fault-injection.rst of Linux, for the meanings.
 */
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "debug/debug_modes.h"
#include "os/os.h"
#include "process/process.h"
#include "report/report.h"
#include "stack/stack.h"
#include <stook/debug.h>

#define VARIABLE  "STOOK_FAIL"
#define NAMES_MAX 256                   /* bytes of caches=; arbitrary */
#define FUNCTIONS_MAX 16                /* of stack=; arbitrary */
#define TAKES     "probability=, interval=, times=, space=, caches=, stack=, tell=, with commas"

/* Atomic, relaxed, each for itself. */
static struct {
        uint32_t probability, interval;
        int64_t  times;                 /* that may fail from now on; negative: no limit */
        uint64_t space;                 /* bytes that do not fail from now on */
        uint64_t seen;                  /* allocations that came to `interval` */
        uint64_t failed;
} terms = { .probability = 100, .interval = 1 };

/* Const after start. */
static bool asked, tells;
static bool large;                      /* large objects may fail */
static char names[NAMES_MAX] STOOK_MOSTLY_UNUSED;       /* empty: all */
/* Atomic: a cache had the name that begins there. */
static bool is_used[NAMES_MAX] STOOK_MOSTLY_UNUSED;
static struct {
        uintptr_t from, to;
} functions[FUNCTIONS_MAX] STOOK_MOSTLY_UNUSED;
static unsigned function_count;         /* 0: any stack */
static bool was_below;                  /* atomic: an allocation was made below one of them */

/* ---- the decision ---- */

static bool is_within_space(size_t bytes)
{
        uint64_t left = __atomic_load_n(&terms.space, __ATOMIC_RELAXED);

        while (left && !__atomic_compare_exchange_n(&terms.space, &left,
                                                    left > bytes ? left - bytes : 0, true,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
        return left;
}

static bool is_its_turn(void)
{
        uint64_t n = __atomic_add_fetch(&terms.seen, 1, __ATOMIC_RELAXED);

        return !(n % __atomic_load_n(&terms.interval, __ATOMIC_RELAXED));
}

static bool is_drawn(void)
{
        uint32_t probability = __atomic_load_n(&terms.probability, __ATOMIC_RELAXED);

        return probability >= 100 || stook_os_random() % 100 < probability;
}

/* A return address behind the last instruction of a range is still in it, and at its start not. */
static bool is_below_the_code(void)
{
        uintptr_t frames[STOOK_STACK_FRAMES_USUAL];
        unsigned n;

        if (!function_count)
                return true;
        n = stook_stack_frames(stook_stack_here(0), frames, STOOK_STACK_FRAMES_USUAL);
        for (unsigned i = 0; i < n * function_count; i++) {
                uintptr_t frame = frames[i / function_count];

                if (frame > functions[i % function_count].from &&
                    frame <= functions[i % function_count].to) {
                        __atomic_store_n(&was_below, true, __ATOMIC_RELAXED);
                        return true;
                }
        }
        return false;
}

static bool take_a_time(void)
{
        int64_t left = __atomic_load_n(&terms.times, __ATOMIC_RELAXED);

        while (left > 0 && !__atomic_compare_exchange_n(&terms.times, &left, left - 1, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
        return left;
}

static STOOK_COLD void tell(const char *name, size_t bytes)
{
        struct stook_report_about about = {
                .fault = STOOK_FAULT_INJECTED, .cache_name = name, .requested_bytes = bytes,
        };
        char detail[48];

        stook_report_format(detail, sizeof(detail), "number %u",
                            __atomic_load_n(&terms.seen, __ATOMIC_RELAXED));
        about.detail = detail;
        stook_report_event(&about);
}

bool stook_fail_strikes(const char *name, size_t bytes)
{
        if (!__atomic_load_n(&terms.times, __ATOMIC_RELAXED) || is_within_space(bytes) ||
            !is_its_turn() || !is_drawn() || !is_below_the_code() || !take_a_time())
                return false;
        __atomic_fetch_add(&terms.failed, 1, __ATOMIC_RELAXED);
        if (tells)
                tell(name, bytes);
        return true;
}

bool stook_fail_strikes_large(size_t bytes)
{
        return STOOK_UNLIKELY(asked) && large && stook_fail_strikes(STOOK_FAIL_LARGE, bytes);
}

/* ---- which caches ---- */

bool stook_fail_is_asked(void)
{
        return asked;
}

bool stook_fail_tells(void)
{
        return asked && tells;
}

bool stook_fail_wants(const char *name)
{
        bool wants = asked && !*names;
        size_t n;

        for (const char *at = names; asked && *at; at += n + (at[n] == ':')) {
                n = strcspn(at, ":");
                if (!stook_debug_name_fits(at, n, name))
                        continue;
                __atomic_store_n(&is_used[at - names], true, __ATOMIC_RELAXED);
                wants = true;
        }
        return wants;
}

bool stook_fail_has_told(void)
{
        return tells && __atomic_load_n(&terms.failed, __ATOMIC_RELAXED);
}

void stook_fail_tell_unused(void)
{
        bool unused = function_count && !__atomic_load_n(&was_below, __ATOMIC_RELAXED);
        size_t n;

        if (unused && !stook_debug_is_child())
                stook_os_env_tell("stack=", 6, " in " VARIABLE ": no allocation was made there",
                                  "");
        for (const char *at = names; asked && *at; at += n + (at[n] == ':')) {
                n = strcspn(at, ":");
                if (!__atomic_load_n(&is_used[at - names], __ATOMIC_RELAXED) &&
                    !stook_debug_is_child()) {
                        stook_os_env_tell(at, n, " in " VARIABLE ": no cache had that name", "");
                        unused = true;
                }
        }
        if (unused && !stook_debug_is_child())
                stook_report_note(STOOK_NOTE_UNUSED);
}

/* ---- terms ---- */

static void set(const struct stook_fail_terms *to)
{
        __atomic_store_n(&terms.probability, to->probability, __ATOMIC_RELAXED);
        __atomic_store_n(&terms.interval, to->interval, __ATOMIC_RELAXED);
        __atomic_store_n(&terms.space, to->space, __ATOMIC_RELAXED);
        __atomic_store_n(&terms.seen, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&terms.times, to->times, __ATOMIC_RELAXED);
}

static bool is_good(const struct stook_fail_terms *to)
{
        return stook_report_size_is(to->terms_size, sizeof(*to), "terms_size") &&
               to->probability <= 100 && to->interval;
}

STOOK_API int stook_set_fail(const struct stook_fail_terms *or_null)
{
        static const struct stook_fail_terms never = { .interval = 1 };

        if (or_null && !is_good(or_null))
                return -EINVAL;
        set(or_null ? or_null : &never);
        return 0;
}

STOOK_API uint64_t stook_fail_count(void)
{
        return __atomic_load_n(&terms.failed, __ATOMIC_RELAXED);
}

/* ---- STOOK_FAIL ---- */

/* A number at *@at, which moves behind it. False: none, or one above @most. */
static bool read_number(const char **at, unsigned base, uint64_t most, uint64_t *n)
{
        const char *first = *at;

        for (*n = 0;; ++*at) {
                char c = **at;
                unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
                               : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : base;

                if (digit >= base)
                        return *at != first;
                if (digit > most || *n > (most - digit) / base)
                        return false;
                *n = *n * base + digit;
        }
}

/* Does the text at *@at begin with @word? Then *@at moves behind it. */
static bool skip(const char **at, const char *word)
{
        size_t n = strlen(word);

        if (strncmp(*at, word, n))
                return false;
        *at += n;
        return true;
}

/* "FROM-TO[:FROM-TO...]" at *@at. */
static bool read_stack(const char **at)
{
        uint64_t from, to;
        uintptr_t base = stook_process_program_base();

        do {
                if (!read_number(at, 16, INT64_MAX, &from) || !skip(at, "-") ||
                    !read_number(at, 16, INT64_MAX, &to) || from >= to ||
                    function_count == FUNCTIONS_MAX)
                        return false;
                functions[function_count].from = base + from;
                functions[function_count++].to = base + to;
        } while (skip(at, ":"));
        return true;
}

static bool read_names(const char **at)
{
        size_t n = strcspn(*at, ",");

        if (!n || n >= sizeof(names))
                return false;
        memcpy(names, *at, n);
        names[n] = '\0';
        *at += n;
        return true;
}

/* One term at *@at, which moves behind it. False: it is none. */
static bool read_term(const char **at, struct stook_fail_terms *to)
{
        uint64_t n = 0;
        bool good;

        if (skip(at, "caches="))
                return read_names(at);
        if (skip(at, "stack="))
                return read_stack(at);
        if (skip(at, "probability=")) {
                good = read_number(at, 10, 100, &n);
                to->probability = (uint32_t)n;
        } else if (skip(at, "interval=")) {
                good = read_number(at, 10, UINT32_MAX, &n) && n;
                to->interval = (uint32_t)n;
        } else if (skip(at, "times=")) {
                good = read_number(at, 10, INT64_MAX, &n);
                to->times = (int64_t)n;
        } else if (skip(at, "space=")) {
                good = read_number(at, 10, INT64_MAX, &to->space);
        } else {
                good = skip(at, "tell=") && read_number(at, 10, 1, &n);
                tells = n;
        }
        return good;
}

void stook_fail_read_options(void)
{
        struct stook_fail_terms to = { .probability = 100, .interval = 1, .times = -1 };
        const char *value = stook_os_env(VARIABLE), *at = value;

        if (!value || !*value)
                return;
        do
                asked = read_term(&at, &to);
        while (asked && *at == ',' && ++at);
        asked = asked && !*at;
        if (!asked) {
                stook_os_env_refuse(VARIABLE, value, TAKES);
                return;
        }
        stook_debug_note_process();
        large = stook_fail_wants(STOOK_FAIL_LARGE);
        set(&to);
}
