/*
 * Purpose: `stook run`: a program on the drop-in, what it did with memory, and how it compares.
 * The output of the first run is shown, and --stats describes that run. Runs for --compare and
 * --repeat come after it. They leave no figures, so that only the allocator is timed.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/program/against.h"
#include "cli/program/on_drop_in.h"
#include "cli/program/run_program.h"
#include "cli/run/compare.h"
#include "cli/run/fail_each.h"
#include "cli/run/fail_terms.h"
#include "cli/run/figures.h"
#include "cli/run/report.h"
#include "cli/run/run_debug.h"
#include "cli/text/json.h"
#include "cli/text/option_text.h"
#include "cli/text/plain_text.h"

#define REPEAT_DEFAULT 6                /* the fewest that can show a difference: compare.c */
#define REPEAT_MAX     100000
#define FOUND_STATUS   23               /* as LeakSanitizer's: programs seldom end with it */
#define FAIL_WAIT_S    60               /* arbitrary */

struct options {
        bool        stats, compare, keep_output;
        unsigned    repeat;             /* timed runs of each side; 0: none */
        const char *against;            /* a library; it implies compare. NULL: system malloc */
        const char *json_path, *group_limit;
        struct run_debug debug;
        const char *fail;               /* --fail, as it was given */
        unsigned    fail_each, fail_wait_s;     /* runs; 0: without --fail-each */
        char      **program;            /* argv of what to run */
};

static const char usage[] =
        "usage: stook run [--stats] [--json FILE] [--compare] [--against LIBRARY] [--repeat N]\n"
        "                 [--group-limit BYTES] [--keep-output] [--debug MODES] [--on-fault WHAT]\n"
        "                 [--harden[=WHAT]] [--report-json FILE] [--leaks]\n"
        "                 [--suppress FUNCTION[,...]] [--error-exitcode N]\n"
        "                 [--profile FILE] [--sample[=TERMS]] [--fail TERMS] [--] PROGRAM\n"
        "                 [ARGUMENT...]\n"
        "       stook run --fail-each[=N] [--fail-wait SECONDS] [--keep-output] [--] PROGRAM ...\n";

static const char help[] =
        "\n"
        "Runs PROGRAM with libstook-malloc.so preloaded. The exit status is PROGRAM's (128+N for\n"
        "signal N), 126 or 127 if it cannot be executed or found, 2 if stook cannot do what was\n"
        "asked. If faults or leaks were reported, it is not 0: see --error-exitcode.\n"
        "\n"
        "options:\n"
        "  --stats        at the end, print a table by cache to standard error, for PROGRAM and\n"
        "                 its children: objects live (in use) and cached (in sheaves), their\n"
        "                 bytes, slabs, objects allocated in all, the share of them that came\n"
        "                 from the slot's own sheaves, from the barn and from slabs (an estimate:\n"
        "                 stook-run(1)), objects refilled from and flushed to slabs; and peak\n"
        "                 resident sizes\n"
        "  --json FILE    write all of that, every counter and every time, to FILE (-: standard\n"
        "                 output)\n"
        "  --compare      run PROGRAM on the system malloc, too, in turn, and print time and\n"
        "                 memory side by side\n"
        "  --against LIBRARY\n"
        "                 the same with this allocator's library preloaded, in place of the\n"
        "                 system malloc\n"
        "  --repeat N     timed runs of each side (6 with --compare); the first run is not timed\n"
        "  --group-limit BYTES\n"
        "                 charge all that malloc gives to a group with this limit (K, M, G, T:\n"
        "                 powers of 1024). Beyond it malloc fails with ENOMEM\n"
        "  --keep-output  show the output of all runs, not of the first one only\n"
        "  --debug MODES  look for faults: F states, Z red zones, P poison, U stacks that\n"
        "                 allocated and freed, Q quarantine, T trace; FZPU is a good start.\n"
        "                 FZP,conn*;U: F, Z, P for caches conn..., U for others (stook-env(7))\n"
        "  --on-fault abort|log|isolate\n"
        "                 what follows a report: the end, nothing, or the object is never handed\n"
        "                 out again\n"
        "  --harden[=double,random,guard,canary,pairs,zero-size,zero-free,zero-alloc,\n"
        "            check-free,quarantine=BYTES|all|1]\n"
        "                 find double frees, hand out objects in random order, guard large\n"
        "                 objects by pages without access, find writes behind objects and\n"
        "                 wrong deletes, zero objects, let freed ones wait; 1, the default,\n"
        "                 is the first six (stook-env(7))\n"
        "  --report-json FILE\n"
        "                 add each report to FILE as a line of JSON\n"
        "  --leaks        at exit, report objects that nothing leads to, by the calls that\n"
        "                 allocated them\n"
        "  --suppress FUNCTION[,...]\n"
        "                 leave out leaks that were allocated below these functions; each may\n"
        "                 end with *\n"
        "  --error-exitcode N\n"
        "                 the exit status if faults or leaks were reported and PROGRAM's own is 0\n"
        "                 (23); 0: it stays\n"
        "  --profile FILE[,interval=BYTES][,signal=N][,lifetimes]\n"
        "                 write a heap profile to FILE at the end (see stook-profile(1))\n"
        "  --sample[=BYTES,most=N,guard[=N],lifetimes]\n"
        "                 sample at next to no cost: one allocation in 2M, or BYTES; guard: some\n"
        "                 lie between guard pages. `stook profile PID` shows it, and with\n"
        "                 --profile FILE it is written there\n"
        "  --fail TERMS   let allocations fail: interval=N, probability=PERCENT, times=N,\n"
        "                 space=BYTES, caches=NAME[:NAME...], stack=FUNCTION, tell=1, with\n"
        "                 commas (stook-env(7))\n"
        "  --fail-each[=N]\n"
        "                 run PROGRAM once for each of its first N allocations (100), in which\n"
        "                 that one fails; print what came of it, and where it crashed\n"
        "  --fail-wait SECONDS\n"
        "                 with --fail-each: a run that lasts longer hangs (60)\n"
        "  --help         show this\n"
        "\n"
        "Standard input: each run reads a file from the same place; from anything else, only the\n"
        "first run reads.\n"
        "An LD_PRELOAD that is set stays in force behind the drop-in.\n";

/* ---- options ---- */

enum { OPTION_STATS = OPTION_FIRST, OPTION_JSON, OPTION_COMPARE, OPTION_REPEAT, OPTION_KEEP_OUTPUT,
       OPTION_GROUP_LIMIT, OPTION_FAIL, OPTION_FAIL_EACH, OPTION_FAIL_WAIT, OPTION_AGAINST,
       OPTION_HELP };

static const struct option long_options[] = {
        { "stats", no_argument, NULL, OPTION_STATS },
        { "json", required_argument, NULL, OPTION_JSON },
        { "compare", no_argument, NULL, OPTION_COMPARE },
        { "against", required_argument, NULL, OPTION_AGAINST },
        { "repeat", required_argument, NULL, OPTION_REPEAT },
        { "keep-output", no_argument, NULL, OPTION_KEEP_OUTPUT },
        { "group-limit", required_argument, NULL, OPTION_GROUP_LIMIT },
        { "debug", required_argument, NULL, RUN_DEBUG_MODES },
        { "on-fault", required_argument, NULL, RUN_DEBUG_ON_FAULT },
        { "harden", optional_argument, NULL, RUN_DEBUG_HARDEN },
        { "report-json", required_argument, NULL, RUN_DEBUG_REPORT_JSON },
        { "leaks", no_argument, NULL, RUN_DEBUG_LEAKS },
        { "suppress", required_argument, NULL, RUN_DEBUG_SUPPRESS },
        { "profile", required_argument, NULL, RUN_DEBUG_PROFILE },
        { "sample", optional_argument, NULL, RUN_DEBUG_SAMPLE },
        { "error-exitcode", required_argument, NULL, RUN_DEBUG_ERROR_EXITCODE },
        { "fail", required_argument, NULL, OPTION_FAIL },
        { "fail-each", optional_argument, NULL, OPTION_FAIL_EACH },
        { "fail-wait", required_argument, NULL, OPTION_FAIL_WAIT },
        { "help", no_argument, NULL, OPTION_HELP },
        { 0 }
};

/* Whether the library accepts the text as STOOK_GROUP_LIMIT: size() in src/life/options.c. */
static bool is_size(const char *text)
{
        static const char suffixes[] = "KMGT";
        const char *c = text, *suffix;
        uint64_t n = 0;

        for (; *c >= '0' && *c <= '9' && n < UINT64_MAX / 16; c++)
                n = n * 10 + (uint64_t)(*c - '0');
        if (c == text || !n)
                return false;
        suffix = strchr(suffixes, *c);
        return !*c || (suffix && !c[1] && n <= UINT64_MAX >> 10 * (suffix - suffixes + 1));
}

/* An option of the runs themselves. False: its value was refused, by a line. */
static bool parse_runs(int option, const char *value, struct options *o)
{
        switch (option) {
        case OPTION_STATS:
                o->stats = true;
                return true;
        case OPTION_JSON:
                o->json_path = value;
                return option_file("run", "--json", value);
        case OPTION_AGAINST:
                o->against = value;
                o->compare = true;
                return true;
        case OPTION_COMPARE:
                o->compare = true;
                return true;
        case OPTION_KEEP_OUTPUT:
                o->keep_output = true;
                return true;
        case OPTION_REPEAT:
                return option_count("run", "--repeat", value, REPEAT_MAX, &o->repeat);
        case OPTION_FAIL:
                o->fail = value;
                return true;
        case OPTION_FAIL_EACH:
                return option_count("run", "--fail-each", value ? value : "100", REPEAT_MAX,
                                    &o->fail_each);
        case OPTION_FAIL_WAIT:
                return option_count("run", "--fail-wait", value, REPEAT_MAX, &o->fail_wait_s);
        default:
                o->group_limit = value;
                if (is_size(value))
                        return true;
                say(stderr, "stook run: --group-limit takes a whole number of bytes above 0, "
                    "which K, M, G or T may follow, not '%s'\n", value);
                return false;
        }
}

/* Which options do not go together. Return: -1, go on; else the exit status. */
static int check_together(const struct options *o)
{
        if (o->debug.suppress && !o->debug.leaks)
                return option_misused("run", usage, "--suppress goes with --leaks only");
        if (o->fail_wait_s && !o->fail_each)
                return option_misused("run", usage, "--fail-wait goes with --fail-each only");
        if (o->debug.profile && o->repeat) {
                fputs("stook run: --profile is for one run, without --compare and --repeat\n",
                      stderr);
                return STATUS_CANNOT;
        }
        if (o->debug.sample && o->debug.profile && strchr(o->debug.profile, ','))
                return option_misused("run", usage, "beside --sample, --profile takes FILE alone");
        if (o->fail_each && (o->fail || o->repeat || o->stats || o->json_path)) {
                fputs("stook run: --fail-each has a report of its own, and goes with "
                      "--keep-output,\n  --fail-wait and --debug only\n", stderr);
                return STATUS_CANNOT;
        }
        return -1;
}

/* Return: -1, go on; else the exit status. */
static int parse(int argc, char **argv, struct options *o)
{
        bool understood = true;
        int option;

        memset(o, 0, sizeof *o);
        o->debug.error_exitcode = FOUND_STATUS;
        opterr = 0;
        while (understood && (option = getopt_long(argc, argv, "+:h", long_options, NULL)) != -1) {
                switch (option) {
                case OPTION_HELP:
                case 'h':
                        return option_help(usage, help);
                case '?':
                case ':':
                        return option_refuse("run", option, argv, usage);
                default:
                        understood = option >= RUN_DEBUG_MODES
                                ? run_debug_option(option, optarg, &o->debug)
                                : parse_runs(option, optarg, o);
                }
        }
        if (!understood)
                return STATUS_CANNOT;
        if (optind == argc)
                return option_misused("run", usage, "no program given");
        o->program = argv + optind;
        if (o->compare && !o->repeat)
                o->repeat = REPEAT_DEFAULT;
        return check_together(o);
}

/* ---- the runs ---- */

struct session {
        struct options     options;
        struct on_drop_in  on;                  /* runs on Stook */
        struct against     against;             /* what the other runs are on; else all zero */
        off_t              input_at;            /* where standard input began; -1: not a file */
        const char        *no_figures;          /* a note: why there are none; NULL: there are */
        bool               want_figures;
        bool               differed;            /* a timed run ended otherwise than the first */
        int                interrupted_by;      /* signal that ended timed runs early; 0: none */
        struct figures_file file;
        struct figures     figures;
        struct run_result  first;
        struct comparison  comparison;
        const char        *name;                /* the program's, without its folder */
};

static const char limit_void[] = "so --group-limit does not hold for it";

static bool limit_is_void(const struct session *s)
{
        return s->options.group_limit &&
               (s->on.check.reach == REACH_NO || s->on.check.reach == REACH_HARM);
}

static void do_without_figures(struct session *s, int error)
{
        s->want_figures = false;
        s->figures.no_file = true;
        s->no_figures = error == -EFBIG ?
                "no statistics: the limit on the size of files (ulimit -f) has no room for them" :
                "no statistics: no file for them can be made";
        if (error == -EFBIG)
                say(stderr, "stook: note: %s\n", s->no_figures);
        else
                say(stderr, "stook: note: %s: %s\n", s->no_figures, strerror(-error));
}

/* The run whose output is shown. Return: -1, go on; else the exit status. */
static int first_run(struct session *s)
{
        struct run_request request = { .argv = s->options.program, .preload = s->on.preload,
                                       .group_limit = s->options.group_limit,
                                       .variables = s->options.debug.variables,
                                       .wants_notes = true };
        int error;

        if (s->want_figures) {
                error = figures_file_make(&s->file);
                if (error)
                        do_without_figures(s, error);
        }
        if (s->want_figures) {
                request.stats_file = s->file.shared.path;
                request.watch = figures_file_watch;
                request.watch_data = &s->file;
        }
        error = run_program(&request, &s->first);
        if (!error && !s->first.exec_errno && s->want_figures)
                error = figures_file_read(&s->file, &s->first, &s->figures);
        if (s->want_figures)
                figures_file_remove(&s->file);
        if (error) {
                say(stderr, "stook: cannot run %s: %s\n", request.argv[0], strerror(-error));
                return STATUS_CANNOT;
        }
        return s->first.exec_errno ? say_unrunnable(request.argv[0], s->first.exec_errno) : -1;
}

static bool asks_to_end(int number)
{
        return number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP;
}

/* The signal that ended the program and asks for an end of all runs; 0: none. */
static int interrupted(const struct run_result *r)
{
        if (asks_to_end(r->passed_on))
                return r->passed_on;
        return asks_to_end(r->signal) ? r->signal : 0;
}

/* False: no further runs. */
static bool timed_run(struct session *s, struct side *side, bool on_stook, unsigned number)
{
        struct run_request request = {
                .argv = s->options.program,
                .preload = on_stook ? s->on.preload : s->against.preload,
                .group_limit = s->options.group_limit,
                .variables = on_stook ? s->options.debug.variables : NULL,
                .output_to_null = !s->options.keep_output,
                .input_from_null = s->input_at < 0,
        };
        struct run_result result;
        int error;

        if (s->input_at >= 0)
                lseek(STDIN_FILENO, s->input_at, SEEK_SET);
        error = run_program(&request, &result);
        if (error || result.exec_errno) {
                say(stderr, "stook: run %u of %s: %s\n", number, request.argv[0],
                    strerror(error ? -error : result.exec_errno));
                return false;
        }
        s->interrupted_by = interrupted(&result);
        if (s->interrupted_by)
                return false;
        if (result.status != s->first.status) {
                s->differed = true;
                say(stderr,
                    "stook: run %u on %s ended with exit status %d, the first run with %d\n",
                    number, side->name, result.status, s->first.status);
        }
        comparison_add(side, &result);
        return true;
}

static void timed_runs(struct session *s)
{
        for (unsigned i = 0; i < s->options.repeat; i++) {
                /* The rival's goes first in every second pair. */
                bool rival_first = s->options.compare && i % 2;

                if (rival_first && !timed_run(s, &s->comparison.rival, false, i + 1))
                        return;
                if (!timed_run(s, &s->comparison.stook, true, i + 1))
                        return;
                if (s->options.compare && !rival_first &&
                    !timed_run(s, &s->comparison.rival, false, i + 1))
                        return;
        }
}

/* What the numbers are worth. */
static void say_what_was_timed(const struct session *s)
{
        unsigned timed = s->comparison.stook.count;

        if (s->interrupted_by && !timed)
                say(stderr, "stook: %s: no run was timed\n", strsignal(s->interrupted_by));
        else if (s->interrupted_by)
                say(stderr, "stook: %s: %u of %u runs were timed\n",
                    strsignal(s->interrupted_by), timed, s->options.repeat);
        if (timed && s->first.status && !s->differed)
                say(stderr,
                    "Each run ended with exit status %d: if that is a failure, it is what "
                    "was timed.\n", s->first.status);
        if (s->comparison.rival.count &&
            (s->on.check.reach == REACH_NO || s->on.check.reach == REACH_HARM))
                fputs("Both sides ran on the program's own malloc, so this compares nothing: see "
                      "the note above.\n", stderr);
}

/* ---- what is printed ---- */

static void write_json(const struct session *s, FILE *out)
{
        struct json json;

        json_begin(&json, out);
        json_array(&json, "command");
        for (char **word = s->options.program; *word; word++)
                json_string(&json, NULL, *word);
        json_array_end(&json);
        json_array(&json, "notes");
        if (s->on.check.note[0])
                json_string(&json, NULL, s->on.check.note);
        if (limit_is_void(s))
                json_string(&json, NULL, limit_void);
        if (s->no_figures)
                json_string(&json, NULL, s->no_figures);
        json_array_end(&json);
        report_json(&s->figures, &s->first, &json);
        if (s->options.repeat)
                comparison_json(&s->comparison, &json);
        json_end(&json);
}

static int run(struct session *s, FILE *json_file)
{
        int status;

        if (s->options.repeat &&
            comparison_init(&s->comparison, s->options.repeat, s->against.name)) {
                fputs("stook: no memory\n", stderr);
                return STATUS_CANNOT;
        }
        on_drop_in_check(&s->on, s->options.program[0]);
        if (limit_is_void(s))
                say(stderr, "stook: note: %s\n", limit_void);
        if (!on_drop_in_compose(&s->on))
                return STATUS_CANNOT;

        s->input_at = lseek(STDIN_FILENO, 0, SEEK_CUR);
        status = first_run(s);
        if (status >= 0)
                return status;
        if (s->options.stats)
                report_print(&s->figures, &s->first, s->name, stderr);
        else
                say_crash(s->name, &s->first);
        report_group(&s->figures, s->options.stats, stderr);
        if (s->options.repeat)
                s->interrupted_by = interrupted(&s->first);
        if (!s->interrupted_by)
                timed_runs(s);
        comparison_print(&s->comparison, s->name, stderr);
        say_what_was_timed(s);
        status = s->first.status;
        if (!status && s->interrupted_by)
                status = 128 + s->interrupted_by;
        if (!status && s->first.notes[STOOK_NOTE_FOUND] && s->options.debug.error_exitcode) {
                status = (int)s->options.debug.error_exitcode;
                say(stderr, "stook: %s: exit status %d for what was reported "
                    "(--error-exitcode)\n", s->name, status);
        }
        if (!status && s->options.fail && s->first.notes[STOOK_NOTE_UNUSED])
                status = STATUS_CANNOT;         /* the library said which */
        if (s->options.debug.profile && !s->first.notes[STOOK_NOTE_CUT])
                run_debug_name_profile(&s->options.debug, s->first.pid);
        if (!status && s->options.debug.profile && s->first.notes[STOOK_NOTE_CUT])
                status = STATUS_CANNOT;         /* the library said why */
        if (json_file) {
                write_json(s, json_file);
                if (fflush(json_file) || ferror(json_file)) {
                        say(stderr, "stook: %s: %s\n", s->options.json_path, strerror(errno));
                        status = status ? status : STATUS_CANNOT;
                }
        }
        return status;
}

static int run_fail_each(struct session *s)
{
        const struct options *o = &s->options;
        struct fail_each how = {
                .program = o->program, .variables = o->debug.variables, .most = o->fail_each,
                .wait_s = o->fail_wait_s ? o->fail_wait_s : FAIL_WAIT_S,
                .keep_output = o->keep_output,
        };
        int status = STATUS_CANNOT;

        on_drop_in_check(&s->on, o->program[0]);
        if (on_drop_in_compose(&s->on)) {
                how.preload = s->on.preload;
                status = fail_each(&how);
        }
        free(s->on.preload);
        return status;
}

/* The first variable that this run would give the program, if its environment does not count. */
static const char *variable_in_vain(const struct options *o)
{
        const char *lock = getenv("STOOK_OPTIONS");

        if (!lock || strcmp(lock, "off") != 0)
                return NULL;
        for (char *const *variable = o->debug.variables; *variable; variable++)
                if (strncmp(*variable, "STOOK_SYMBOLIZER=", 17) != 0)
                        return *variable;
        if (o->group_limit || o->fail_each)
                return o->group_limit ? "STOOK_GROUP_LIMIT=" : "STOOK_FAIL=";
        return o->stats || o->json_path ? "STOOK_STATS=" : NULL;
}

int cmd_run(int argc, char **argv)
{
        struct session s = { 0 };
        FILE *json_file = NULL;
        const char *in_vain;
        int   status = parse(argc, argv, &s.options);

        if (status >= 0)
                return status;
        if (s.options.fail) {
                s.options.debug.fail = fail_terms(s.options.fail, s.options.program[0]);
                if (!s.options.debug.fail)
                        return STATUS_CANNOT;
        }
        if (!run_debug_compose(&s.options.debug)) {
                fputs("stook: no memory\n", stderr);
                return STATUS_CANNOT;
        }
        in_vain = variable_in_vain(&s.options);
        if (in_vain) {
                say(stderr, "stook run: STOOK_OPTIONS=off: the program would not see %.*s\n",
                    (int)strcspn(in_vain, "="), in_vain);
                return STATUS_CANNOT;
        }
        run_program_ignore_file_size();
        if (s.options.fail_each)
                return run_fail_each(&s);
        if (s.options.against && !against_find(s.options.against, &s.against))
                return STATUS_CANNOT;
        if (s.options.json_path) {
                bool to_stdout = !strcmp(s.options.json_path, "-");

                json_file = to_stdout ? stdout : fopen(s.options.json_path, "we");
                if (!json_file) {
                        say(stderr, "stook run: --json '%s': %s\n", s.options.json_path,
                            strerror(errno));
                        return STATUS_CANNOT;
                }
        }
        s.want_figures = s.options.stats || json_file || s.options.group_limit;
        s.name = name_of_program(s.options.program[0]);
        status = run(&s, json_file);
        if (json_file && json_file != stdout)
                fclose(json_file);
        figures_release(&s.figures);
        comparison_release(&s.comparison);
        free(s.against.preload);
        free(s.on.preload);
        return status;
}
