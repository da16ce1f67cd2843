/*
 * Purpose: have another process find something out. There are three ways:
 *  - a forked child, on memory as it is at this moment. fork() is libc's, so handlers of
 *    pthread_atfork run, and the heap is whole in the child. The library makes no thread there;
 *  - a copy of this process with this thread alone, to look at its memory while other threads go
 *    on. It is made by the system call, so no atfork handler runs, and it ends without a signal to
 *    the program or a status for its waits;
 *  - a helper: another program, asked by a process whose heap may be broken, at any instruction. A
 *    request goes to its standard input, the answer comes from its standard output. Nothing of libc
 *    but clone(), which only makes the call, is used.
 *
 * The helper is a child of a child, and the one in between ends at once, so the helper is none of
 * the program's children (but under memcheck: see launch). It gives the program no SIGCHLD, and no
 * status to a wait of the program. (The first process of a PID namespace, and one that is a
 * subreaper, gets it as it gets all orphans.) Both children borrow this memory, as vfork does,
 * until the helper is executed: nothing is copied, no atfork handler runs, and this thread waits
 * meanwhile. All signals are blocked until then, so no handler of the program runs in a child. The
 * helper unblocks them.
 * Place: called by inspect, where no lock is held; the helper by report.
 * Concurrency: any thread; a forked child not in handlers; at most one call at a time for each
 *  struct stook_helper.
 * Failure: a negative number: no process can be made. No bytes: the helper cannot be executed, or
 *  does not answer in time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "os/os.h"
#include "os/system_call.h"
#include "process/checker.h"
#include "process/process.h"

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

int stook_process_ask_child(int (*ask)(void), int *answer)
{
        int ends[2], error;
        pid_t child;

        if (pipe2(ends, O_CLOEXEC))
                return -errno;
        stook_self_set_inside(STOOK_INSIDE_ASK);
        child = fork();
        if (child)
                stook_self_clear_inside(STOOK_INSIDE_ASK);
        error = child < 0 ? -errno : 0;
        if (!child)
                answer_and_end(ask, ends[1]);
        close(ends[1]);
        if (!error)
                error = wait_for(child, ends[0], answer);
        close(ends[0]);
        return error;
}

#define SET_BYTES 8                     /* of the kernel's set of signals */

uint64_t stook_process_handlers_block(void)
{
        uint64_t all = UINT64_MAX, before = 0;

        stook_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, SET_BYTES);
        return before;
}

void stook_process_handlers_allow(uint64_t before)
{
        stook_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SET_BYTES);
}

int stook_process_copy(int *to_parent)
{
        uint64_t before;
        int fds[2];
        long pid;

        if (stook_call_failed(stook_call(SYS_pipe2, fds, O_CLOEXEC)))
                return -1;
        for (unsigned i = 0; i < 2; i++)
                fds[i] = stook_call_above_standard(fds[i]);
        /* No handler of the program runs in the child. */
        before = stook_process_handlers_block();
        pid = stook_call(SYS_clone, 0, 0, 0, 0, 0);
        if (pid)
                stook_process_handlers_allow(before);
        stook_call_close(fds[pid ? 1 : 0]);
        *to_parent = fds[pid ? 0 : 1];
        if (!stook_call_failed(pid))
                return (int)pid;
        stook_call_close(fds[0]);
        return -1;
}

void stook_process_copy_end(int to_parent, const void *answer, size_t bytes)
{
        stook_call(SYS_write, to_parent, answer, bytes);
        stook_checker_await_kill();
        for (;;)
                stook_call(SYS_exit_group, 0);
}

bool stook_process_copy_answer(int pid, int from_child, void *answer, size_t bytes)
{
        long n;
        int status;

        while ((n = stook_call(SYS_read, from_child, answer, bytes)) == -EINTR)
                ;
        stook_call_close(from_child);
        stook_checker_kill(pid);
        while (stook_call(SYS_wait4, pid, &status, __WALL, NULL) == -EINTR)
                ;
        return n == (long)bytes;
}

struct start {
        struct stook_helper *helper;
        char *const *argv;
        int   fd;                       /* becomes its standard input and output */
};

/* The helper, until it is executed. Never returns. */
static int execute(void *data)
{
        static char *const environment[] = { NULL };    /* no LD_PRELOAD */
        const struct start *start = data;

        stook_call(SYS_dup3, start->fd, STDIN_FILENO, 0);
        stook_call(SYS_dup3, start->fd, STDOUT_FILENO, 0);
        stook_call(SYS_close_range, 3, ~0u, 0);
        stook_call(SYS_execve, start->argv[0], start->argv, environment);
        for (;;)
                stook_call(SYS_exit, 127);
        return 127;                     /* not reached */
}

#define STACK_TOP(stack) ((void *)(((uintptr_t)(stack) + sizeof(stack)) & ~(uintptr_t)15))

/* The child in between. Signal 0 at its end: it gives no SIGCHLD. */
static int execute_and_end(void *data)
{
        struct start *start = data;

        clone(execute, STACK_TOP(start->helper->inner), CLONE_VM | CLONE_VFORK, start);
        for (;;)
                stook_call(SYS_exit, 0);
        return 0;
}

/*
 * Under memcheck there is no child in between: at its exit memcheck would say what is in use, and
 * that is the program's. Return: the child; negative: none. Where no helper is, none answers.
 */
static int launch(struct start *start)
{
        uint64_t before = stook_process_handlers_block();
        int pid;

        pid = clone(stook_checker_is_memcheck() ? execute : execute_and_end,
                    STACK_TOP(start->helper->outer), CLONE_VM | CLONE_VFORK, start);
        stook_process_handlers_allow(before);
        return pid;
}

static void reap(int pid)
{
        while (pid > 0 && stook_call(SYS_wait4, pid, NULL, __WALL, NULL) == -EINTR)
                ;
}

/* Ready for @events before @end_ms. */
static bool is_ready(int fd, short events, uint64_t end_ms)
{
        uint64_t now = stook_os_clock_ms();

        while (now < end_ms) {
                struct pollfd one = { .fd = fd, .events = events };
                struct timespec left = { .tv_sec = (time_t)((end_ms - now) / 1000),
                                         .tv_nsec = (long)((end_ms - now) % 1000) * 1000000 };
                long n = stook_call(SYS_ppoll, &one, 1, &left, NULL, 0);

                if (n > 0)
                        return true;
                if (n < 0 && n != -EINTR)
                        return false;
                now = stook_os_clock_ms();
        }
        return false;
}

static bool ask(int fd, const char *request, size_t bytes, uint64_t end_ms)
{
        while (bytes && is_ready(fd, POLLOUT, end_ms)) {
                long n = stook_call(SYS_sendto, fd, request, bytes, MSG_NOSIGNAL | MSG_DONTWAIT,
                                    NULL, 0);

                if (n == -EAGAIN || n == -EINTR)
                        continue;
                if (n <= 0)
                        return false;
                request += n;
                bytes -= (size_t)n;
        }
        stook_call(SYS_shutdown, fd, SHUT_WR);
        return !bytes;
}

static size_t hear(int fd, char *answer, size_t room, uint64_t end_ms)
{
        size_t bytes = 0;

        while (bytes < room) {
                long n;

                if (!is_ready(fd, POLLIN, end_ms))
                        return 0;
                n = stook_call(SYS_read, fd, answer + bytes, room - bytes);
                if (n == -EINTR)
                        continue;
                if (n <= 0)
                        break;
                bytes += (size_t)n;
        }
        return bytes;
}

size_t stook_process_ask_helper(struct stook_helper *helper, char *const *argv, const char *request,
                           size_t bytes, char *answer, size_t room, unsigned wait_ms)
{
        uint64_t end_ms = stook_os_clock_ms() + wait_ms;
        int before = errno, fds[2];
        size_t got = 0;

        if (stook_call_failed(stook_call(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
                                         fds)))
                return 0;
        for (unsigned i = 0; i < 2; i++)
                fds[i] = stook_call_above_standard(fds[i]);
        struct start start = { .helper = helper, .argv = argv, .fd = fds[1] };
        int pid = launch(&start);

        stook_call_close(fds[1]);
        if (ask(fds[0], request, bytes, end_ms))
                got = hear(fds[0], answer, room, end_ms);
        stook_call_close(fds[0]);
        reap(pid);
        errno = before;
        return got;
}

bool stook_process_is_executable(const char *path)
{
        return !stook_call_failed(stook_call(SYS_faccessat, AT_FDCWD, path, X_OK));
}
