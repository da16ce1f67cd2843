/*
 * Purpose: see forked.h.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "race/beside.h"
#include "race/forked.h"

/* Longer than any child takes on a machine that is many times slower than this one. */
#define HANG_SECONDS 60

static unsigned fork_kind;
static void (*check_child)(void);
static bool was_well;

void forked_child_begins(void)
{
        alarm(HANG_SECONDS);
}

bool forked_child_is_well(pid_t pid)
{
        int status = 0;

        if (pid > 0 && waitpid(pid, &status, 0) == pid && !status)
                return true;
        printf("child: status 0x%x\n", (unsigned)status);
        return false;
}

static pid_t fork_somehow(void)
{
        switch (fork_kind++ % 3) {
        case 0:
                return _Fork();
        case 1:
                return fork();
        default:
                return (pid_t)syscall(SYS_clone, SIGCHLD, 0, NULL, NULL, 0);
        }
}

pid_t forked_by_turns(void)
{
        pid_t pid = fork_somehow();

        if (!pid)
                forked_child_begins();
        return pid;
}

static void fork_here(void)
{
        pid_t pid = forked_by_turns();

        if (!pid) {
                check_child();
                _exit(1);               /* it did not end the child */
        }
        was_well = forked_child_is_well(pid);
}

bool forked_beside(void (*check)(void))
{
        check_child = check;
        beside_run_whole(fork_here);
        return was_well;
}
