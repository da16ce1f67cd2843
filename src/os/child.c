/*
 * Purpose: have a forked child find something out, on memory as it is at this moment.
 * fork() is libc's, so that handlers of pthread_atfork run: the heap is whole in the child.
 * Concurrency: any thread; not in handlers.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/checker.h"
#include "os/os.h"

static _Noreturn void answer_and_end(int (*ask)(void), int to)
{
        int said = ask();
        bool failed = write(to, &said, sizeof(said)) != (ssize_t)sizeof(said);

        stook_checker_await_kill();
        _exit(failed);
}

/* 0, or -EIO. */
static int wait_for(pid_t child, int from, int *answer)
{
        int said;
        ssize_t n;

        do
                n = read(from, &said, sizeof(said));
        while (n < 0 && errno == EINTR);
        stook_checker_kill(child);
        /* Another thread of the program may have got its status. */
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
                ;
        if (n != (ssize_t)sizeof(said))
                return -EIO;
        *answer = said;
        return 0;
}

int stook_os_ask_child(int (*ask)(void), int *answer)
{
        int ends[2], error;
        pid_t child;

        if (pipe2(ends, O_CLOEXEC))
                return -errno;
        child = fork();
        error = child < 0 ? -errno : 0;
        if (!child)
                answer_and_end(ask, ends[1]);
        close(ends[1]);
        if (!error)
                error = wait_for(child, ends[0], answer);
        close(ends[0]);
        return error;
}
