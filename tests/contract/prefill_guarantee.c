/*
 * What this proves: after stook_sheaf_prefill(cache, n) succeeds, n calls of stook_sheaf_alloc
 * succeed while all of this holds at once:
 *  - the page layer fails every request;
 *  - stopped threads hold every lock of the library: each partial list's, the pages', the slots'
 *    words of the locked backend, that of growing slots, and the two mutexes that wait (their
 *    holder was stopped inside an evacuation);
 *  - the caller is a signal handler that has interrupted the caller's own critical section;
 *  - any system call kills the process.
 * The sheaves are one of the slot, one made to measure, and one of a cache without sheaves. Objects
 * are zeroed and charged, too. Calls are out of line and inlined. Each call runs the same few
 * instructions, which the test counts one by one.
 * Each case is a child process. A control shows that an ordinary allocation fails there.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "cache/cache.h"
#include "pages/span.h"
#include "slot/slot_regions.h"
#include "trap_flag.h"
#include <stook/inline.h>               /* after what defines sections for inside */

#define LOAD_NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define LENT_MAX 2000

/* This thread only: @answer for the calls in @numbers, @others for the rest. */
static void install(const int *numbers, unsigned count, uint32_t answer, uint32_t others)
{
        struct sock_filter filter[16] = { LOAD_NUMBER };
        struct sock_fprog  program = { .filter = filter };
        unsigned short     n = 1;

        for (unsigned i = 0; i < count; i++) {
                filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                           (uint32_t)numbers[i], 0, 1);
                filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
        }
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
        program.len = n;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
                _exit(77);
}

static const struct lent_case {
        const char *name;
        uint64_t cache_flags;
        size_t   n;
        unsigned flags;
} cases[] = {
        { "the slot's sheaf", 0, 60, 0 },
        { "made to measure", 0, LENT_MAX, 0 },
        { "a cache without sheaves", STOOK_CACHE_NO_SHEAVES, 25, 0 },
        { "zeroed objects", 0, 60, STOOK_ALLOC_ZERO },
        { "objects charged to a group, beyond its limit", STOOK_CACHE_ACCOUNT, 60, 0 },
};

enum how { OUT_OF_LINE, INLINED, CONTROL };

static struct stook_cache *cache, *evacuated;
static struct stook_sheaf *sheaf;
static size_t wanted;
static bool   zeroed;
static enum how how;
static void  *objects[LENT_MAX];
static uint32_t stopped;                /* atomic: threads that are where they stay */

/* ---- the threads that hold everything ---- */

static void stop_for_good(int signal)
{
        (void)signal;
        __atomic_fetch_add(&stopped, 1, __ATOMIC_RELEASE);
        for (;;)
                pause();
}

/*
 * Stopped inside an evacuation, which holds the registry's and its own mutex: where it asks for its
 * barrier, or sleeps for a slot's word.
 */
static void *hold_most_locks(void *nothing)
{
        static const int in_evacuation[] = { SYS_membarrier, SYS_futex };
        struct stook_cache *at = NULL;

        (void)nothing;
        stook_registry_wait();
        while ((at = stook_registry_next(at)))
                if (!stook_slabs_fork_prepare(&at->slabs))
                        _exit(96);
        stook_registry_unlock();
        if (!stook_pages_fork_prepare())
                _exit(95);
        for (unsigned slot = stook_regions.rseq_slots; slot < stook_slots_bound(); slot++)
                if (stook_slots_head(slot))
                        __atomic_store_n(&stook_slots_head(slot)->holder, 1, __ATOMIC_RELEASE);
        install(in_evacuation, 2, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
        stook_cache_shrink(evacuated);
        _exit(94);
}

/* Stopped where the slots' regions grow, which takes memory from the system. */
static void *hold_the_lock_of_growth(void *nothing)
{
        static const int in_a_commit[] = { SYS_mmap, SYS_mprotect, SYS_madvise };

        (void)nothing;
        install(in_a_commit, 3, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW);
        stook_slots_add_cache(STOOK_CACHES_MAX - 1);
        _exit(92);
}

static void start_holder(void *(*body)(void *))
{
        uint32_t before = __atomic_load_n(&stopped, __ATOMIC_ACQUIRE);
        pthread_t thread;

        if (pthread_create(&thread, NULL, body, NULL))
                _exit(77);
        while (__atomic_load_n(&stopped, __ATOMIC_ACQUIRE) == before)
                sched_yield();
}

/* ---- the caller ---- */

static bool all_good(void)
{
        for (size_t i = 0; i < wanted; i++) {
                unsigned char *object = how == INLINED ? stook_sheaf_alloc_inline(cache, sheaf) :
                                        how == OUT_OF_LINE ? stook_sheaf_alloc(cache, sheaf) :
                                        stook_cache_alloc(cache);

                if (!object)
                        return false;
                for (int byte = 0; byte < 64; byte++)
                        if (zeroed && object[byte])
                                return false;
                memset(object, 0x5a, 64);
                objects[i] = object;
        }
        return true;
}

static void in_a_handler(int signal)
{
        (void)signal;
        syscall(SYS_exit_group, all_good() ? 0 : 1);
}

static void body(const struct lent_case *c)
{
        static const int end[] = { SYS_exit_group };
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = c->cache_flags };

        cache = stook_cache_create(c->name, 64, &args);
        evacuated = stook_cache_create("evacuated", 64, NULL);
        /* Some traffic before, so that it is no fresh memory that reads as zero. */
        if (!cache || !evacuated || stook_cache_alloc_bulk(cache, 0, LENT_MAX, objects))
                _exit(98);
        for (int i = 0; i < LENT_MAX; i++)
                memset(objects[i], 0xa5, 64);
        stook_cache_free_bulk(cache, LENT_MAX, objects);
        stook_cache_free(
                evacuated,
                stook_cache_alloc(evacuated)); /* now there is a slot to grow and to evacuate */
        wanted = c->n;
        zeroed = c->flags & STOOK_ALLOC_ZERO;
        sheaf = stook_sheaf_prefill(cache, c->flags, wanted);
        if (!sheaf)
                _exit(97);
        if (c->cache_flags & STOOK_CACHE_ACCOUNT) {
                struct stook_group *group = stook_group_create("small", NULL, 1024);

                if (!group || stook_group_enter(group))
                        _exit(91);
        }
        if (how == CONTROL) {
                stook_cache_shrink(cache);
                wanted = LENT_MAX;
        }
        signal(SIGSYS, stop_for_good);
        signal(SIGTRAP, in_a_handler);
        start_holder(hold_the_lock_of_growth);
        start_holder(hold_most_locks);
        if (stook_slabs_fork_prepare(&cache->slabs) || stook_pages_fork_prepare())
                _exit(93);              /* not held after all */
        stook_inject.span_fail_from = 1;
        install(end, 1, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
        /* A signal without a system call. */
#if defined(__x86_64__)
        __asm__ volatile("int3");
#else
        __asm__ volatile("brk #0");
#endif
        _exit(90);
}

static int in_child(const struct lent_case *c)
{
        pid_t child = fork();
        int   status;

        assert_true(child >= 0);
        if (!child) {
                setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
                alarm(50);
                body(c);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip();                                         /* no filters here */
        return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void nothing_stops_them(void **state)
{
        (void)state;
        for (how = OUT_OF_LINE; how <= INLINED; how++)
                for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
                        int status = in_child(&cases[c]);

                        if (status)
                                fail_msg("%s, %s: %d", cases[c].name,
                                         how == INLINED ? "inlined" : "called", status);
                }
}

/* NULL, for the page layer fails, or killed for the call that waits for a lock. */
static void an_ordinary_allocation_is_stopped(void **state)
{
        int end;

        (void)state;
        how = CONTROL;
        end = in_child(&cases[0]);
        assert_true(end == 1 || end == 1000 + SIGSYS);
}

#if defined(__x86_64__)
static unsigned steps;

static void at_each_instruction(int signal)
{
        (void)signal;
        steps++;
}

static void *alloc_in_steps(void)
{
        void *object;

        TRAP_FLAG_ON();
        object = stook_sheaf_alloc(cache, sheaf);
        TRAP_FLAG_OFF();
        return object;
}

static void each_takes_the_same_few_instructions(void **state)
{
        unsigned first = 0;

        (void)state;
        cache = stook_cache_create("steps", 64, NULL);
        sheaf = stook_sheaf_prefill(cache, 0, LENT_MAX);
        assert_non_null(sheaf);
        signal(SIGTRAP, at_each_instruction);
        for (int i = 0; i < LENT_MAX; i++) {
                steps = 0;
                objects[i] = alloc_in_steps();
                assert_non_null(objects[i]);
                first = first ? first : steps;
                assert_int_equal(steps, first);
        }
        assert_null(alloc_in_steps());
        signal(SIGTRAP, SIG_DFL);
        print_message("%u instructions, those of the call and of the trap flag included\n", first);
        assert_in_range(first, 8, 40);
        stook_cache_free_bulk(cache, LENT_MAX, objects);
        stook_sheaf_return(cache, sheaf);
        assert_int_equal(stook_cache_destroy(cache), 0);
}
#endif

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_stops_them),
                cmocka_unit_test(an_ordinary_allocation_is_stopped),
#if defined(__x86_64__)
                cmocka_unit_test(each_takes_the_same_few_instructions),
#endif
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
