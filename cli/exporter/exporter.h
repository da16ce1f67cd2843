/*
 * Purpose: what `stook exporter` serves: metrics of all processes on Stook of this machine, and
 * heap profiles.
 *
 * One thread answers all, so that nothing here is locked. Bounds beside those of the server: of
 * profiles that are not yet sent. Whoever asks for metrics within a second gets the same answer, so
 * that many who ask cost one look.
 */
#ifndef STOOK_CLI_EXPORTER_H
#define STOOK_CLI_EXPORTER_H

#include "cli/server/server.h"

/* Serves until SIGINT or SIGTERM. Return: the exit status. */
int exporter_serve(const struct server_options *options);

#endif
