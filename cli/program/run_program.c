/*
 * Purpose: fork, execute, wait, measure; see run_program.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/files/shared_file.h"
#include "cli/program/run_program.h"

struct notes {
        uint64_t magic;
        uint8_t  made[8];               /* by enum stook_note */
};
_Static_assert(STOOK_NOTES <= 8, "a byte for each");

static const int passed_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };

uint64_t coarse_clock_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static double clock_s(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double timeval_s(struct timeval t)
{
        return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static struct sigaction file_size_before;       /* of SIGXFSZ */
static bool file_size_ignored;

void run_program_ignore_file_size(void)
{
        struct sigaction ignore = { .sa_handler = SIG_IGN };

        file_size_ignored = !sigaction(SIGXFSZ, &ignore, &file_size_before);
}

static bool to_null(int fd, int flags)
{
        int null = open("/dev/null", flags | O_CLOEXEC);

        return null >= 0 && dup2(null, fd) == fd;
}

/*
 * In the child. The signal comes when the thread that forked ends: @parent has no other. The kernel
 * forgets it when the program changes its user, and for children of the program.
 */
static void die_with(pid_t parent)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(128 + SIGKILL);           /* the parent was gone already */
}

static int set_or_unset(const char *name, const char *value)
{
        return value ? setenv(name, value, 1) : unsetenv(name);
}

/*
 * In the child. If the program cannot be started, the child tells the parent why by @tell. That
 * descriptor closes when the program starts.
 */
static void execute(const struct run_request *request, const char *notes, int tell)
{
        int error = 0;

        if (request->preload)
                error = setenv("LD_PRELOAD", request->preload, 1);
        if (!error)
                error = set_or_unset("STOOK_STATS", request->stats_file) ||
                        set_or_unset("STOOK_NOTES", notes);
        if (!error && request->group_limit)
                error = setenv("STOOK_GROUP_LIMIT", request->group_limit, 1);
        for (char **v = request->variables; !error && v && *v; v++)
                error = putenv(*v);
        if (!error && request->errors_to)
                error = dup2(request->errors_to, STDERR_FILENO) < 0;
        if (!error && request->output_to_null && request->errors_to)
                error = !to_null(STDOUT_FILENO, O_WRONLY);
        else if (!error && request->output_to_null)
                error = !to_null(STDOUT_FILENO, O_WRONLY) || !to_null(STDERR_FILENO, O_WRONLY);
        if (!error && request->input_from_null)
                error = !to_null(STDIN_FILENO, O_RDONLY);
        if (!error)
                execvp(request->argv[0], request->argv);
        error = errno;
        while (write(tell, &error, sizeof error) < 0 && errno == EINTR)
                ;
        _exit(127);
}

static void fill_result(struct run_result *result, int wait_status, const struct rusage *usage,
                        double begun)
{
        result->wall_s = clock_s() - begun;
        result->ended_ms = coarse_clock_ms();
        result->user_s = timeval_s(usage->ru_utime);
        result->sys_s = timeval_s(usage->ru_stime);
        result->cpu_s = result->user_s + result->sys_s;
        result->peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
        if (WIFSIGNALED(wait_status)) {
                result->signal = WTERMSIG(wait_status);
                result->status = 128 + result->signal;
        } else {
                result->status = WEXITSTATUS(wait_status);
        }
}

/* Waits for the program to end; passes signals on. @waited: those blocked, SIGCHLD among them. */
static void wait_for(const struct run_request *request, const sigset_t *waited,
                     struct run_result *result, double begun)
{
        const struct timespec step = { .tv_nsec = WATCH_MS * 1000000L }, at_once = { 0 };
        struct rusage usage;
        siginfo_t info;
        int wait_status, late;

        for (;;) {
                pid_t pid = wait4(result->pid, &wait_status, WNOHANG, &usage);

                if (pid == result->pid)
                        break;
                if (pid < 0 && errno != EINTR) /* SIGCHLD is ignored: no status to be had */
                        return;
                if (request->watch)
                        request->watch(request->watch_data);

                int number = sigtimedwait(waited, &info, request->watch ? &step : NULL);

                if (number <= 0 || number == SIGCHLD)
                        continue;
                /* The terminal's signals (SI_KERNEL) went to the program, too. */
                if (info.si_code <= 0)
                        kill(result->pid, number);
                result->passed_on = number;
        }
        /* Signals that came while the program ended were for it; here they would end the report. */
        while ((late = sigtimedwait(waited, NULL, &at_once)) > 0)
                if (late != SIGCHLD)
                        result->passed_on = late;
        fill_result(result, wait_status, &usage, begun);
}

/* A file for the notes of processes; there is none if it cannot be made. */
static void make_notes(struct shared_file *file)
{
        struct notes notes = { .magic = STOOK_NOTES_MAGIC };

        if (!shared_file_make(file) &&
            write(file->fd, &notes, sizeof notes) != (ssize_t)sizeof notes)
                shared_file_remove(file);
}

static void take_notes(struct shared_file *file, struct run_result *result)
{
        struct notes notes;

        if (file->fd >= 0 && pread(file->fd, &notes, sizeof notes, 0) == (ssize_t)sizeof notes)
                for (unsigned i = 0; i < STOOK_NOTES; i++)
                        result->notes[i] = notes.made[i];
        shared_file_remove(file);
}

int run_program(const struct run_request *request, struct run_result *result)
{
        struct shared_file notes = { .fd = -1 };
        struct sigaction child_action = { .sa_handler = SIG_DFL }, child_before;
        sigset_t waited, before;
        int tell[2], error = 0;
        pid_t parent = getpid();
        double begun;

        memset(result, 0, sizeof *result);
        if (pipe2(tell, O_CLOEXEC))
                return -errno;
        if (request->wants_notes)
                make_notes(&notes);
        sigemptyset(&waited);
        sigaddset(&waited, SIGCHLD);
        for (size_t i = 0; i < sizeof passed_signals / sizeof passed_signals[0]; i++)
                sigaddset(&waited, passed_signals[i]);
        sigprocmask(SIG_BLOCK, &waited, &before);
        sigaction(SIGCHLD, &child_action, &child_before);

        result->begun_ms = coarse_clock_ms();
        begun = clock_s();
        result->pid = fork();
        if (result->pid == 0) {
                die_with(parent);
                if (file_size_ignored)
                        sigaction(SIGXFSZ, &file_size_before, NULL);
                sigaction(SIGCHLD, &child_before, NULL);
                sigprocmask(SIG_SETMASK, &before, NULL);
                execute(request, notes.fd >= 0 ? notes.path : NULL, tell[1]);
        }
        error = result->pid < 0 ? errno : 0;
        close(tell[1]);
        if (!error) {
                while (read(tell[0], &result->exec_errno, sizeof result->exec_errno) < 0 &&
                       errno == EINTR)
                        ;
                wait_for(request, &waited, result, begun);
        }
        close(tell[0]);
        take_notes(&notes, result);
        sigaction(SIGCHLD, &child_before, NULL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return -error;
}
