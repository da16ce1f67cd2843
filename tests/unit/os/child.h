/*
 * A test step in a process of its own, for what would change this one for good: limits, namespaces,
 * filters, the once-only detection. Its checks are reported on stderr, and the test asserts on the
 * exit code.
 */
#ifndef STOOK_TEST_CHILD_H
#define STOOK_TEST_CHILD_H

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_FINE    0
#define CHILD_FAILED  1
#define CHILD_SKIPPED 77                /* this system does not let the step do what it needs */

#define CHECK(what)                                                                     \
        do {                                                                            \
                if (!(what)) {                                                          \
                        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
                        _exit(CHILD_FAILED);                                            \
                }                                                                       \
        } while (0)

#define NEEDS(what)                                                                     \
        do {                                                                            \
                if (!(what)) {                                                          \
                        fprintf(stderr, "%s:%d: not possible here: %s\n", __FILE__, __LINE__, \
                                #what); \
                        _exit(CHILD_SKIPPED);                                           \
                }                                                                       \
        } while (0)

/* The exit code; 128 + signal if it died of one. */
static inline int run_child(void (*step)(void))
{
        int status;
        pid_t pid;

        fflush(NULL);
        pid = fork();
        if (pid == 0) {
                step();
                _exit(CHILD_FINE);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                return CHILD_FAILED;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define assert_child_fine(step)                         \
        do {                                            \
                int code = run_child(step);             \
                if (code == CHILD_SKIPPED)              \
                        skip();                         \
                assert_int_equal(code, CHILD_FINE);     \
        } while (0)

#endif
