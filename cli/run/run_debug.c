/*
 * Purpose: see run_debug.h. A misspelt mode is refused here, before the program starts: the library
 * could only say so, and go on without.
 */
#include "cli/run/run_debug.h"
#include "cli/profile/pprof_write.h"
#include "cli/symbols/symbols.h"
#include "cli/text/plain_text.h"
#include "sample/sample_terms.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LETTERS "FPUTAOCfputaoc"
#define SIGNAL_MOST 64
#define EXITCODE_MOST 255
#define SUPPRESS_MOST 1023              /* bytes that STOOK_SUPPRESS takes: src/inspect/leak.c */
#define REPORT_PATH_BYTES 512           /* with its end: PATH_BYTES in src/report/report_json.c */
#define PROFILE_PATH_BYTES 900          /* with its end: PATH_BYTES in src/life/observe.c */

static const char *skip_digits(const char *c)
{
        return c + strspn(c, "0123456789");
}

/* The letters of a block. NULL: one of them is unknown. Otherwise what follows them. */
static const char *skip_letters(const char *c)
{
        if (*c == '-')
                return c + 1;
        while (*c && *c != ',' && *c != ';') {
                const char *digits;

                if (strchr(LETTERS, *c)) {
                        c++;
                        continue;
                }
                if (!strchr("QqZz", *c))
                        return NULL;
                if (*++c != '=')
                        continue;
                if (strchr("Zz", c[-1]) && !strncmp(c, "=guard", 6)) {
                        c += 6;
                        continue;
                }
                digits = c + 1;
                c = skip_digits(digits);
                if (c == digits || strspn(digits, "0") == (size_t)(c - digits))
                        return NULL;
                c += *c && strchr("KMG", *c);
        }
        return c;
}

static bool is_modes(const char *text)
{
        while (*text) {
                text = skip_letters(text);
                if (!text)
                        return false;
                while (*text == ',') {
                        size_t name = strcspn(++text, ",;");

                        if (!name)
                                return false;
                        text += name;
                }
                if (*text && *text++ != ';')
                        return false;
        }
        return true;
}

static bool is_on_fault(const char *text)
{
        return !strcmp(text, "abort") || !strcmp(text, "log") || !strcmp(text, "isolate");
}

/* quarantine=BYTES, with K, M or G. */
static bool is_quarantine(const char *text, size_t n)
{
        static const char name[] = "quarantine=";
        const char *digits = text + sizeof name - 1, *end;

        if (n < sizeof name || memcmp(text, name, sizeof name - 1) != 0)
                return false;
        end = skip_digits(digits);
        if (end == digits || end - digits > 10)
                return false;
        return end + (end < text + n && strchr("KMG", *end)) == text + n;
}

static bool is_harden(const char *text)
{
        static const char *const names[] = { "double", "random", "guard", "canary", "pairs",
                                             "zero-size", "zero-free", "zero-alloc", "check-free",
                                             "all", "1", "0" };

        for (;; text++) {
                size_t n = strcspn(text, ","), i = 0, count = sizeof names / sizeof *names;

                while (!is_quarantine(text, n) && i < count &&
                       (strlen(names[i]) != n || memcmp(names[i], text, n) != 0))
                        i++;
                if (i == count)
                        return false;
                text += n;
                if (!*text)
                        return true;
        }
}

static bool is_profile(const char *text)
{
        size_t n = strcspn(text, ",");

        if (!n || !strncmp(text, "--", 2))
                return false;
        for (text += n; *text == ',';) {
                bool is_signal = !strncmp(++text, "signal=", 7);
                const char *digits;

                if (!strncmp(text, "lifetimes", 9)) {
                        text += 9;
                        continue;
                }
                if (!is_signal && strncmp(text, "interval=", 9))
                        return false;
                digits = text += is_signal ? 7 : 9;
                text = skip_digits(text);
                if (text == digits || text - digits > 12 ||
                    strspn(digits, "0") == (size_t)(text - digits))
                        return false;
                if (is_signal && atol(digits) > SIGNAL_MOST)
                        return false;
                text += !is_signal && *text && strchr("KM", *text);
        }
        return !*text;
}

/* The program, or a child of it, may be elsewhere when it reports. */
static const char *absolute(const char *file, char *path)
{
        size_t n;

        if (!file || *file == '/' || !getcwd(path, PATH_MAX))
                return file;
        n = strlen(path);
        if (n + 1 + strlen(file) >= PATH_MAX)
                return file;
        path[n] = '/';
        strcpy(path + n + 1, file);
        return path;
}

/* 0, or errno. A file that was not there is not left. */
static int try_to_add(const char *file)
{
        bool is_new = access(file, F_OK) != 0;
        int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC,
                      0666);

        if (fd < 0)
                return errno == ENXIO ? 0 : errno;      /* a FIFO: its reader may come */
        close(fd);
        if (is_new)
                unlink(file);
        return 0;
}

static bool can_add_to(const char *file)
{
        char path[PATH_MAX];
        int error = strlen(absolute(file, path)) >= REPORT_PATH_BYTES ? ENAMETOOLONG
                                                                      : try_to_add(file);

        if (error)
                say(stderr, "stook run: --report-json '%s': %s\n", file, strerror(error));
        return !error;
}

/*
 * 0, or errno. As src/process/file.c: the profile is written beside its file, and takes the name of
 * a regular file only. A folder with "%p" in its name is not known before the program has a number.
 */
static int try_to_make(char *path)
{
        char *slash = strrchr(path, '/');
        struct stat st;

        if (strlen(path) >= PROFILE_PATH_BYTES)
                return ENAMETOOLONG;
        if (!lstat(path, &st) && !S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
        slash[slash == path] = '\0';
        return strstr(path, "%p") || !access(path, W_OK | X_OK) ? 0 : errno;
}

static bool can_make_profile(const char *text)
{
        char file[PATH_MAX], path[PATH_MAX];
        int n = (int)strcspn(text, ","), error = ENAMETOOLONG;

        if (snprintf(file, sizeof file, "%.*s", n, text) < (int)sizeof file) {
                const char *whole = absolute(file, path);

                if (whole == file)
                        strcpy(path, file);
                error = strchr(path, '/') ? try_to_make(path) : 0;
        }
        if (error)
                say(stderr, "stook run: --profile '%.*s': %s\n", n, text,
                    error == EEXIST ? "it is there, and is no regular file" : strerror(error));
        return !error;
}

static bool is_sample(const char *text)
{
        struct stook_sample_terms terms = stook_sample_terms_usual();

        return stook_sample_read_terms(text, &terms) && !terms.off && !terms.file;
}

void run_debug_name_profile(const struct run_debug *debug, pid_t pid)
{
        char path[PATH_MAX], message[PATH_MAX + 100];
        size_t n = 0;

        for (const char *c = debug->profile; *c && *c != ',' && n + 20 < sizeof path; c++) {
                if (c[0] == '%' && c[1] == 'p') {
                        n += (size_t)snprintf(path + n, 20, "%d", (int)pid);
                        c++;
                } else {
                        path[n++] = *c;
                }
        }
        path[n] = '\0';
        if (symbols_are_built_in() && !access(path, R_OK) &&
            !pprof_symbolize(path, message, sizeof message))
                say(stderr, "stook run: %s\n", message);
}

bool run_debug_option(int option, const char *value, struct run_debug *debug)
{
        switch (option) {
        case RUN_DEBUG_MODES:
                debug->modes = value;
                if (is_modes(value))
                        return true;
                say(stderr,
                    "stook run: --debug takes LETTERS[,CACHE...][;...], letters of "
                    "FZ[=BYTES|=guard]PUTAOC and Q[=BYTES], or -, not '%s'\n", value);
                return false;
        case RUN_DEBUG_ON_FAULT:
                debug->on_fault = value;
                if (is_on_fault(value))
                        return true;
                say(stderr, "stook run: --on-fault takes abort, log or isolate, not '%s'\n", value);
                return false;
        case RUN_DEBUG_HARDEN:
                debug->harden = value ? value : "1";
                if (is_harden(debug->harden))
                        return true;
                say(stderr, "stook run: --harden takes 0, 1, all, or double, random, guard, "
                    "canary, pairs,\n  zero-size, zero-free, zero-alloc, check-free, "
                    "quarantine=BYTES with commas between them,\n  not '%s'\n", value);
                return false;
        case RUN_DEBUG_PROFILE:
                debug->profile = value;
                if (is_profile(value))
                        return can_make_profile(value);
                say(stderr, "stook run: --profile takes FILE[,interval=BYTES][,signal=N]"
                    "[,lifetimes], not '%s'\n", value);
                return false;
        case RUN_DEBUG_SAMPLE:
                debug->sample = value ? value : "on";
                if (is_sample(debug->sample))
                        return true;
                say(stderr, "stook run: --sample takes " STOOK_SAMPLE_TERMS ", not '%s'\n", value);
                return false;
        case RUN_DEBUG_REPORT_JSON:
                debug->report_json = value;
                return option_file("run", "--report-json", value) && can_add_to(value);
        case RUN_DEBUG_LEAKS:
                debug->leaks = true;
                return true;
        case RUN_DEBUG_ERROR_EXITCODE:
                debug->error_exitcode = 0;
                return !strcmp(value, "0") ||
                       option_count("run", "--error-exitcode", value, EXITCODE_MOST,
                                    &debug->error_exitcode);
        default:
                debug->suppress = value;
                if (strlen(value) <= SUPPRESS_MOST)
                        return true;
                say(stderr, "stook run: --suppress takes at most %d bytes, not %zu\n",
                    SUPPRESS_MOST, strlen(value));
                return false;
        }
}

static bool add(struct run_debug *debug, const char *name, const char *value)
{
        char **to = debug->variables;

        while (*to)
                to++;
        return !value || asprintf(to, "%s=%s", name, value) >= 0;
}

/* This command itself, for the names in reports. */
static const char *self(char *path)
{
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

        if (n <= 0)
                return NULL;
        path[n] = '\0';
        return path;
}

/* Leaks are grouped by the stacks that mode U keeps. */
static const char *modes(const struct run_debug *debug)
{
        return debug->modes || !debug->leaks ? debug->modes : "U";
}

/* --profile FILE beside --sample is where that session's profile goes. */
static bool add_session(struct run_debug *debug)
{
        char path[PATH_MAX], *both;
        const char *file = absolute(debug->profile, path);

        if (!debug->sample || !file)
                return add(debug, debug->sample ? "STOOK_SAMPLE" : "STOOK_PROFILE",
                           debug->sample ? debug->sample : file);
        return asprintf(&both, "%s,file=%s", debug->sample, file) >= 0 &&
               add(debug, "STOOK_SAMPLE", both);
}

bool run_debug_compose(struct run_debug *debug)
{
        char path[PATH_MAX], json[PATH_MAX];

        return (getenv("STOOK_SYMBOLIZER") || add(debug, "STOOK_SYMBOLIZER", self(path))) &&
               add(debug, "STOOK_DEBUG", modes(debug)) &&
               add(debug, "STOOK_ON_FAULT", debug->on_fault) &&
               add(debug, "STOOK_HARDEN", debug->harden) &&
               add(debug, "STOOK_REPORT_JSON", absolute(debug->report_json, json)) &&
               add(debug, "STOOK_FAIL", debug->fail) &&
               add(debug, "STOOK_LEAKS", debug->leaks ? "1" : NULL) &&
               add(debug, "STOOK_SUPPRESS", debug->suppress) &&
               add_session(debug);
}
