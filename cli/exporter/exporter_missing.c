/*
 * Purpose: `stook exporter` of a build without libmicrohttpd; see exporter.h.
 */
#include <stdio.h>
#include "cli/commands.h"
#include "cli/exporter/exporter.h"

int exporter_serve(const struct exporter_options *options)
{
        (void)options;
        fputs("stook exporter: this stook was built without libmicrohttpd (libmicrohttpd-dev); "
              "`stook info --prometheus PID` writes the same\n", stderr);
        return STATUS_CANNOT;
}
