/*
 * Purpose: what the tests of huge pages share: whether there are any, and a process for each test.
 */
#ifndef HUGE_ENV_H
#define HUGE_ENV_H

#include <sys/mman.h>
#include <sys/wait.h>

#include "pages_env.h"
#include "pages/pages_node.h"

#define HUGE_TRIED ((size_t)4 << 20)

/* False: the system has no huge pages, and refuses the advice. */
static inline bool has_huge_pages(void)
{
        void *at = mmap(NULL, HUGE_TRIED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);
        bool has = at != MAP_FAILED && !madvise(at, HUGE_TRIED, MADV_HUGEPAGE);

        if (at != MAP_FAILED)
                munmap(at, HUGE_TRIED);
        return has && stook_os_page_bytes() == 4096;
}

/* Each in a process of its own: what was got before counts. */
static inline int alone(const struct CMUnitTest *test)
{
        pid_t child;
        int status;

        fflush(NULL);
        child = fork();
        if (!child) {
                int failed = 1;

                if (stook_pages_start())
                        failed = _cmocka_run_group_tests(test->name, test, 1, NULL, NULL);
                exit(failed != 0);
        }
        return child < 0 || waitpid(child, &status, 0) != child || status;
}

#endif
