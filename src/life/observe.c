/*
 * Purpose: see life.h. Begins traces and heap profiles, and ends them.
 * Place: begun at start, before the first cache is made; ended by the library's destructor. What a
 * process does after that is in neither. A process that ends by _exit, exec or a kill writes no
 * profile, and of its trace what buffers still have is lost.
 * Concurrency: the start has one thread. The signal's handler runs at any instruction.
 * Failure: a profile that cannot be written is said on standard error.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include <stook/stats.h>
#include "cache/cache_watch.h"
#include "life/life.h"
#include "os/os.h"
#include "process/process.h"
#include "profile/profile.h"
#include "record/record.h"
#include "report/report.h"
#include "sample/sample_terms.h"
#include "stack/stack.h"

#define PATH_BYTES 900
#define INTERVAL_MOST (UINT64_C(1) << 60)

/* Const after start, but for `written`. */
static struct {
        uint64_t interval;
        int      signal;                /* that has a profile written; 0: none */
        bool     lifetimes;
        uint32_t written;               /* atomic: by signals */
} profile;
static char profile_path[PATH_BYTES] STOOK_MOSTLY_UNUSED;       /* const after start */

/* ---- STOOK_PROFILE ---- */

/* What is behind the file's name. False: something else than there may be. */
static bool read_terms(const char *text)
{
        uint64_t signal;

        while (stook_terms_skip(&text, ",")) {
                if (stook_terms_skip(&text, "interval=")) {
                        if (!stook_terms_number(&text, INTERVAL_MOST, &profile.interval))
                                return false;
                } else if (stook_terms_skip(&text, "signal=")) {
                        if (!stook_terms_number(&text, STOOK_SAMPLE_SIGNAL_MOST, &signal))
                                return false;
                        profile.signal = (int)signal;
                } else if (stook_terms_skip(&text, "lifetimes")) {
                        profile.lifetimes = true;
                } else {
                        return false;
                }
        }
        return !*text;
}

static bool read_profile(const char *value)
{
        size_t n = strcspn(value, ",");

        profile.interval = STOOK_PROFILE_INTERVAL;
        if (!n || n >= PATH_BYTES || !read_terms(value + n)) {
                stook_os_env_refuse("STOOK_PROFILE", value,
                                    "FILE[,interval=BYTES][,signal=NUMBER][,lifetimes]");
                return false;
        }
        memcpy(profile_path, value, n);
        return true;
}

/* STOOK_RECORD: a path, which may have commas, and what is behind the last one. */
static bool start_record(const char *value)
{
        static const char term[] = ",stacks";
        static char path[4096] STOOK_MOSTLY_UNUSED;
        size_t n = strlen(value), at = n < sizeof term ? 0 : n - (sizeof term - 1);

        if (!at || strcmp(value + at, term) || at >= sizeof path)
                return stook_record_start(value, false);
        memcpy(path, value, at);
        path[at] = '\0';
        return stook_record_start(path, true);
}

/* ---- writing ---- */

void stook_observe_write(const char *path)
{
        char text[PATH_BYTES + 100];
        int error = stook_profile_write_to(path);
        size_t n;

        if (!error)
                return;
        n = stook_report_format(text, sizeof text,
                                "stook: %s: no heap profile: %s\n", path,
                                stook_file_error_words(-error));
        stook_os_write(text, n);
        stook_report_note(STOOK_NOTE_CUT);
}

void stook_observe_write_next(const char *file)
{
        char path[PATH_BYTES + 20];

        stook_report_format(path, sizeof path, "%s.%u", file,
                            (uint64_t)__atomic_add_fetch(&profile.written, 1, __ATOMIC_RELAXED));
        stook_observe_write(path);
}

static void on_signal(int number)
{
        (void)number;
        stook_observe_write_next(profile_path);
}

STOOK_API int stook_profile_write(const char *path)
{
        if (!stook_profile_interval())
                return -ENOTSUP;
        if (path && !*path)
                return -EINVAL;
        return stook_profile_write_to(path ? path : profile_path);
}

STOOK_API int stook_profile_mark(void)
{
        if (!stook_profile_interval())
                return -ENOTSUP;
        stook_profile_mark_growth();
        return 0;
}

/* ---- start and end ---- */

void stook_observe_start(void)
{
        const char *record = stook_os_env("STOOK_RECORD"), *value = stook_os_env("STOOK_PROFILE");

        /* A copy that is not used would write its empty profile over the other one's. */
        if (!stook_self_is_programs())
                return;
        stook_sampling_begin();
        if (record && start_record(record))
                stook_cache_options.watch |= STOOK_WATCH_RECORD;
        if (!value || !read_profile(value))
                return;
        if (stook_profile_start(profile.interval, profile.lifetimes))
                stook_cache_options.watch |= STOOK_WATCH_PROFILE;
        else
                stook_os_env_tell("STOOK_PROFILE", sizeof("STOOK_PROFILE") - 1,
                                  ": there is no memory for it", "");
}

/* What may allocate. Samples of earlier allocations have no stack. */
__attribute__((constructor)) static void begin(void)
{
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, before;

        if (stook_recording_stacks)
                stook_stack_start();
        if (!stook_profile_interval())
                return;
        stook_os_keep_stderr();         /* the program may close it before its end */
        stook_stack_start();
        if (profile.signal && !sigaction(profile.signal, NULL, &before) &&
            before.sa_handler == SIG_DFL)
                sigaction(profile.signal, &action, NULL);
}

__attribute__((destructor)) static void end(void)
{
        stook_record_end();
        if (stook_profile_interval() && profile_path[0])
                stook_observe_write(profile_path);
}
