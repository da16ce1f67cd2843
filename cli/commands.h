/*
 * Purpose: the subcommands of stook. Each gets its name as argv[0] and returns the exit status.
 */
#ifndef STOOK_CLI_COMMANDS_H
#define STOOK_CLI_COMMANDS_H

#define STATUS_CANNOT      2    /* stook itself could not do what was asked */
#define STATUS_NOT_RUNNABLE 126 /* as env(1): the program was found but cannot be executed */
#define STATUS_NOT_FOUND   127  /* as env(1) */

int cmd_bench(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_exporter(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_leaks(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_symbolize(int argc, char **argv);
int cmd_what(int argc, char **argv);

#endif
