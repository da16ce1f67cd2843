/*
 * Proves that a thread with restartable sequences finds out how long its huge faults take. A fault
 * during which another thread ran is not counted, and a heap grows by few huge pages. So one
 * process after the other tries, until one was undisturbed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stook/malloc.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "base/thread.h"
#include "huge_env.h"

#define BYTES   ((size_t)1000)
#define OBJECTS ((size_t)100000)        /* 100 MB, of which most comes in huge pages */

/* 0: a fault was timed; 1: none was; 77: none ever is; 2: no memory. */
static int grow(void)
{
        stook_free(stook_malloc(BYTES));
        if (!has_huge_pages() || !stook_self->rseq) {
                puts("no huge pages, or no restartable sequences");
                return 77;
        }
        for (size_t i = 0; i < OBJECTS; i++) {
                char *object = stook_malloc(BYTES);

                if (!object)
                        return 2;
                memset(object, 7, BYTES);
        }
        return !stook_inject.faults_timed;
}

int main(void)
{
        int status = 1 << 8;

        /* Before the library has started here: each child starts it. */
        while (WEXITSTATUS(status) == 1) {
                pid_t child = fork();

                if (child == 0)
                        exit(grow());
                if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
                        return 2;
        }
        return WEXITSTATUS(status);
}
