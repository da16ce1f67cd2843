/*
 * Purpose: run a program once, from fork to wait, with its times and its peak memory.
 * Signals: the program stays in the command's process group, so the terminal's signals reach it
 * directly. The command passes on those that are sent to it alone (SIGINT, SIGTERM, SIGHUP,
 * SIGQUIT, SIGUSR1, SIGUSR2). In either case it outlives the program, to report. If the command is
 * killed, the program is killed, too, unless it has changed its user or is set-user-ID. Processes
 * that the program made are not killed.
 */
#ifndef STOOK_CLI_RUN_PROGRAM_H
#define STOOK_CLI_RUN_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "report/report.h"

struct run_request {
        char      **argv;               /* argv[0] is looked up in PATH */
        const char *preload;            /* value of LD_PRELOAD; NULL: as it is */
        const char *stats_file;         /* value of STOOK_STATS; NULL: not set */
        const char *group_limit;        /* value of STOOK_GROUP_LIMIT; NULL: as it is */
        char      **variables;          /* "NAME=VALUE", the last one NULL; NULL: none */
        bool        wants_notes;        /* run_result.notes are wanted */
        bool        output_to_null;     /* stdout and stderr */
        int         errors_to;          /* a descriptor for stderr instead; 0: none */
        bool        input_from_null;
        /* NULL, or called every WATCH_MS while the program runs. */
        void      (*watch)(void *data);
        void       *watch_data;
};

#define WATCH_MS 20

struct run_result {
        pid_t    pid;
        int      exec_errno;            /* not 0: not executed, and the rest is empty */
        int      status;                /* exit status as a shell gives it: 128+N for signal N */
        int      signal;                /* that ended it, or 0 */
        int      passed_on;             /* last signal that was passed on, or 0 */
        bool     notes[STOOK_NOTES];    /* what its processes noted: report/report.h */
        double   wall_s, cpu_s, user_s, sys_s;
        uint64_t peak_bytes;            /* resident, of the largest process of those waited for */
        uint64_t begun_ms, ended_ms;    /* CLOCK_MONOTONIC_COARSE, as in inspect/stats_page.h */
};

/*
 * Writing beyond a limit on the size of files is an error to this process from here on, and not its
 * end. Programs that are run find SIGXFSZ as it was before.
 */
void run_program_ignore_file_size(void);

/* Return: 0, with *result filled; -errno: no process could be made. */
int run_program(const struct run_request *request, struct run_result *result);

uint64_t coarse_clock_ms(void);

#endif
