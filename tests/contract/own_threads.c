/*
 * Proves that the library's own threads keep no process alive: when the last thread of the program
 * has ended, the process ends as by exit(0), in less than a second, its handlers are called once,
 * and signals reach it. Until then those threads stay. With the maintenance thread, that of
 * stook_rcu_epoch, both, and those of two copies of the library; in forked children, too.
 *
 * Each case is a program of its own, this one again: own_threads CASE KIND.
 */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#define CHAIN_S    1.2                  /* of threads, one after the other: longer than two looks */
#define LINK_NS    400000
#define LONGEST_MS 10000                /* for what takes less than a second, on a busy machine */

/* ---- the programs ---- */

static unsigned own;
static double chain_end;                /* seconds */
static int called;                      /* atomic */
static pid_t child;                     /* atomic */

static void say(char c)
{
        if (write(STDOUT_FILENO, &c, 1) != 1)
                _exit(1);
}

static void say_end(void)
{
        say('x');
}

static void say_end_and_stay(void)
{
        say('x');
        sleep(60);
}

static void pause_ns(long ns)
{
        nanosleep(&(struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 },
                  NULL);
}

static void note(struct stook_rcu_head *head)
{
        (void)head;
        __atomic_store_n(&called, 1, __ATOMIC_RELEASE);
}

static void fork_and_return(struct stook_rcu_head *head)
{
        __atomic_store_n(&child, fork(), __ATOMIC_RELEASE);
        note(head);
}

/* Returns when the thread of stook_rcu_epoch has called it. */
static void call(void (*done)(struct stook_rcu_head *))
{
        static struct stook_rcu_head head;

        __atomic_store_n(&called, 0, __ATOMIC_RELAXED);
        stook_rcu_epoch.call(&head, done);
        while (!__atomic_load_n(&called, __ATOMIC_ACQUIRE))
                pause_ns(1000000);
}

static unsigned count_threads(void)
{
        DIR *tasks = opendir("/proc/self/task");
        unsigned n = 0;

        for (const struct dirent *e; tasks && (e = readdir(tasks));)
                n += e->d_name[0] != '.';
        if (tasks)
                closedir(tasks);
        return n;
}

static void start_thread(void *(*run)(void *))
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, run, NULL) || pthread_detach(thread))
                _exit(2);
}

static void *end_later(void *unused)
{
        pause_ns(100000000);
        return unused;
}

/* When the first thread has ended: it loads a library for that. */
static void *forbid_files(void *unused)
{
        end_later(NULL);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0 });
        return unused;
}

static double seconds(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The first thread has ended, too. */
static void *make_next(void *unused)
{
        pause_ns(LINK_NS);
        if (seconds() < chain_end)
                start_thread(make_next);
        else
                say(count_threads() >= own + 2 ? 'k' : 'g');
        return unused;
}

static void end_by_child(void)
{
        int status;

        if (waitpid(__atomic_load_n(&child, __ATOMIC_ACQUIRE), &status, 0) < 0)
                _exit(3);
        _exit(status != 0);
}

/* In the child it is the first thread, and the last one. */
static void *fork_here(void *with_epoch)
{
        child = fork();
        if (child)
                end_by_child();
        stook_maintain();               /* a thread for it, where its parent has one */
        if (with_epoch)
                call(note);
        if (count_threads() < 2)
                _exit(5);
        return NULL;
}

static void run(const char *what, bool with_epoch)
{
        if (with_epoch)
                call(note);
        own = count_threads() - 1;
        if (!own)
                _exit(4);
        atexit(strcmp(what, "stay") ? say_end : say_end_and_stay);
        say('r');
        if (!strcmp(what, "others"))
                start_thread(end_later);
        else if (!strcmp(what, "blind"))
                start_thread(forbid_files);
        else if (!strcmp(what, "chain")) {
                chain_end = seconds() + CHAIN_S;
                start_thread(make_next);
        } else if (!strcmp(what, "callback")) {
                call(fork_and_return);
                end_by_child();
        } else if (!strcmp(what, "fork")) {
                pthread_t thread;

                pthread_create(&thread, NULL, fork_here, with_epoch ? &own : NULL);
                pthread_join(thread, NULL);
        }
        pthread_exit(NULL);
}

/* ---- what is said of them ---- */

static char drop_in[4096];              /* preloaded, it is a second copy of the library */

static pid_t start_program(const char *what, const char *kind, int *output)
{
        int ends[2];
        pid_t pid;

        assert_int_equal(pipe(ends), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                setpgid(0, 0);
                dup2(ends[1], STDOUT_FILENO);
                close(ends[0]);
                close(ends[1]);
                if (strcmp(kind, "epoch"))
                        setenv("STOOK_MAINTENANCE", "1", 1);
                if (!strcmp(kind, "copies"))
                        setenv("LD_PRELOAD", drop_in, 1);
                execl("/proc/self/exe", "own_threads", what, kind, NULL);
                _exit(127);
        }
        close(ends[1]);
        *output = ends[0];
        return pid;
}

/* The next byte that the program says; 0: it has ended; '?': nothing comes. */
static char hear(int output)
{
        struct pollfd one = { .fd = output, .events = POLLIN };
        char c = 0;

        if (poll(&one, 1, LONGEST_MS) != 1)
                return '?';
        return read(output, &c, 1) == 1 ? c : 0;
}

/* Its status. */
static int end_of(pid_t pid, int output, char last)
{
        int status;

        if (last)                       /* it stays; so may its child */
                kill(-pid, SIGKILL);
        close(output);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

/* The program says all of that, and ends with status 0. */
static void assert_says(const char *what, const char *kind, const char *wanted)
{
        char said[16] = { 0 };
        unsigned n = 0;
        int output, status;
        pid_t pid = start_program(what, kind, &output);
        char c = 'r';

        for (; n < sizeof(said) - 1 && c && c != '?'; n++)
                said[n] = c = hear(output);
        status = end_of(pid, output, c);
        if (strcmp(said, wanted) || status)
                print_error("%s %s: said %s, status %x\n", what, kind, said, (unsigned)status);
        assert_string_equal(said, wanted);
        assert_int_equal(status, 0);
}

static const char *const kinds[] = { "maintenance", "epoch", "both", "copies" };
#define EACH_KIND(kind) \
        for (unsigned i_ = 0; i_ < 3u + !!*drop_in; i_++) \
                for (const char *kind = kinds[i_]; kind; kind = NULL)

static void test_the_process_ends_with_the_last_thread(void **state)
{
        (void)state;
        EACH_KIND(kind) {
                assert_says("alone", kind, "rx");
                assert_says("others", kind, "rx");
                assert_says("blind", kind, "rx");       /* no file of /proc can be read */
        }
}

static void test_own_threads_stay_while_there_are_others(void **state)
{
        (void)state;
        assert_says("chain", "both", "rkx");
        if (*drop_in)
                assert_says("chain", "copies", "rkx");
}

static void test_a_child_ends_with_its_last_thread(void **state)
{
        (void)state;
#ifdef __GLIBC__                        /* musl's list of threads stays locked there: its fault */
        EACH_KIND(kind)
                assert_says("fork", kind, "rx");
#endif
        assert_says("callback", "epoch", "rx");
        assert_says("callback", "both", "rx");
}

/* Before the end, which may come first, and in a handler of exit(). */
static void test_signals_end_the_process(void **state)
{
        (void)state;
        for (long ms = 0; ms < 600; ms += 100) {
                int output, status;
                pid_t pid = start_program(ms ? "alone" : "stay", "both", &output);
                char c = hear(output);

                assert_int_equal(c, 'r');
                pause_ns(ms * 1000000);
                if (!ms)
                        assert_int_equal(hear(output), 'x');
                kill(pid, SIGTERM);
                while ((c = hear(output)) == 'x')
                        ;
                status = end_of(pid, output, c);
                if (ms && WIFEXITED(status))
                        assert_int_equal(status, 0);
                else
                        assert_int_equal(status, SIGTERM);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_process_ends_with_the_last_thread),
                cmocka_unit_test(test_own_threads_stay_while_there_are_others),
                cmocka_unit_test(test_a_child_ends_with_its_last_thread),
                cmocka_unit_test(test_signals_end_the_process),
        };

        if (argc == 3)
                run(argv[1], strcmp(argv[2], "maintenance") && strcmp(argv[2], "copies"));
        snprintf(drop_in, sizeof(drop_in), "%s/libstook-malloc.so", getenv("STOOK_BUILD"));
        if (access(drop_in, R_OK))
                *drop_in = '\0';
        return cmocka_run_group_tests(tests, NULL, NULL);
}
