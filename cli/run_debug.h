/*
 * Purpose: the options of `stook run` that find faults, and --profile: what they take, and the
 * variables by which the library gets them.
 */
#ifndef STOOK_CLI_RUN_DEBUG_H
#define STOOK_CLI_RUN_DEBUG_H

#include <stdbool.h>

#define RUN_DEBUG_VARIABLES 10

struct run_debug {
        const char *modes;              /* --debug; NULL: not given */
        const char *on_fault;           /* --on-fault */
        const char *harden;             /* --harden */
        const char *report_json;        /* --report-json */
        bool        leaks;              /* --leaks; without --debug it sets mode U */
        const char *suppress;           /* --suppress */
        const char *fail;               /* --fail, as the library takes it */
        const char *profile;            /* --profile */
        /* "NAME=VALUE", the last one NULL. The strings are for ever: putenv keeps them. */
        char       *variables[RUN_DEBUG_VARIABLES + 1];
};

/* Is the text what STOOK_DEBUG takes? (src/debug/debug_options.c) */
bool run_debug_is_modes(const char *text);
bool run_debug_is_on_fault(const char *text);
/* Is it what STOOK_HARDEN takes? (src/harden/harden_options.c) */
bool run_debug_is_harden(const char *text);
/* Can lines be added to the file, which need not be there? False, and said: they cannot. */
bool run_debug_can_add_to(const char *file);
/* Is it FILE[,interval=BYTES][,signal=NUMBER]? (src/life/observe.c) */
bool run_debug_is_profile(const char *text);
/* Can that FILE be made, or replaced? False, and said: it cannot. */
bool run_debug_can_make_profile(const char *text);

/* Fills `variables`. False: no memory. */
bool run_debug_compose(struct run_debug *debug);

#endif
