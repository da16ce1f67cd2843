/*
 * Proves of the records of readers (src/epoch/readers.c), beside what tests/race/epoch.c proves:
 *  - a thread that vanishes in a child of _Fork, while it finds out how things are done, holds
 *    nothing up; nor does it in the parent;
 *  - threads for which there was no memory for a record count each its own sections; a child has
 *    only those of the thread that forked, and the end of a thread ends its own;
 *  - a child forked by a handler in the midst of such a thread's unlock is inside of what is left;
 *  - a wait waits for sections that began before it, and not for those that began after; in a child
 *    the records of the threads that it has not serve others;
 *  - a membarrier that is refused after readers came is an error of each wait, and is told once.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>
#include "asleep.h"
#include "base/inject.h"
#include "epoch/epoch.h"
#include "pages/meta.h"

/* A minute at most. */
static void wait_for(const unsigned *word, unsigned wanted)
{
        for (unsigned i = 0; i < 60000 && __atomic_load_n(word, __ATOMIC_ACQUIRE) < wanted; i++)
                usleep(1000);
}

static void raise_to(unsigned *word, unsigned value)
{
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void assert_child_says(pid_t child, int wanted)
{
        int status;

        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), wanted);
}

/* ---- finding out ---- */

static unsigned stall, stalled, go;     /* atomic */

/* The library's is this one: it stops a thread in the middle of the first section. */
int pthread_key_create(pthread_key_t *key, void (*end)(void *value))
{
        int (*libc_s)(pthread_key_t *, void (*)(void *)) = NULL;

        *(void **)&libc_s = dlsym(RTLD_NEXT, "pthread_key_create");
        if (__atomic_exchange_n(&stall, 0, __ATOMIC_ACQ_REL)) {
                raise_to(&stalled, 1);
                wait_for(&go, 1);
        }
        return libc_s(key, end);
}

static unsigned keys_dropped;

/* The library's is this one: it counts. */
int pthread_key_delete(pthread_key_t key)
{
        int (*libc_s)(pthread_key_t) = NULL;

        *(void **)&libc_s = dlsym(RTLD_NEXT, "pthread_key_delete");
        __atomic_fetch_add(&keys_dropped, 1, __ATOMIC_RELAXED);
        return libc_s(key);
}

static void *read_once(void *unused)
{
        stook_epoch_read_lock();
        stook_epoch_read_unlock();
        return unused;
}

/* The first test: no thread has read yet. */
static void test_a_thread_that_finds_out_holds_no_other_up(void **state)
{
        pthread_t first;
        pid_t child;

        (void)state;
        stook_free(stook_malloc(1));    /* starts the library, which makes keys of its own */
        raise_to(&stall, 1);
        assert_int_equal(pthread_create(&first, NULL, read_once, NULL), 0);
        wait_for(&stalled, 1);
        assert_int_equal(stalled, 1);
        child = _Fork();
        if (!child) {
                alarm(60);
                read_once(NULL);
                _exit(stook_epoch_synchronize() ? 1 : 7);
        }
        assert_child_says(child, 7);
        read_once(NULL);
        assert_int_equal(stook_epoch_synchronize(), 0);
        raise_to(&go, 1);
        pthread_join(first, NULL);
        assert_int_equal(keys_dropped, 1);              /* one of the two keys serves */
        assert_int_equal(stook_epoch_synchronize(), 0);
}

/* ---- the crowd ---- */

static unsigned forks;                  /* atomic */
static pid_t forked = -1;

/* The library's is this one: it forks where a handler may, behind the store. */
int pthread_setspecific(pthread_key_t key, const void *value)
{
        int (*libc_s)(pthread_key_t, const void *) = NULL;
        int error;

        *(void **)&libc_s = dlsym(RTLD_NEXT, "pthread_setspecific");
        error = libc_s(key, value);
        if (__atomic_exchange_n(&forks, 0, __ATOMIC_ACQ_REL))
                forked = fork();
        return error;
}

static unsigned inside, leave;          /* atomic */

static void *stay(void *unused)
{
        stook_epoch_read_lock();
        raise_to(&inside, 1);
        wait_for(&leave, 1);
        stook_epoch_read_unlock();
        return unused;
}

static unsigned reports;                /* atomic */

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        if (report->fault == STOOK_FAULT_RCU)
                __atomic_fetch_add(&reports, 1, __ATOMIC_RELAXED);
}

static void *end_inside(void *unused)
{
        stook_epoch_read_lock();
        stook_epoch_read_lock();
        return unused;
}

/* 7: the child's only thread goes on with its own sections, and with no other thread's. */
static int leave_in_child(void)
{
        alarm(60);
        if (stook_rcu_epoch.may_wait() || stook_epoch_synchronize() != -EDEADLK)
                return 1;
        stook_epoch_read_unlock();
        if (stook_rcu_epoch.may_wait())
                return 2;
        stook_epoch_read_unlock();
        if (!stook_rcu_epoch.may_wait() || stook_epoch_synchronize())
                return 3;
        return 7;
}

static unsigned over;                   /* atomic */
static pid_t waiter;                    /* atomic */

static void *synchronize(void *unused)
{
        tell_tid(&waiter);
        if (!stook_epoch_synchronize())
                raise_to(&over, 1);
        return unused;
}

/* 7: a wait of another thread's lasts until the section that is left ends. */
static int is_waited_for(void)
{
        pthread_t other;

        alarm(60);
        if (pthread_create(&other, NULL, synchronize, NULL))
                return 1;
        wait_until_asleep(&waiter, &over);
        if (__atomic_load_n(&over, __ATOMIC_ACQUIRE))
                return 2;
        stook_epoch_read_unlock();
        pthread_join(other, NULL);
        return __atomic_load_n(&over, __ATOMIC_ACQUIRE) ? 7 : 3;
}

/* A thread without a record. */
static void *fork_in_unlock(void *unused)
{
        stook_epoch_read_lock();
        stook_epoch_read_lock();
        raise_to(&forks, 1);
        stook_epoch_read_unlock();
        if (!forked)
                _exit(is_waited_for());
        assert_child_says(forked, 7);
        stook_epoch_read_unlock();
        return unused;
}

/* A thread without a record, beside another one that is inside a section. */
static void *be_crowded(void *unused)
{
        pthread_t other;
        pid_t child;

        inside = leave = 0;
        assert_int_equal(pthread_create(&other, NULL, stay, NULL), 0);
        wait_for(&inside, 1);
        assert_int_equal(stook_rcu_epoch.may_wait(), 2);
        stook_epoch_read_lock();
        stook_epoch_read_lock();
        child = fork();
        if (!child)
                _exit(leave_in_child());
        assert_child_says(child, 7);
        stook_epoch_read_unlock();
        stook_epoch_read_unlock();
        reports = 0;
        stook_epoch_read_unlock();
        assert_int_equal(reports, 1);
        raise_to(&leave, 1);
        pthread_join(other, NULL);
        assert_int_equal(stook_epoch_synchronize(), 0);
        return unused;
}

/* ---- what a wait waits for ---- */

static unsigned step;                   /* atomic: of the two readers */

static void *read_late(void *unused)
{
        stook_epoch_read_lock();        /* its record is listed before the other's */
        stook_epoch_read_unlock();
        raise_to(&step, 1);
        wait_for(&step, 3);
        stook_epoch_read_lock();
        raise_to(&step, 4);
        wait_for(&step, 6);
        stook_epoch_read_unlock();
        return unused;
}

static void *read_early(void *unused)
{
        wait_for(&step, 1);
        stook_epoch_read_lock();
        raise_to(&step, 2);
        wait_for(&step, 5);
        stook_epoch_read_unlock();
        return unused;
}

static void *wait_for_readers(void *unused)
{
        tell_tid(&waiter);
        if (stook_readers_wait())
                raise_to(&over, 1);
        return unused;
}

/* The second section begins when the wait has begun, and lasts longer. */
static int wait_beside_readers(void)
{
        pthread_t early, late, other;

        alarm(60);
        over = step = 0;
        waiter = 0;
        if (pthread_create(&late, NULL, read_late, NULL))
                return 1;
        wait_for(&step, 1);
        if (pthread_create(&early, NULL, read_early, NULL))
                return 1;
        wait_for(&step, 2);
        if (pthread_create(&other, NULL, wait_for_readers, NULL))
                return 1;
        wait_until_asleep(&waiter, &over);
        if (__atomic_load_n(&over, __ATOMIC_ACQUIRE))
                return 2;
        raise_to(&step, 3);
        wait_for(&step, 4);
        raise_to(&step, 5);
        pthread_join(other, NULL);
        if (!over)
                return 3;
        raise_to(&step, 6);
        pthread_join(early, NULL);
        pthread_join(late, NULL);
        return 7;
}

/* In children: the last test counts the records that there are. */
static void test_a_wait_is_for_earlier_sections(void **state)
{
        pid_t child = fork();

        (void)state;
        if (!child)
                _exit(wait_beside_readers());
        assert_child_says(child, 7);
}

#define READERS 8

static void *stay_with_others(void *unused)
{
        stook_epoch_read_lock();
        __atomic_fetch_add(&inside, 1, __ATOMIC_RELEASE);
        wait_for(&leave, 1);
        stook_epoch_read_unlock();
        return unused;
}

/* 7: as many threads as its parent had take no more memory. */
static int read_in_child(void)
{
        size_t before = stook_meta_bytes();
        pthread_t threads[READERS];
        pthread_attr_t larger;          /* than stacks of the parent's, which serve again, too */

        alarm(60);
        if (stook_epoch_synchronize() || pthread_attr_init(&larger) ||
            pthread_attr_setstacksize(&larger, (size_t)16 << 20))
                return 1;
        inside = 0;
        for (unsigned i = 0; i < READERS; i++)
                if (pthread_create(&threads[i], &larger, stay_with_others, NULL))
                        return 2;
        wait_for(&inside, READERS);
        raise_to(&leave, 1);
        for (unsigned i = 0; i < READERS; i++)
                pthread_join(threads[i], NULL);
        return stook_meta_bytes() == before ? 7 : 3;
}

static int fork_beside_readers(void)
{
        pthread_t threads[READERS];
        int status;
        pid_t child;

        alarm(60);
        inside = leave = 0;
        for (unsigned i = 0; i < READERS; i++)
                if (pthread_create(&threads[i], NULL, stay_with_others, NULL))
                        return 4;
        wait_for(&inside, READERS);
        child = fork();
        if (!child)
                _exit(read_in_child());
        if (waitpid(child, &status, 0) != child || status != 7 << 8)
                return 5;
        raise_to(&leave, 1);
        for (unsigned i = 0; i < READERS; i++)
                pthread_join(threads[i], NULL);
        return stook_epoch_synchronize() ? 6 : 7;
}

static void test_records_serve_again_in_a_child(void **state)
{
        pid_t child = fork();

        (void)state;
        if (!child)
                _exit(fork_beside_readers());
        assert_child_says(child, 7);
}

static bool refuse_membarrier(void)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = 4, .filter = filter };

        return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
               !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* 7: so it is; or it cannot be refused here, or readers have fences all the time. */
static int refused_in_child(void)
{
        alarm(60);
        if (!refuse_membarrier() || !stook_epoch_synchronize())
                return 7;
        for (unsigned i = 0; i < 3; i++)
                if (stook_epoch_synchronize() != -ENOTSUP)
                        return 1;
        return reports == 1 ? 7 : 2;
}

static void test_a_refused_membarrier_is_told_once(void **state)
{
        pid_t child;

        (void)state;
        read_once(NULL);
        stook_on_report(note, NULL);
        reports = 0;
        child = fork();
        if (!child)
                _exit(refused_in_child());
        assert_child_says(child, 7);
        stook_on_report(NULL, NULL);
}

static void use_up_memory(void)
{
        __atomic_store_n(&stook_inject.commit_fail_from, 1, __ATOMIC_RELAXED);
        while (stook_meta_bump(64, 64))
                ;
}

static void test_threads_without_records_count_their_own_sections(void **state)
{
        pthread_t crowded, ended;

        (void)state;
        stook_on_report(note, NULL);
        inside = leave = 0;
        assert_int_equal(pthread_create(&crowded, NULL, stay, NULL), 0);
        wait_for(&inside, 1);           /* with the record of the thread that ended */
        use_up_memory();
        assert_int_equal(pthread_create(&ended, NULL, be_crowded, NULL), 0);
        pthread_join(ended, NULL);
        assert_int_equal(pthread_create(&ended, NULL, fork_in_unlock, NULL), 0);
        pthread_join(ended, NULL);
        reports = 0;
        assert_int_equal(pthread_create(&ended, NULL, end_inside, NULL), 0);
        pthread_join(ended, NULL);
        assert_int_equal(reports, 1);
        raise_to(&leave, 1);
        pthread_join(crowded, NULL);
        assert_int_equal(stook_epoch_synchronize(), 0);
        stook_on_report(NULL, NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_thread_that_finds_out_holds_no_other_up),
                cmocka_unit_test(test_a_wait_is_for_earlier_sections),
                cmocka_unit_test(test_records_serve_again_in_a_child),
                cmocka_unit_test(test_a_refused_membarrier_is_told_once),
                cmocka_unit_test(test_threads_without_records_count_their_own_sections),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
