/*
 * Purpose: starts and stops samples in a running process (`stook profile --start`).
 */
#ifndef STOOK_CLI_PROFILE_SESSION_H
#define STOOK_CLI_PROFILE_SESSION_H

#include "sample/sample_terms.h"

/* What the text of --start may be. False, and said: something else. */
bool profile_session_terms(const char *text, struct stook_sample_terms *terms);
/* @what: a process. @library: as target_open has it. Said. Return: the exit status. */
int profile_session_start(const char *what, const char *library,
                          const struct stook_sample_terms *terms);
int profile_session_stop(const char *what, const char *library);
/* "30", "30s", "5m", "1h". False, and said: it is none. */
bool profile_session_seconds(const char *text, double *seconds);
/* Waits so long, or until the user interrupts it. */
void profile_session_wait(double seconds);

#endif
