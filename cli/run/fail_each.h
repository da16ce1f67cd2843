/*
 * Purpose: `stook run --fail-each`: one run of a program for each of its first allocations, in
 * which that one fails; and a table of what came of it.
 */
#ifndef STOOK_CLI_FAIL_EACH_H
#define STOOK_CLI_FAIL_EACH_H

#include <stdbool.h>

struct fail_each {
        char      **program;            /* argv */
        const char *preload;            /* LD_PRELOAD of the runs */
        char *const *variables;         /* of the runs: "NAME=VALUE", the last one NULL */
        unsigned    most;               /* runs */
        unsigned    wait_s;             /* a run that lasts longer hangs, and is killed */
        bool        keep_output;
};

/*
 * The exit status: 0: no run ended by a signal or hung; 1: one did; STATUS_CANNOT and others: no
 * run could be made.
 */
int fail_each(const struct fail_each *how);

#endif
