/*
 * What this proves: rseq_register I1-I3 and membarrier, with libc's registration (argument `libc`)
 * and with our own (`own`, and glibc's tunable off): areas are alive, one for each thread; a
 * refusing kernel, another owner, a thread at its end and keys that might allocate leave a thread
 * without one, barred, and errno alone.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "child.h"
#include "base/thread.h"
#include "os/os.h"

#if defined(__x86_64__)
#define SIGNATURE 0x53053053u
#else
#define SIGNATURE 0xd428bc00u
#endif

static bool own;                        /* libc registers nothing here */
static bool kernel_can;                 /* and the kernel has rseq at all */

static enum stook_rseq_owner expected_owner(void)
{
        return own ? STOOK_RSEQ_OWN : STOOK_RSEQ_LIBC;
}

static uint32_t cpu_id(const char *area)
{
        return __atomic_load_n((const uint32_t *)(area + 4), __ATOMIC_RELAXED);
}

static long raw_rseq(void *area, int flags)
{
        return syscall(SYS_rseq, area, 32, flags, SIGNATURE);
}

/* From now on this process's @number answers @error. */
static void refuse(long number, int error)
{
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

        NEEDS(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        NEEDS(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* ---- an area that lives ---- */

static void alive(void)
{
        cpu_set_t set, one;
        bool has_mm_cid = getauxval(27) >= 28;
        char *area;

        NEEDS(kernel_can);
        errno = 4711;
        stook_os_rseq_detect();
        stook_os_rseq_detect();
        CHECK(stook_os_rseq_owner() == expected_owner());
        CHECK(stook_os_rseq_has_mm_cid() == has_mm_cid);
        area = stook_os_rseq_area();
        CHECK(area && !stook_self_is_barred());
        CHECK((area == stook_self->own_rseq) == own);
        CHECK(stook_os_rseq_area() == area);            /* a handler on top asks again */
        CHECK(errno == 4711);
        CHECK(!sched_getaffinity(0, sizeof(set), &set));
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &set)) {
                        CPU_ZERO(&one);
                        CPU_SET(cpu, &one);
                        CHECK(!sched_setaffinity(0, sizeof(one), &one));
                        CHECK(cpu_id(area) == (uint32_t)cpu);
                }
        if (stook_os_rseq_has_mm_cid())
                CHECK(*(uint32_t *)(area + 24) < stook_os_possible_cpus());
}

/* ---- threads and their end ---- */

/* Made after the library's, so its destructor runs after that one's. */
static pthread_key_t later_key;
static char *seen_area;
static bool ended_well;
static char other_area[32] __attribute__((aligned(32)));

static void later_destructor(void *unused)
{
        (void)unused;
        ended_well = stook_self_is_barred() && !stook_self->ready && !stook_os_rseq_area();
        /* The kernel has no area for this thread any more if it takes another one. */
        ended_well &= raw_rseq(other_area, 0) == 0 && raw_rseq(other_area, 1) == 0;
}

static void *thread_with_area(void *unused)
{
        seen_area = stook_os_rseq_area();
        stook_self->ready = 7;
        pthread_setspecific(later_key, &later_key);
        return unused;
}

static void ends(void)
{
        pthread_t thread;

        NEEDS(kernel_can);
        stook_os_rseq_detect();
        CHECK(!pthread_key_create(&later_key, own ? later_destructor : NULL));
        CHECK(!pthread_create(&thread, NULL, thread_with_area, NULL));
        CHECK(!pthread_join(thread, NULL));
        CHECK(seen_area && seen_area != stook_os_rseq_area());
        CHECK(ended_well == own);
}

/* ---- refusals ---- */

static void check_none(void)
{
        errno = 4711;
        stook_os_rseq_detect();
        CHECK(stook_os_rseq_owner() == STOOK_RSEQ_NONE);
        CHECK(!stook_os_rseq_has_mm_cid());
        CHECK(!stook_os_rseq_area());
        CHECK(stook_self_is_barred());
        CHECK(errno == 4711);
}

static void refused_by(int error)
{
        NEEDS(own);
        refuse(SYS_rseq, error);
        check_none();
}

static void refused_enosys(void) { refused_by(ENOSYS); }
static void refused_eperm(void) { refused_by(EPERM); }
static void refused_einval(void) { refused_by(EINVAL); }

static void another_librarys(void)
{
        NEEDS(own && kernel_can);
        CHECK(!raw_rseq(other_area, 0));
        check_none();
        CHECK(!raw_rseq(other_area, 1));
}

static void *thread_of_another_library(void *unused)
{
        ended_well = raw_rseq(other_area, 0) == 0 && !stook_os_rseq_area() &&
                     stook_self_is_barred();
        raw_rseq(other_area, 1);
        return unused;
}

static void one_thread_of_another_library(void)
{
        pthread_t thread;

        NEEDS(own && kernel_can);
        stook_os_rseq_detect();
        CHECK(!pthread_create(&thread, NULL, thread_of_another_library, NULL));
        CHECK(!pthread_join(thread, NULL));
        CHECK(ended_well);
        CHECK(stook_os_rseq_area());
}

static void keys_that_might_allocate(void)
{
        pthread_key_t key;

#ifndef __GLIBC__
        NEEDS(!"all keys of this C library are in the thread's record");
#endif
        NEEDS(own && kernel_can);
        do
                CHECK(!pthread_key_create(&key, NULL));
        while (key < 31);
        check_none();
}

static void libc_without_this_thread(void)
{
        NEEDS(!own && kernel_can);
        stook_os_rseq_detect();
        CHECK(!raw_rseq(stook_os_rseq_area(), 1));
        /* The kernel leaves -1 in an area that it gives up. */
        CHECK(!stook_os_rseq_area());
        CHECK(stook_self_is_barred());
}

static void barred_stays_barred(void)
{
        stook_os_rseq_detect();
        stook_self_bar();
        CHECK(!stook_os_rseq_area());
}

/* ---- membarrier ---- */

static void membarrier_works(void)
{
        NEEDS(stook_os_membarrier_register());
        CHECK(stook_os_membarrier());
        /* A forked child has its own memory, but the registration with it. */
        CHECK(stook_os_membarrier_register());
}

static void membarrier_refused_at_start(void)
{
        refuse(SYS_membarrier, ENOSYS);
        errno = 4711;
        CHECK(!stook_os_membarrier_register());
        CHECK(!stook_os_membarrier());
        CHECK(errno == 4711);
}

static void membarrier_refused_later(void)
{
        NEEDS(stook_os_membarrier_register());
        refuse(SYS_membarrier, EPERM);
        errno = 4711;
        CHECK(!stook_os_membarrier());
        CHECK(errno == 4711);
}

static void membarrier_without_registration(void)
{
        CHECK(!stook_os_membarrier());
}

#define IN_CHILD(step)                                  \
        static void test_##step(void **state)           \
        {                                               \
                (void)state;                            \
                assert_child_fine(step);                \
        }

IN_CHILD(alive)
IN_CHILD(ends)
IN_CHILD(refused_enosys)
IN_CHILD(refused_eperm)
IN_CHILD(refused_einval)
IN_CHILD(another_librarys)
IN_CHILD(one_thread_of_another_library)
IN_CHILD(keys_that_might_allocate)
IN_CHILD(libc_without_this_thread)
IN_CHILD(barred_stays_barred)
IN_CHILD(membarrier_works)
IN_CHILD(membarrier_refused_at_start)
IN_CHILD(membarrier_refused_later)
IN_CHILD(membarrier_without_registration)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_alive),
                cmocka_unit_test(test_ends),
                cmocka_unit_test(test_refused_enosys),
                cmocka_unit_test(test_refused_eperm),
                cmocka_unit_test(test_refused_einval),
                cmocka_unit_test(test_another_librarys),
                cmocka_unit_test(test_one_thread_of_another_library),
                cmocka_unit_test(test_keys_that_might_allocate),
                cmocka_unit_test(test_libc_without_this_thread),
                cmocka_unit_test(test_barred_stays_barred),
                cmocka_unit_test(test_membarrier_works),
                cmocka_unit_test(test_membarrier_refused_at_start),
                cmocka_unit_test(test_membarrier_refused_later),
                cmocka_unit_test(test_membarrier_without_registration),
        };
        long r;

        own = argc > 1 && !strcmp(argv[1], "own");
#ifndef __GLIBC__
        if (!own) {
                puts("skipped: this C library registers no area");
                return 77;
        }
#endif
        /*
         * Whatever is registered: a kernel without rseq says ENOSYS, one with it finds a fault in
         * length 0.
         */
        r = syscall(SYS_rseq, NULL, 0, 0, SIGNATURE);
        kernel_can = r < 0 && errno != ENOSYS && errno != EPERM;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
