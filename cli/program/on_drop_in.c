/*
 * Purpose: see on_drop_in.h.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/files/find_program.h"
#include "cli/program/on_drop_in.h"
#include "cli/text/plain_text.h"

void on_drop_in_check(struct on_drop_in *on, const char *program)
{
        char path[PATH_MAX];

        /* For the notes only: execvp looks the program up itself. */
        if (!find_program(program, path))
                elf_check(path, getenv("LD_PRELOAD"), &on->check);
        if (on->check.note[0])
                say(stderr, "stook: note: %s\n", on->check.note);
}

bool on_drop_in_compose(struct on_drop_in *on)
{
        char path[PATH_MAX], message[PATH_MAX + 200];
        const char *before = getenv("LD_PRELOAD");

        if (on->check.reach == REACH_HARM)
                return true;
        if (find_drop_in(path, message, sizeof message)) {
                say(stderr, "stook: %s\n", message);
                return false;
        }
        if (asprintf(&on->preload, "%s%s%s", path, before && *before ? ":" : "",
                     before ? before : "") >= 0)
                return true;
        on->preload = NULL;
        fputs("stook: no memory\n", stderr);
        return false;
}

int say_unrunnable(const char *program, int error)
{
        char path[PATH_MAX], interpreter[PATH_MAX];

        if (error == ENOENT && !find_program(program, path) &&
            elf_check_interpreter(path, interpreter))
                say(stderr, "stook: %s: its interpreter, '%s', is not there\n", program,
                    interpreter);
        else
                say(stderr, "stook: %s: %s\n", *program ? program : "''", strerror(error));
        return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE;
}

int say_if_unrunnable(const char *program)
{
        char path[PATH_MAX], interpreter[PATH_MAX];
        int error = *program ? find_program(program, path) : -ENOENT;

        if (!error && elf_check_interpreter(path, interpreter) && access(interpreter, F_OK))
                error = -errno;
        return error ? say_unrunnable(program, -error) : 0;
}

void say_crash(const char *program, const struct run_result *r)
{
        switch (r->signal) {
        case SIGSEGV:
        case SIGBUS:
        case SIGABRT:
        case SIGILL:
        case SIGFPE:
        case SIGTRAP:
        case SIGSYS:
                say(stderr, "stook: %s: %s\n", program, strsignal(r->signal));
        }
}

const char *name_of_program(const char *program)
{
        const char *slash = strrchr(program, '/');

        return slash ? slash + 1 : program;
}
