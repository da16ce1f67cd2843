/*
 * Purpose: `stook bench`: measures Stook beside other allocators, and tells what was measured.
 * All of it is a program in Python (bench/run.py), which this one finds and becomes. It gets the
 * drop-in that lies beside the command: an installed command has no build folder.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/files/find_program.h"
#include "cli/text/plain_text.h"

#define HELPER "stook-bench"

/* Becomes the helper. Return: only if that failed. */
static int become(char **words)
{
        execv(words[0], words);
        say(stderr, "stook: %s: %s\n", words[0], strerror(errno));
        return STATUS_CANNOT;
}

int cmd_bench(int argc, char **argv)
{
        static char helper[PATH_MAX], drop_in[PATH_MAX], option[] = "--drop-in";
        char message[PATH_MAX + 200];
        char **words = calloc((size_t)argc + 3, sizeof *words);
        int    count = 0, status;

        if (!words) {
                fputs("stook: no memory\n", stderr);
                return STATUS_CANNOT;
        }
        if (!find_helper(HELPER, helper, message, sizeof message)) {
                say(stderr, "stook: %s\n", message);
                free(words);
                return STATUS_CANNOT;
        }
        words[count++] = helper;
        /* Without it, reports can still be written. */
        if (!find_drop_in(drop_in, message, sizeof message)) {
                words[count++] = option;
                words[count++] = drop_in;
        }
        for (int i = 1; i < argc; i++)
                words[count++] = argv[i];
        status = become(words);
        free(words);
        return status;
}
