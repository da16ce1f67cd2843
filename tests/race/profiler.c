/*
 * Proves that a profiler's handler may allocate. SIGPROF comes to each of four busy threads 100 us
 * after the last. Its handler allocates 48 and 5,000 bytes, keeps some of them for later handlers,
 * and frees.
 * No object is handed out twice, every allocation succeeds, and nothing is live at the end.
 * STOOK_SECONDS=60 makes a long run; the default is 2.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <stook/stook.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define THREADS 4
#define KEPT    16
#define PERIOD_NS 100000

static int stop;                        /* atomic */
static uint64_t handled, calls, faults; /* atomic */

struct mine {
        uint64_t *kept[KEPT];           /* the handler's */
        unsigned at;
        timer_t timer;
};
static __thread struct mine *mine;

static void fault(void)
{
        __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
}

static uint64_t *take(size_t bytes)
{
        uint64_t *o = stook_malloc(bytes);

        if (!o) {
                fault();
                return NULL;
        }
        o[0] = (uintptr_t)o;
        o[bytes / 8 - 1] = ~(uintptr_t)o;
        o[1] = bytes;
        return o;
}

static void give(uint64_t *o)
{
        if (!o)
                return;
        if (o[0] != (uintptr_t)o || o[o[1] / 8 - 1] != ~(uintptr_t)o)
                fault();
        o[0] = 0;
        stook_free(o);
}

/* The next signal. With a period a slow machine would do nothing but handle them. */
static bool ask_for_signal(void)
{
        struct itimerspec once = { .it_value = { .tv_nsec = PERIOD_NS } };

        return !timer_settime(mine->timer, 0, &once, NULL);
}

static void on_signal(int signal)
{
        int saved = errno;
        unsigned at = mine->at++ % KEPT;

        (void)signal;
        give(take(mine->at & 1 ? 48 : 5000));
        give(mine->kept[at]);
        mine->kept[at] = take(mine->at & 2 ? 48 : 5000);
        __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
        if (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
                ask_for_signal();
        errno = saved;
}

static void *busy(void *own)
{
        struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
        uint64_t *held[64] = { NULL }, random = (uintptr_t)own, n = 0;
        sigset_t profile;

        mine = own;
        event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
        if (timer_create(CLOCK_MONOTONIC, &event, &mine->timer) || !ask_for_signal()) {
                fault();
                return NULL;
        }
        for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); n++) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                unsigned i = (unsigned)(random >> 58);

                give(held[i]);
                held[i] = take(random >> 50 & 1 ? 48 : 5000);
        }
        sigemptyset(&profile);
        sigaddset(&profile, SIGPROF);
        pthread_sigmask(SIG_BLOCK, &profile, NULL);
        timer_delete(mine->timer);
        for (unsigned i = 0; i < 64; i++)
                give(held[i]);
        for (unsigned i = 0; i < KEPT; i++)
                give(mine->kept[i]);
        __atomic_add_fetch(&calls, n, __ATOMIC_RELAXED);
        return NULL;
}

static uint64_t live(const char *name)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };
        struct stook_cache *cache = stook_cache_find(name);

        if (!cache || stook_cache_validate(cache) || stook_cache_get_stats(cache, &s))
                fault();
        return s.objects_live;
}

int main(void)
{
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        const char *wish = getenv("STOOK_SECONDS");
        static struct mine own[THREADS];
        pthread_t threads[THREADS];

        sigaction(SIGPROF, &action, NULL);
        for (unsigned i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], NULL, busy, &own[i]))
                        return 1;
        sleep(wish && atoi(wish) > 0 ? (unsigned)atoi(wish) : 2);
        while (!__atomic_load_n(&handled, __ATOMIC_RELAXED))
                sleep(1);               /* not one yet: a busy machine */
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        if (live("malloc-48") || live("malloc-5120"))
                fault();
        printf("%llu handlers on top of %llu pairs, %llu faults\n", (unsigned long long)handled,
               (unsigned long long)calls, (unsigned long long)faults);
        return faults || !handled;
}
