/*
 * Proves of frees that wait for readers, at each instruction of the calls that make and wait for
 * them:
 *   (a) while a barrier for everything is there, another thread may destroy a cache that uses an
 *       RCU of its own, and make one at the same index that uses none;
 *   (b) a free may end with its thread;
 *   (c) or be jumped out of;
 *   (d) another thread may fork, by fork, _Fork or a raw clone: the child has no thread that was in
 *       the call.
 * In (b) to (d), what is freed afterwards becomes free, barriers end, caches that have lost nothing
 * can be destroyed, sheaves that stay open are submitted when they are old, and few objects are
 * lost. In (d) nothing is waited for.
 *
 * The RCU here has no readers: a grace period is over as soon as a call waits for it.
 *
 * Of (b) and (c) one case of many is run by default, from a start chosen by a seed, which is
 * printed and may be given in STOOK_SEED; STOOK_EVERY_INSTRUCTION=1 runs all.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <stook/debug.h>
#include <stook/rcu.h>
#include <stook/stook.h>
#include "base/compiler.h"
#include "base/inject.h"
#include "cache/cache.h"
#include "os/os.h"
#include "race/beside.h"
#include "race/breakpoint.h"
#include "race/forked.h"
#include "rcu/rcu_inside.h"

#if !defined(__x86_64__)
int main(void)
{
        puts("breakpoints are set on x86-64 only");
        return 77;
}
#else

#define SIZE     4096                   /* sheaves of four */
#define CAPACITY 4
/*
 * One case in so many, where not all are run: each is a process, and may wait for what does not
 * come.
 */
#define STRIDE   23
#define WAIT_MS  8
/*
 * What a call that does not return may have had in its hands: two sheaves, or a batch of a chain.
 */
#define LOST_MOST 40

static const char *path_name = "";
static unsigned at_instruction;
static size_t cases, faults;

static void fault(const char *what)
{
        if (faults++ < 20)
                printf("fault: %s: %s, instruction %u\n", what, path_name, at_instruction);
}

/* ---- an RCU ---- */

/* A head while it is the RCU's. */
struct waiting {
        struct waiting *next;
        void (*done)(struct stook_rcu_head *head);
};
static struct waiting *queue;           /* atomic */
static struct waiting *taken;           /* serving: of it; a child of a fork goes on with it */
static pthread_mutex_t serving = PTHREAD_MUTEX_INITIALIZER;

static void rcu_call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        struct waiting *at = (struct waiting *)head;

        at->done = done;
        at->next = __atomic_load_n(&queue, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&queue, &at->next, at, false, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
                ;
}

static void rcu_barrier(void)
{
        bool inside = breakpoints_inside;

        pthread_mutex_lock(&serving);
        if (!taken)
                taken = __atomic_exchange_n(&queue, NULL, __ATOMIC_ACQUIRE);
        while (taken) {
                struct waiting *now = taken;

                taken = now->next;
                breakpoints_inside = true;
                now->done((struct stook_rcu_head *)now);
                breakpoints_inside = inside;
        }
        pthread_mutex_unlock(&serving);
}

static const struct stook_rcu table = {
        .ops_size = sizeof(table), .call = rcu_call, .barrier = rcu_barrier,
};

/* ---- caches ---- */

static struct stook_cache *cache;

static struct stook_cache *make(uint64_t flags, const struct stook_rcu *rcu)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags, .rcu = rcu };
        struct stook_cache *made = stook_cache_create("rcu", SIZE, &args);

        if (!made)
                exit(1);
        return made;
}

static void free_some(unsigned n)
{
        while (n--)
                if (stook_cache_free_rcu(cache, stook_cache_alloc(cache)))
                        fault("a free was refused");
}

static void destroy(void)
{
        if (stook_cache_destroy(cache))
                fault("an object is left");
        cache = NULL;
}

/* ---- (a) ---- */

static unsigned remade;

static void remake(void)
{
        const struct stook_cache *old = cache;

        destroy();
        cache = make(0, NULL);
        if (cache != old)
                fault("made at another index");
}

static void act_remake(void)
{
        remade += beside_run(remake);
}

static void p_sheaf(void) { cache = make(0, &table); free_some(1); }
static void p_chain(void)
{
        cache = make(STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES, &table);
        free_some(1);
}
static void c_barrier(void) { (void)IN_LIBRARY((stook_rcu_barrier(), 0)); }

static void run_remake(const char *name, void (*prepare)(void))
{
        static struct steps steps;

        path_name = name;
        remade = 0;
        prepare();
        breakpoints_find(c_barrier, &steps);
        destroy();
        for (unsigned k = 0; k < steps.count; k++) {
                at_instruction = k;
                prepare();
                breakpoint_set(steps.at[k], act_remake);
                c_barrier();
                if (breakpoint_clear())
                        beside_join();
                destroy();
                cases++;
        }
        printf("  %-34s %4u instructions, made anew at %u\n", name, steps.count, remade);
        if (!remade)
                fault("never made anew");
}

/* ---- (b), (c) ---- */

static unsigned long seed, stride = STRIDE;

static void p_open(void) { cache = make(0, &table); }
static void p_fill(void) { cache = make(0, &table); free_some(CAPACITY - 1); }

/* Full sheaves that nolock calls deferred are submitted with the next. */
static void p_deferred(void)
{
        cache = make(0, &table);
        for (unsigned i = 0; i < 2 * CAPACITY + CAPACITY - 1; i++)
                if (stook_cache_free_rcu_nolock(cache, stook_cache_alloc(cache)))
                        fault("a free was refused");
}

/* A grace period for a chain, a sheaf, and the clock of open sheaves. */
static void p_grace(void)
{
        cache = make(STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES, &table);
        for (unsigned i = 0; i < 3; i++)
                if (stook_cache_free_rcu_nolock(cache, stook_cache_alloc(cache)))
                        fault("a free was refused");
        free_some(1);
}

static void p_behind(void)
{
        cache = make(STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES, &table);
        free_some(2);
}
static void p_first(void) { cache = make(STOOK_CACHE_RCU | STOOK_CACHE_NO_SHEAVES, &table); }

static struct stook_cache *other;
static void *object;
static void c_grace(void) { rcu_barrier(); }
static void c_free(void) { (void)IN_LIBRARY(stook_cache_free_rcu(cache, object)); }

static const struct path {
        const char *name;
        void (*prepare)(void), (*call)(void);
        bool forks_only;                /* the RCU here is not made for (b) and (c) */
} paths[] = {
        { "free: opens a sheaf", p_open, c_free, false },
        { "free: fills a sheaf", p_fill, c_free, false },
        { "free: submits what was deferred", p_deferred, c_free, false },
        { "free: first of a chain", p_first, c_free, false },
        { "free: behind a batch", p_behind, c_free, false },
        { "callbacks", p_grace, c_grace, true },
};

/* Bytes that still wait after another round of frees and barriers. */
static uint64_t round_of_frees(void)
{
        free_some(3 * CAPACITY);
        for (unsigned i = 0; i < 3 * CAPACITY; i++)
                if (stook_cache_free_rcu(other, stook_cache_alloc(other)))
                        fault("a free of the other cache was refused");
        stook_cache_rcu_barrier(cache);
        stook_rcu_barrier();
        return stook_rcu_backlog();
}

static uint32_t reports;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        reports += report->fault == STOOK_FAULT_RCU;
}

static void check_clock(void)
{
        const struct stook_slot_head *own = stook_slot_ops()->own();

        if (own && own->holder)           /* locked: a jump has left the slot taken */
                return;
        if (stook_cache_free_rcu(other, stook_cache_alloc(other)))
                fault("a free of the other cache was refused");
        stook_inject.rcu_rounds_at_once = 1;
        for (unsigned i = 0; i < 20; i++)
                rcu_barrier();
        if (stook_rcu_is_open(other->front.offset))
                fault("an open sheaf does not get old");
}

/* In a child, after a call that has not returned. Does not return. */
static void get_on(bool forked)
{
        uint64_t lost;
        int answer;

        dup2(open("/dev/null", O_WRONLY), 2);
        stook_transit_wait_ms = WAIT_MS;
        stook_on_report(note, NULL);
        reports = 0;
        lost = round_of_frees();
        if (forked && reports)
                fault("a wait for a thread that is not there");
        if (lost > LOST_MOST * SIZE)
                fault("much is lost");
        reports = 0;
        if (round_of_frees() > lost)
                fault("what was freed later waits, too");
        if (reports)
                fault("a wait for what was given up before");
        check_clock();
        if (stook_cache_destroy(other))
                fault("another cache cannot be destroyed");
        answer = stook_cache_destroy(cache);
        if (answer && answer != -EBUSY)
                fault("not the answer of a destroy");
        _exit(faults != 0);
}

static uint32_t over;                   /* atomic: the thread has ended, or was not interrupted */

static void act_end(void)
{
        __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&over);
        syscall(SYS_exit, 0);
}

static void *heir(void *unused)
{
        while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
                stook_os_futex_wait(&over, 0, 1000000000);
        get_on(false);
        return unused;
}

static sigjmp_buf away;

static void act_jump(void)
{
        siglongjmp(away, 1);
}

/*
 * Far below the frames of get_on. What a call was inside of heals once the thread calls from a
 * frame above it (rcu_transit.c), and compilers differ in how large the frames in between are.
 */
static STOOK_NOINLINE void call_from_below(const struct path *path)
{
        char below[4096];

        __asm__ volatile("" : : "r"(below) : "memory");
        path->call();
        __asm__ volatile("" : : "r"(below) : "memory");
}

static void in_child(const struct path *path, uint8_t *at, bool jumps)
{
        pthread_t thread;

        forked_child_begins();
        faults = 0;
        if (!jumps && pthread_create(&thread, NULL, heir, NULL))
                _exit(2);
        if (jumps && sigsetjmp(away, 1))
                get_on(false);
        breakpoint_set(at, jumps ? act_jump : act_end);
        call_from_below(path);
        breakpoint_clear();
        if (jumps)
                get_on(false);
        __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&over);
        for (;;)
                pause();
}

/* ---- (d) ---- */

static void get_on_forked(void)
{
        faults = 0;
        pthread_mutex_init(&serving, NULL);
        get_on(true);
}

static void act_fork(void)
{
        if (!forked_beside(get_on_forked))
                fault("after a fork beside it");
}

static void run_fork(const struct path *path, uint8_t *at)
{
        path->prepare();
        object = stook_cache_alloc(cache);
        breakpoint_set(at, act_fork);
        path->call();
        breakpoint_clear();
        if (path->call != c_free)
                stook_cache_free(cache, object);
        destroy();
}

static void run_end(const struct path *path, uint8_t *at, bool jumps)
{
        pid_t pid;

        path->prepare();
        object = stook_cache_alloc(cache);
        pid = fork();
        if (!pid)
                in_child(path, at, jumps);
        if (!forked_child_is_well(pid))
                fault(jumps ? "after a jump out of it" : "after the end of its thread");
        stook_cache_free(cache, object);
        destroy();
}

static void run_path(const struct path *path)
{
        static unsigned long counter;
        static struct steps steps;
        size_t before = cases;

        path_name = path->name;
        path->prepare();
        object = stook_cache_alloc(cache);
        breakpoints_find(path->call, &steps);
        if (path->call != c_free)
                stook_cache_free(cache, object);
        destroy();
        for (unsigned k = 0; k < steps.count * 4; k++) {
                if (counter++ % stride != seed % stride || (path->forks_only && !(k & 2)))
                        continue;
                at_instruction = k / 4;
                if (k & 2)
                        run_fork(path, steps.at[k / 4]);
                else
                        run_end(path, steps.at[k / 4], k & 1);
                cases++;
        }
        printf("  %-34s %4u instructions, %zu cases\n", path->name, steps.count, cases - before);
}

int main(int argc, char **argv)
{
        const char *only = argc > 1 ? argv[1] : "", *given = getenv("STOOK_SEED");
        const char *every = getenv("STOOK_EVERY_INSTRUCTION");
        struct timespec now;

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (!beside_start())
                return 1;
        if (!breakpoints_start()) {
                puts("text cannot be written to here");
                return 77;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        seed = given ? strtoul(given, NULL, 0) : (unsigned long)now.tv_nsec;
        stride = every ? strtoul(every, NULL, 0) : STRIDE;
        stride += !stride;
        printf("seed %lu, one case in %lu\n", seed, stride);
        other = make(0, &table);
        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(paths); i++)
                if (strstr(paths[i].name, only))
                        run_path(&paths[i]);
        if (strstr("barrier", only)) {
                run_remake("barrier, cache made anew", p_sheaf);
                run_remake("barrier, chain made anew", p_chain);
        }
        if (stook_rcu_backlog())
                fault("something waits for ever");
        printf("%zu cases, %zu faults\n", cases, faults);
        return faults != 0;
}
#endif
