/*
 * Purpose: the options of `stook run` that find faults, --profile and --sample: what they take, and
 * the variables by which the library gets them.
 */
#ifndef STOOK_CLI_RUN_DEBUG_H
#define STOOK_CLI_RUN_DEBUG_H

#include <stdbool.h>
#include <sys/types.h>
#include "cli/text/option_text.h"

#define RUN_DEBUG_VARIABLES 11

struct run_debug {
        const char *modes;              /* --debug; NULL: not given */
        const char *on_fault;           /* --on-fault */
        const char *harden;             /* --harden */
        const char *report_json;        /* --report-json */
        bool        leaks;              /* --leaks; without --debug it sets mode U */
        const char *suppress;           /* --suppress */
        const char *fail;               /* --fail, as the library takes it */
        const char *profile;            /* --profile */
        const char *sample;             /* --sample */
        unsigned    error_exitcode;     /* --error-exitcode; 0: the program's status stays */
        /* "NAME=VALUE", the last one NULL. The strings are for ever: putenv keeps them. */
        char       *variables[RUN_DEBUG_VARIABLES + 1];
};

/* The values of these options for getopt_long. */
enum { RUN_DEBUG_MODES = OPTION_FIRST + 100, RUN_DEBUG_ON_FAULT, RUN_DEBUG_HARDEN,
       RUN_DEBUG_REPORT_JSON, RUN_DEBUG_LEAKS, RUN_DEBUG_SUPPRESS, RUN_DEBUG_PROFILE,
       RUN_DEBUG_SAMPLE, RUN_DEBUG_ERROR_EXITCODE };
/* One of them. False, and said: its value is none that the library takes. */
bool run_debug_option(int option, const char *value, struct run_debug *debug);

/* After the program's end: writes the functions of its addresses into its profile. */
void run_debug_name_profile(const struct run_debug *debug, pid_t pid);

/* Fills `variables`. False: no memory. */
bool run_debug_compose(struct run_debug *debug);

#endif
