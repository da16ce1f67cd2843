/*
 * Purpose: see fail_each.h. The library counts a program's allocations. In run N it lets the N-th
 * fail (STOOK_FAIL), and tells so on standard error, with the stack. The runs end when the program
 * made fewer allocations than that.
 * The program's standard error goes to a file without a name, from which the stack of a run that
 * crashed is taken.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/program/on_drop_in.h"
#include "cli/program/run_program.h"
#include "cli/run/fail_each.h"
#include "cli/text/plain_text.h"

#define PROGRESS_EVERY 25               /* runs; arbitrary */
#define SHOWN_MOST     5                /* numbers of an outcome in the table */
#define OUTCOMES_MOST  64
#define VARIABLES_MOST 16
#define LINES_MOST     40               /* of a stack */
/* The first words of the library's report (src/report/report.c). */
static const char told[] = "stook: allocation made to fail";

/* What runs came to. Those of one kind are one line of the table. */
struct outcome {
        int      status, signal;
        bool     hung;
        unsigned count;
        unsigned shown[SHOWN_MOST];     /* the first allocations with it */
};

struct session {
        const struct fail_each *how;
        struct run_result normal;       /* of the run in which nothing failed */
        struct outcome outcome[OUTCOMES_MOST];
        unsigned outcomes;
        unsigned bad;                   /* runs that crashed or hung */
};

/* ---- one run ---- */

struct timer {
        struct run_result *result;
        uint64_t until_ms;
        bool     hung;
};

static void watch(void *data)
{
        struct timer *timer = data;

        if (timer->hung || coarse_clock_ms() < timer->until_ms)
                return;
        timer->hung = true;
        kill(timer->result->pid, SIGKILL);
}

/* Allocation @n fails; 0: none. Return: 0; -errno. *@hung: it was killed. @errors: a file. */
static int run(const struct session *s, unsigned n, int errors, struct run_result *result,
               bool *hung)
{
        char term[64];
        char *variables[VARIABLES_MOST + 2] = { term };
        struct timer timer = { .result = result,
                               .until_ms = coarse_clock_ms() + s->how->wait_s * UINT64_C(1000) };
        struct run_request request = {
                .argv = s->how->program, .preload = s->how->preload, .variables = variables,
                .output_to_null = !s->how->keep_output && n, .input_from_null = true,
                .errors_to = errors, .watch = watch, .watch_data = &timer,
        };
        int error;

        for (unsigned i = 0; i < VARIABLES_MOST && s->how->variables[i]; i++)
                variables[i + 1] = s->how->variables[i];
        snprintf(term, sizeof term, "STOOK_FAIL=interval=%u,times=%d,tell=1", n ? n : 1, n != 0);
        error = run_program(&request, result);
        *hung = timer.hung;
        return error;
}

/* ---- what came of it ---- */

static bool is_crash(const struct run_result *result)
{
        return result->signal != 0;
}

static void count(struct session *s, unsigned n, const struct run_result *result, bool hung)
{
        struct outcome *o = s->outcome;

        s->bad += hung || is_crash(result);
        while (o < s->outcome + s->outcomes &&
               (o->status != result->status || o->signal != result->signal || o->hung != hung))
                o++;
        if (o == s->outcome + OUTCOMES_MOST)
                o--;                    /* the last line has all others */
        else if (o == s->outcome + s->outcomes)
                *o = (struct outcome){ .status = result->status, .signal = result->signal,
                                       .hung = hung };
        if (o == s->outcome + s->outcomes)
                s->outcomes++;
        if (o->count < SHOWN_MOST)
                o->shown[o->count] = n;
        o->count++;
}

/* Prints the library's lines: what failed, and its stack; and where the program crashed. */
static void print_stack(FILE *errors)
{
        char line[1024];
        unsigned lines = 0;
        bool in = false;

        rewind(errors);
        while (fgets(line, sizeof line, errors) && lines < LINES_MOST) {
                if (strstr(line, told))
                        in = true;
                else if (strncmp(line, "  ", 2))
                        in = false;
                if (!in)
                        continue;
                line[strcspn(line, "\n")] = '\0';
                say(stderr, "  %s\n", line);
                lines++;
        }
}

static bool has_failed(FILE *errors)
{
        char line[1024];
        bool found = false;

        rewind(errors);
        while (!found && fgets(line, sizeof line, errors))
                found = strstr(line, told) != NULL;
        return found;
}

static void print_outcome(const struct session *s, const struct outcome *o)
{
        char text[80];

        if (o->hung)
                snprintf(text, sizeof text, "hung, killed after %u s", s->how->wait_s);
        else if (o->signal)
                snprintf(text, sizeof text, "%s", strsignal(o->signal));
        else if (o->status == s->normal.status)
                snprintf(text, sizeof text, "exit status %d, as without a failure", o->status);
        else
                snprintf(text, sizeof text, "exit status %d", o->status);
        say(stderr, "%6u  %-42s ", o->count, text);
        for (unsigned i = 0; i < o->count && i < SHOWN_MOST; i++)
                say(stderr, " %u", o->shown[i]);
        say(stderr, "%s\n", o->count > SHOWN_MOST ? " ..." : "");
}

static void print_table(const struct session *s, unsigned runs)
{
        say(stderr, "stook: %u %s of %s, in each of which one allocation failed\n", runs,
            runs == 1 ? "run" : "runs", name_of_program(s->how->program[0]));
        say(stderr, "%6s  %-42s  %s\n", "runs", "outcome", "allocations that failed");
        for (unsigned i = 0; i < s->outcomes; i++)
                print_outcome(s, s->outcome + i);
}

/* ---- all runs ---- */

static FILE *file_for_errors(void)
{
        int fd = memfd_create("stook-errors", MFD_CLOEXEC);

        return fd < 0 ? NULL : fdopen(fd, "w+");
}

/* Run @n. Return: 1: go on; 0: the program made fewer allocations; -errno. */
static int one_run(struct session *s, unsigned n)
{
        FILE *errors = file_for_errors();
        struct run_result result;
        bool hung, failed;
        int error;

        if (!errors)
                return -errno;
        error = run(s, n, fileno(errors), &result, &hung);
        failed = !error && has_failed(errors);
        if (failed) {
                count(s, n, &result, hung);
                if (hung || is_crash(&result)) {
                        say(stderr, "stook: %s: %s\n", name_of_program(s->how->program[0]),
                            hung ? "it hangs" : strsignal(result.signal));
                        print_stack(errors);
                }
        }
        fclose(errors);
        if (!error && !failed && result.passed_on)
                return 0;
        return error ? error : failed;
}

int fail_each(const struct fail_each *how)
{
        struct session s = { .how = how };
        unsigned n = 0;
        bool hung;
        int more = run(&s, 0, 0, &s.normal, &hung);

        if (!more && s.normal.exec_errno)
                return say_unrunnable(how->program[0], s.normal.exec_errno);
        if (!more && hung) {
                say(stderr, "stook: %s takes more than %u s without a failure: --fail-wait\n",
                    name_of_program(how->program[0]), how->wait_s);
                return STATUS_CANNOT;
        }
        for (more = more ? more : 1; more > 0 && n < how->most;) {
                more = one_run(&s, n + 1);
                n += more > 0;
                if (n && !(n % PROGRESS_EVERY) && isatty(STDERR_FILENO))
                        say(stderr, "stook: %u runs of at most %u\n", n, how->most);
        }
        if (more < 0) {
                say(stderr, "stook: cannot run %s: %s\n", how->program[0], strerror(-more));
                return STATUS_CANNOT;
        }
        print_table(&s, n);
        if (!n)
                fputs("stook: no allocation failed: does the program use malloc of this library?\n",
                      stderr);
        return s.bad ? 1 : 0;
}
