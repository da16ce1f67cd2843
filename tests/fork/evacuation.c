/*
 * What this proves: sheaves that an evacuation has taken off slots when a thread vanishes in a fork
 * go to their barns in the child, by its first call. Where the system refuses the barrier behind
 * which they would be the evacuation's, they are not touched again.
 *
 * The evacuating thread gets a signal for each membarrier, in the middle of it. No other thread
 * runs sections meanwhile, so that the barriers need not be made.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#define OBJECTS 40                      /* less than a sheaf has */

static struct stook_cache *cache, *other;
static sem_t inside, leave;
static unsigned barriers;
static bool refused;                    /* the second barrier is */

static bool trap_membarrier(void)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = 4, .filter = filter };

        return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
               !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a child: a filter stays. */
static bool may_trap(void)
{
        int status = -1;
        pid_t child = fork();

        if (!child)
                _exit(!trap_membarrier());
        return child > 0 && waitpid(child, &status, 0) == child && !status;
}

static void await(sem_t *event)
{
        while (sem_wait(event) && errno == EINTR)
                ;
}

static void on_membarrier(int number, siginfo_t *info, void *context)
{
        ucontext_t *at = context;
        long answer = 0;

        (void)number, (void)info;
        if (++barriers == 2) {
                sem_post(&inside);
                await(&leave);
                answer = refused ? -EPERM : 0;
        }
#ifdef __x86_64__
        at->uc_mcontext.gregs[REG_RAX] = answer;
#elif defined(__aarch64__)
        at->uc_mcontext.regs[0] = (uint64_t)answer;
#else
        (void)at, (void)answer;
#endif
}

static void *evacuate(void *unused)
{
        if (trap_membarrier())
                stook_cache_shrink(cache);
        sem_post(&inside);              /* where there was no second barrier */
        return unused;
}

/* All objects but one are in this thread's slot. Returns the one. */
static void *set_up(void)
{
        struct sigaction on = { .sa_sigaction = on_membarrier, .sa_flags = SA_SIGINFO };
        void *objects[OBJECTS];

        sigaction(SIGSYS, &on, NULL);           /* cmocka has one of its own, in each test */
        assert_non_null(cache = stook_cache_create("evacuated", 64, NULL));
        assert_non_null(other = stook_cache_create("other", 96, NULL));
        stook_cache_free(other, stook_cache_alloc(other));
        for (unsigned i = 0; i < OBJECTS; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (unsigned i = 1; i < OBJECTS; i++)
                stook_cache_free(cache, objects[i]);
        barriers = 0;
        sem_init(&inside, 0, 0);
        sem_init(&leave, 0, 0);
        return objects[0];
}

static void sheaves_taken_off_go_to_the_childs_barns(void **state)
{
        void *object = set_up();
        pthread_t thread;
        int status = -1;
        pid_t child;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, evacuate, NULL), 0);
        await(&inside);
        assert_int_equal(barriers, 2);
        child = _Fork();
        assert_true(child >= 0);
        if (!child) {
                alarm(40);
                stook_cache_free(cache, object);
                stook_cache_shrink(other);      /* they are not those of this evacuation */
                _exit(stook_cache_destroy(other) || stook_cache_destroy(cache));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        sem_post(&leave);
        pthread_join(thread, NULL);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(other), 0);
}

static void sheaves_behind_no_barrier_are_not_touched(void **state)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };
        void *object = set_up();
        pthread_t thread;

        (void)state;
        stook_cache_free(cache, object);
        refused = true;
        assert_int_equal(pthread_create(&thread, NULL, evacuate, NULL), 0);
        sem_post(&leave);
        pthread_join(thread, NULL);
        assert_int_equal(barriers, 2);
        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        assert_true(s.slabs >= 1);              /* of which no object came back */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sheaves_taken_off_go_to_the_childs_barns),
                cmocka_unit_test(sheaves_behind_no_barrier_are_not_touched),
        };
        struct stook_mode mode = { .mode_size = sizeof(mode) };

        stook_get_mode(&mode);
        if (strcmp(mode.backend, "rseq")) {
                puts("no restartable sequences here, so evacuations make no membarrier");
                return 77;
        }
        if (!may_trap()) {
                puts("system calls cannot be trapped here");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
