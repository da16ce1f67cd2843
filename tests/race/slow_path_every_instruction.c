/*
 * Proves that the slow calls of allocation and free may be interrupted at each of their
 * instructions.
 *
 * The test steps once through every path of slow_paths.c and slow_paths_slabs.c, for the list of
 * its instructions. Then, for each instruction in turn, it prepares the path again and sets a
 * breakpoint there, whose handler
 *   (a) allocates and frees, from the same caches and from malloc, in several ways;
 *   (b) moves the thread to the other CPU, while a second thread uses the slot that it leaves;
 *   (c) forks: by fork, _Fork and a raw clone. The child completes the call and must be whole to
 *       the object;
 *   (d) ends the thread for good, in a child that has a second thread, which must get on, and find
 *       no object twice.
 * After (a) to (c) all invariants of the heap hold and not one object is lost; after (d) few are.
 *
 * A full run is some hundred thousand cases: STOOK_EVERY_INSTRUCTION=1,1, or 1,8 for every eighth
 * of (c) and (d) only. By default one case of many is run, from a start chosen by a seed. The test
 * prints the seed, and STOOK_SEED sets it.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "os/os.h"
#include "race/breakpoint.h"
#include "race/forked.h"
#include "race/slow_paths.h"

#if !defined(__x86_64__)
int main(void)
{
        puts("breakpoints are set on x86-64 only");
        return 77;
}
#else

/*
 * One case in so many, where not all are run: (a) and (b) cost some 50 microseconds, (c) and (d) 2
 * milliseconds.
 */
#define STRIDE_HANDLERS 97
#define STRIDE_FORKS    2999
/*
 * What a thread that ends for good may have had in its hands: two sheaves, or a slab, or a bulk
 * call's objects.
 */
#define LOST_MOST 40

static size_t cases, reached, aborts, forks, ends, lost_most;
static struct steps steps;

/* ---- (a) ---- */

static void act_pair(void)
{
        for (unsigned i = 0; i < HANDS; i++)
                if (take_one(hands_all[i]))
                        give_one(hands_all[i]);
}

static void act_take(void)
{
        for (unsigned i = 0; i < 3; i++)
                take_one(&sheaved);
        for (unsigned i = 1; i < HANDS; i++)
                take_one(hands_all[i]);
}

static void act_give(void)
{
        for (unsigned i = 0; i < 3; i++)
                give_one(&sheaved);
        for (unsigned i = 1; i < HANDS; i++)
                give_one(hands_all[i]);
}

static void act_take_many(void)
{
        for (unsigned i = 0; i < 20 * HANDS; i++)
                take_one(hands_all[i % HANDS]);
}

static void act_give_all(void)
{
        for (unsigned i = 0; i < HANDS; i++)
                while (give_one(hands_all[i]))
                        ;
}

static void act_nolock(void)
{
        for (unsigned i = 0; i < 6 * HANDS; i++)
                take_one_nolock(hands_all[i % HANDS]);
        for (unsigned i = 0; i < 8 * HANDS; i++)
                give_one_nolock(hands_all[i % HANDS]);
}

/* ---- (b) ---- */

static int home_cpu, other_cpu = -1;
static uint32_t orders, done; /* atomic: rounds asked of the second thread, and made by it */

static void move_to(int cpu)
{
        cpu_set_t set;

        if (cpu < 0)
                return;
        CPU_ZERO(&set);
        CPU_SET((size_t)cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
}

static void churn(void)
{
        void *mine[9];

        for (unsigned i = 0; i < 9; i++)
                mine[i] = stook_cache_alloc(i % 3 ? sheaved.cache : bare.cache);
        for (unsigned i = 0; i < 9; i++)
                stook_cache_free(i % 3 ? sheaved.cache : bare.cache, mine[i]);
}

/*
 * Two rounds for each order: one while the other thread waits in its handler, one while it goes on.
 */
static void *second_thread(void *unused)
{
        (void)unused;
        move_to(home_cpu);
        for (;;) {
                uint32_t asked = __atomic_load_n(&orders, __ATOMIC_ACQUIRE);

                if (asked == __atomic_load_n(&done, __ATOMIC_RELAXED)) {
                        stook_os_futex_wait(&orders, asked, 1000000000);
                        continue;
                }
                churn();
                __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
                stook_os_futex_wake(&done);
        }
        return NULL;
}

static void await(uint32_t rounds)
{
        uint32_t now;

        while ((int32_t)(rounds - (now = __atomic_load_n(&done, __ATOMIC_ACQUIRE))) > 0)
                stook_os_futex_wait(&done, now, 1000000000);
}

static void act_migrate(void)
{
        move_to(other_cpu);
        __atomic_add_fetch(&orders, 2, __ATOMIC_RELEASE);
        stook_os_futex_wake(&orders);
        await(__atomic_load_n(&orders, __ATOMIC_RELAXED) - 1);
        act_pair();
}

/* ---- (c) ---- */

static bool is_child;

static void act_fork(void)
{
        pid_t pid = forked_by_turns();

        forks++;
        if (pid == 0) {
                slow_path_faults = 0;
                is_child = true;
                act_pair();
                use_malloc();
                act_take_many();
                return;
        }
        if (!forked_child_is_well(pid))
                slow_path_fault("a child is not whole");
}

/* ---- (d) ---- */

static uint32_t over; /* atomic: 1 the thread has ended, 2 it was not interrupted */

static void act_end(void)
{
        __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&over);
        syscall(SYS_exit, 0);
}

static void *heir(void *unused)
{
        size_t lost;

        while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
                stook_os_futex_wait(&over, 0, 1000000000);
        slow_paths_hooks_off();
        for (unsigned round = 0; round < 2; round++) {
                /* Few: a lock that the other one died with is waited for by each, 1 ms. */
                for (unsigned i = 0; i < 12; i++)
                        take_one(hands_all[i % HANDS]);
                for (unsigned i = 0; i < HANDS; i++) {
                        check_hands(hands_all[i]);
                        if (!hands_all[i]->count)
                                slow_path_fault("no progress after another thread's end");
                }
                use_malloc();
                act_give_all();
        }
        if (over == 2)
                check_heap();
        lost = objects_lost();
        _exit(slow_path_faults ? 255 : lost > 254 ? 254 : (int)lost);
        return unused;
}

/* ---- cases ---- */

struct act {
        const char *name;
        void (*run)(void);
};
static const struct act handlers[] = {
        { "pair", act_pair },           { "take", act_take },         { "give", act_give },
        { "take many", act_take_many }, { "give all", act_give_all }, { "nolock", act_nolock },
        { "malloc", use_malloc },       { "migrate", act_migrate },
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void name_case(const struct slow_path *path, const char *act, unsigned k)
{
        static char where[128];

        snprintf(where, sizeof(where), "%s, then %s", path->name, act);
        slow_path_where = where;
        slow_path_at = k;
}

static void run_case(const struct slow_path *path, const char *name, void (*act)(void), unsigned k)
{
        name_case(path, name, k);
        slow_paths_clean();
        path->prepare();
        breakpoint_set(steps.at[k], act);
        path->call();
        reached += breakpoint_clear();
        aborts += breakpoint_aborted();
        if (is_child) {                 /* of (c): its other thread is gone, and nothing with it */
                slow_paths_clean();
                check_heap();
                _exit(slow_path_faults != 0);
        }
        await(__atomic_load_n(&orders, __ATOMIC_RELAXED));
        move_to(home_cpu);
        cases++;
        slow_paths_clean();
        check_heap();
}

static void run_end(const struct slow_path *path, unsigned k)
{
        pthread_t thread;
        int status = 0;
        pid_t pid;

        name_case(path, "end of the thread", k);
        slow_paths_clean();
        path->prepare();
        pid = fork();
        if (pid == 0) {
                forked_child_begins();
                slow_path_faults = 0;
                if (pthread_create(&thread, NULL, heir, NULL))
                        _exit(255);
                breakpoint_set(steps.at[k], act_end);
                path->call();
                breakpoint_clear();
                __atomic_store_n(&over, 2, __ATOMIC_RELEASE);
                stook_os_futex_wake(&over);
                for (;;)
                        pause();
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
            WEXITSTATUS(status) > LOST_MOST) {
                printf("child: status 0x%x\n", (unsigned)status);
                slow_path_fault("the others do not get on");
        } else if ((size_t)WEXITSTATUS(status) > lost_most) {
                lost_most = (size_t)WEXITSTATUS(status);
        }
        ends++;
        cases++;
}

static unsigned long seed;
static unsigned long of_handled = STRIDE_HANDLERS, of_forked = STRIDE_FORKS;

/* Is it the turn of the next case? */
static bool turn(unsigned long *counter, unsigned long stride)
{
        return (*counter)++ % stride == seed % stride;
}

static void run_path(const struct slow_path *path)
{
        static unsigned long handled, forked, ended;
        size_t before = cases;

        name_case(path, "nothing", 0);
        slow_paths_clean();
        path->prepare();
        breakpoints_find(path->call, &steps);
        slow_paths_clean();
        check_heap();
        for (unsigned k = 0; k < steps.count; k++) {
                for (unsigned i = 0; i < COUNT(handlers); i++)
                        if (turn(&handled, of_handled))
                                run_case(path, handlers[i].name, handlers[i].run, k);
                for (unsigned i = 0; i < 3; i++)
                        if (turn(&forked, of_forked))
                                run_case(path, "fork", act_fork, k);
                if (turn(&ended, of_forked))
                        run_end(path, k);
        }
        slow_paths_give_pages();
        printf("  %-34s %4u instructions, %6zu cases\n", path->name, steps.count, cases - before);
}

int main(int argc, char **argv)
{
        const char *only = argc > 1 ? argv[1] : NULL, *given = getenv("STOOK_SEED"),
                   *how = getenv("STOOK_EVERY_INSTRUCTION");
        struct timespec now;
        pthread_t second;
        cpu_set_t set;

        setvbuf(stdout, NULL, _IOLBF, 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
        seed = given ? strtoul(given, NULL, 0) : (unsigned long)now.tv_nsec;
        if (how && sscanf(how, "%lu,%lu", &of_handled, &of_forked) != 2) {
                puts("STOOK_EVERY_INSTRUCTION is two numbers, as 1,8");
                return 1;
        }
        sched_getaffinity(0, sizeof(set), &set);
        home_cpu = sched_getcpu();
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET((size_t)cpu, &set) && cpu != home_cpu)
                        other_cpu = cpu;
        move_to(home_cpu);
        if (!slow_paths_start() || !breakpoints_start()) {
                puts("text cannot be written to here");
                return 77;
        }
        if (pthread_create(&second, NULL, second_thread, NULL))
                return 1;
        of_handled += !of_handled;
        of_forked += !of_forked;
        printf("seed %lu, one case in %lu, of forks and ends in %lu\n", seed, of_handled,
               of_forked);
        for (unsigned i = 0; i < slow_path_count; i++)
                if (!only || strstr(slow_paths[i].name, only))
                        run_path(&slow_paths[i]);
        for (unsigned i = 0; i < slow_path_slabs_count; i++)
                if (!only || strstr(slow_paths_slabs[i].name, only))
                        run_path(&slow_paths_slabs[i]);
        printf("%zu cases: %zu breakpoints reached, %zu aborts, %zu forks, "
               "%zu ends of a thread (at most %zu objects lost), %u faults\n",
               cases, reached, aborts, forks, ends, lost_most, slow_path_faults);
        return slow_path_faults || !reached;
}
#endif
