/*
 * What this proves: signal handlers may jump out of malloc and free (siglongjmp), some hundred
 * times in two threads. That costs the objects that the calls held, and nothing else. locks_held
 * comes down again (base/lock.h I4), memory stays bounded while the threads go on, and an
 * evacuation does not wait for every slot that a jump left. The same holds in children that a
 * thread makes by _Fork just after its jump, with locks_held raised, and with handlers on an
 * alternate stack. The instruction that a jump leaves is chance here; slow_path_every_instruction.c
 * has each of them.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stook/control.h>
#include <stook/malloc.h>

#include "base/inject.h"
#include "base/lock.h"
#include "base/thread.h"
#include "evacuate/evacuate.h"
#include "os/os.h"
#include "pages/span.h"
#include "slot/slot_regions.h"

#define THREADS 2
#define JUMPS   200
#define CHILDREN 4
#define HELD    400
#define ROUNDS  200000                  /* after the last jump */
/*
 * 17 MiB live in each thread as a rule, 118 if all were of the largest size; and what the jumps
 * lose.
 */
#define MOST    ((size_t)256 << 20)

static const size_t sizes[] = { 24, 48, 100, 200, 700, 1500, 5000, 20000, 100000, 300000 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

struct worker {
        pthread_t thread;
        unsigned  number;
        bool      alternate;            /* its handlers run on a stack of their own */
        bool      forks;
        uint32_t  jumps;                /* atomic */
        uint32_t  ready;                /* atomic: signals may come */
        unsigned  random, raised, children;
        void     *held[HELD];
        char      stack[1 << 16];
};

static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t inside;
static uint32_t faults;                 /* atomic */

static void fault(const char *what, size_t n)
{
        printf("fault: %s: %zu\n", what, n);
        __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
}

static void on_signal(int signal)
{
        (void)signal;
        if (!inside)
                return;
        inside = 0;
        siglongjmp(back, 1);
}

static size_t memory(void)
{
        struct stook_pages_stats stats = { 0 };

        stook_pages_stats(&stats);
        return stats.taken_bytes + stats.free_dirty_bytes;
}

/* One call, out of which a handler may jump. Always from the same frame. */
static __attribute__((noinline)) void *call(void *object, size_t size)
{
        inside = 1;
        if (object)
                stook_free(object);
        object = size ? stook_malloc(size) : NULL;
        inside = 0;
        return object;
}

static void step(struct worker *w)
{
        unsigned r = w->random = w->random * 1103515245 + 12345;
        void **place = &w->held[(r >> 8) % HELD], *object = *place;

        *place = NULL;                  /* with a jump out of the call it is lost */
        *place = call(object, object ? 0 : sizes[(r >> 20) % SIZES]);
}

/* A thread, or a child, that is jumped out of no more. */
static void go_on(struct worker *w)
{
        size_t most = 0;

        for (unsigned i = 0; i < ROUNDS; i++) {
                step(w);
                if (i % 1024 == 0 && memory() > most)
                        most = memory();
        }
        if (most > MOST)
                fault("memory is not bounded", most >> 20);
        if (stook_self->locks_held)
                fault("locks are held", stook_self->locks_held);
}

static void fork_here(struct worker *w)
{
        uint32_t before = faults;
        int status = 0;
        pid_t pid = _Fork();

        if (pid == 0) {
                alarm(60);
                go_on(w);
                stook_trim(0);
                _exit(faults != before);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
                fault("a child is not whole", (size_t)status);
        w->children++;
}

static void *work(void *of)
{
        struct worker *w = of;
        stack_t stack = { .ss_sp = w->stack, .ss_size = sizeof(w->stack) };

        w->random = w->number * 7919 + 1;
        if (w->alternate)
                sigaltstack(&stack, NULL);
        if (sigsetjmp(back, 1)) {
                w->raised += stook_self->locks_held != 0;
                if (stook_self->locks_held && w->forks && w->children < CHILDREN)
                        fork_here(w);
                __atomic_add_fetch(&w->jumps, 1, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&w->ready, 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(&w->jumps, __ATOMIC_RELAXED) < JUMPS)
                step(w);
        go_on(w);
        return NULL;
}

/*
 * With @forks: one thread. A thread that waits for its child with a lock that it left costs others
 * memory meanwhile.
 */
static void run(struct worker *w, bool alternate, bool forks)
{
        unsigned threads = forks ? 1 : THREADS;
        static uint32_t never;
        bool busy = true;

        for (unsigned i = 0; i < threads; i++) {
                w[i] = (struct worker){ .number = i, .alternate = alternate, .forks = forks };
                if (pthread_create(&w[i].thread, NULL, work, &w[i]))
                        exit(1);
        }
        while (busy) {
                busy = false;
                for (unsigned i = 0; i < threads; i++) {
                        if (__atomic_load_n(&w[i].jumps, __ATOMIC_ACQUIRE) >= JUMPS)
                                continue;
                        busy = true;
                        if (__atomic_load_n(&w[i].ready, __ATOMIC_ACQUIRE))
                                pthread_kill(w[i].thread, SIGUSR1);
                }
                stook_os_futex_wait(&never, 0, 200000);
        }
        for (unsigned i = 0; i < threads; i++) {
                pthread_join(w[i].thread, NULL);
                printf("%s stack, thread %u: %u jumps, %u with locks_held raised, %u children\n",
                       alternate ? "alternate" : "same", i, w[i].jumps, w[i].raised, w[i].children);
                for (unsigned k = 0; k < HELD; k++)
                        stook_free(w[i].held[k]);
        }
        stook_trim(0);
        printf("  then %zu MiB taken or dirty\n", memory() >> 20);
        if (memory() > MOST / 2)
                fault("memory does not come back", memory() >> 20);
}

int main(void)
{
        static struct worker workers[THREADS];
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART };

        setvbuf(stdout, NULL, _IOLBF, 0);
        sigaction(SIGUSR1, &action, NULL);
        run(workers, false, false);
        run(workers, true, false);
        run(workers, false, true);
        /* One barrier's, at most, for each thread that has ended: 1,000. */
        printf("evacuations slept %u times for slots\n", stook_inject.evacuate_sleeps);
        if (stook_inject.evacuate_sleeps > 2 * THREADS * 1000)
                fault("evacuations wait for each slot that was left", stook_inject.evacuate_sleeps);
        return faults != 0;
}
