/*
 * What this proves: threads, handlers, forks, tuning, destroys, frees by RCU, groups, and sessions
 * of samples, guarded ones too, that begin and end at random, run at once, for as long as the
 * caller asks. No object is handed out twice or lost, and every count is right.
 *
 *      soak [--seconds N] [--seed N] [--workers N] [--hang SECONDS] [--forks 0|1]
 *           [--samples 0|1] [--break FAULT]
 *
 * The test goes in rounds of some seconds. At the end of each, all threads are joined. Then each
 * cache's statistics have as many live objects as the test holds, and their sums hold
 * (<stook/stats.h>). The groups are charged with what is held, and validation finds nothing. After
 * some rounds the test frees everything, destroys the caches and makes them again. A watchdog ends
 * a hang and says what each thread was doing. The seed decides what each thread does, not when.
 * Without forks it runs under ThreadSanitizer, which takes what other threads did before a fork for
 * races with the child.
 *
 * With --break a thread makes a mistake, and the test passes if it is found; `all`: one by one.
 *   twice   an object is freed and used on, so that it is handed out again
 *   lost    an object is forgotten       written  an object is written to past its end
 *   group   an object is charged to another group than is noted
 *   hang    a thread does not go on
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

#define OTHERS        4                 /* tuner, forker, spawner, sampler */
#define ROUND_SECONDS 3

struct done done;
struct stook_group *parents[PARENTS];
void *parked[PARKED], *published[CACHES - FIRST_RCU][PUBLISHED];
uint32_t stop;

static struct worker workers[WORKERS_MAX + OTHERS];
static unsigned worker_count = 3;
static uint64_t seed;
static const char *phase = "start";
static unsigned hang_seconds = 60;      /* without progress of one thread; arbitrary */
const char *fault = "";
bool forks = true, samples = true;

void fail(const char *format, ...)
{
        char text[512];
        va_list args;
        int n;

        va_start(args, format);
        n = snprintf(text, sizeof(text), "soak: seed %llu, process %d: ", (unsigned long long)seed,
                     (int)getpid());
        n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
        va_end(args);
        if (n > (int)sizeof(text) - 2)
                n = sizeof(text) - 2;
        text[n++] = '\n';
        if (write(2, text, (size_t)n) < 0)
                abort();
        abort();
}

static uint64_t progress_of(unsigned i)
{
        return __atomic_load_n(&workers[i].progress, __ATOMIC_RELAXED);
}

/* The watchdog: a thread, or this one, has not moved for hang_seconds. */
static void hang(int signal)
{
        char text[1024];
        int n = snprintf(text, sizeof(text), "phase %s:", phase);

        (void)signal;
        for (unsigned i = 0; i < worker_count + OTHERS && n < 900; i++)
                n += snprintf(text + n, sizeof(text) - (size_t)n, " %s (%llu)",
                              __atomic_load_n(&workers[i].doing, __ATOMIC_RELAXED),
                              (unsigned long long)progress_of(i));
        fail("hangs in %s", text);
}

static void begin(const char *what)
{
        phase = what;
        alarm(hang_seconds);
}

static double now(void)
{
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- what is held ---- */

struct sums {
        uint64_t live[KINDS], large, charged[PARENTS + 1];
};

static void add(struct sums *sums, const void *object, unsigned owner)
{
        if (!object)
                return;
        check(object, owner);
        sums->live[kind_of(object)]++;
        /* A handler's may be large at any size: another thread is just making its class's cache. */
        sums->large += kind_of(object) == MALLOC && !stook_object_cache(object);
        if (kind_of(object) == ACCOUNTED_96)
                sums->charged[parent_of(object)]++;
}

static void add_all(struct sums *sums)
{
        memset(sums, 0, sizeof(*sums));
        for (unsigned i = 0; i < worker_count; i++) {
                for (unsigned j = 0; j < HELD; j++)
                        add(sums, workers[i].held[j], workers[i].id);
                for (unsigned j = 0; j < HANDLER_HELD; j++)
                        add(sums, workers[i].handler_held[j], workers[i].id + HANDLER_OWNER);
        }
        for (unsigned i = 0; i < PARKED; i++)
                add(sums, parked[i], 0);
        for (unsigned i = 0; i < (CACHES - FIRST_RCU) * PUBLISHED; i++)
                add(sums, published[i / PUBLISHED][i % PUBLISHED], 0);
}

/* ---- what the library says ---- */

static struct stook_cache *malloc_caches[512];
static unsigned malloc_cache_count;

static int note(struct stook_cache *cache, void *unused)
{
        (void)unused;
        for (unsigned kind = 0; kind < CACHES; kind++)
                if (caches[kind] == cache)
                        return 0;
        malloc_caches[malloc_cache_count++] = cache;
        return malloc_cache_count == 512;
}

#define SAME(stats, left, right) \
        do { \
                uint64_t l = (left), r = (right); \
                if (l != r) \
                        fail("%s: %s is %llu, not %llu", (stats)->name, #left, \
                             (unsigned long long)l, (unsigned long long)r); \
        } while (0)

static void look(struct stook_cache *cache, struct stook_cache_stats *s)
{
        s->stats_size = sizeof(*s);
        if (stook_cache_get_stats(cache, s))
                fail("stats");
}

static bool sheaves_agree(const struct stook_cache_stats *s)
{
        return s->objects_cached == s->sheaf_refill + s->free_fastpath + s->free_rcu_sheaf -
                                            s->alloc_fastpath - s->sheaf_flush &&
               s->sheaves == s->sheaf_alloc - s->sheaf_free;
}

/*
 * The thread that serves RCU goes on. A callback of the library's clock may be in the middle of a
 * flush of idle sheaves, of any cache, between the flush and its count. So what does not agree is
 * looked at again, for a tenth of a second: a lost count is still lost then.
 */
static void look_until_quiet(struct stook_cache *cache, struct stook_cache_stats *s)
{
        const struct timespec pause = { 0, 10000000 };

        look(cache, s);
        for (unsigned i = 0; i < 10 && !sheaves_agree(s); i++) {
                nanosleep(&pause, NULL);
                look(cache, s);
        }
}

static void check_cache(struct stook_cache *cache, struct stook_cache_stats *s)
{
        int faults;

        look_until_quiet(cache, s);
        SAME(s, s->objects_live,
             s->alloc_fastpath + s->alloc_slowpath -
             s->free_fastpath - s->free_slowpath - s->free_rcu_sheaf);
        SAME(s, s->objects_cached,
             s->sheaf_refill + s->free_fastpath + s->free_rcu_sheaf -
             s->alloc_fastpath - s->sheaf_flush);
        SAME(s, s->sheaves, s->sheaf_alloc - s->sheaf_free);
        SAME(s, s->slabs, s->alloc_slab - s->free_slab);
        SAME(s, s->sheaf_prefill_fast + s->sheaf_prefill_slow + s->sheaf_prefill_oversize,
             s->sheaf_return_fast + s->sheaf_return_slow);
        faults = stook_cache_validate(cache);
        if (faults)
                fail("%s: %d faults", s->name, faults);
}

/* What is held of groups below a parent is charged to it, and nothing else. */
static void check_groups(const struct sums *sums)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };
        uint64_t usage[PARENTS], held[PARENTS];
        bool same = true;

        stook_cache_get_stats(caches[ACCOUNTED_96], &stats);
        for (unsigned i = 0; i < PARENTS; i++) {
                usage[i] = stook_group_usage(parents[i]);
                held[i] = sums->charged[i] * stats.stride;
                same = same && usage[i] == held[i];
        }
        if (!same)
                fail("groups: %lld and %lld bytes are charged, not %lld and %lld",
                     (long long)usage[0], (long long)usage[1], (long long)held[0],
                     (long long)held[1]);
}

static void check_all(void)
{
        struct stook_cache_stats stats;
        struct sums sums;
        uint64_t of_malloc = 0;

        begin("RCU barrier");
        stook_rcu_barrier();
        begin("check");
        if (stook_rcu_backlog())
                fail("%llu bytes wait after a barrier", (unsigned long long)stook_rcu_backlog());
        add_all(&sums);
        for (unsigned kind = 0; kind < CACHES; kind++) {
                check_cache(caches[kind], &stats);
                SAME(&stats, stats.objects_live, sums.live[kind]);
        }
        check_groups(&sums);
        malloc_cache_count = 0;
        stook_cache_for_each(note, NULL);
        for (unsigned i = 0; i < malloc_cache_count; i++) {
                check_cache(malloc_caches[i], &stats);
                of_malloc += stats.objects_live;
        }
        if (of_malloc != sums.live[MALLOC] - sums.large)
                fail("malloc: %llu live objects, not %llu", (unsigned long long)of_malloc,
                     (unsigned long long)(sums.live[MALLOC] - sums.large));
}

/* ---- rounds ---- */

static void give_table(void **table, unsigned n, unsigned owner, enum how how)
{
        for (unsigned i = 0; i < n; i++) {
                if (table[i])
                        give(table[i], owner, how);
                table[i] = NULL;
        }
}

static void give_all(void)
{
        for (unsigned i = 0; i < worker_count; i++) {
                struct worker *w = workers + i;

                give_table(w->held, HELD, w->id, ORDINARY);
                give_table(w->handler_held, HANDLER_HELD, w->id + HANDLER_OWNER, NOLOCK);
        }
        give_table(parked, PARKED, 0, BULK);
        for (unsigned i = 0; i < (CACHES - FIRST_RCU) * PUBLISHED; i++)
                if (published[i / PUBLISHED][i % PUBLISHED])
                        give_rcu(published[i / PUBLISHED][i % PUBLISHED], false);
        memset(published, 0, sizeof(published));
}

/* Every object, every cache, every group. */
static void start_again(void)
{
        begin("free all");
        give_all();
        check_all();
        begin("destroy all");
        for (unsigned kind = 0; kind < CACHES; kind++) {
                int left, error;

                stook_cache_reserve(caches[kind], 0);
                left = stook_cache_shrink(caches[kind]);
                if (left)
                        fail("kind %u without objects has %d slabs after a shrink", kind, left);
                error = stook_cache_destroy(caches[kind]);
                if (error)
                        fail("destroy of kind %u: %d", kind, error);
                count(&done.destroys);
        }
        for (unsigned i = 0; i < PARENTS; i++) {
                stook_group_destroy(parents[i]);
                parents[i] = stook_group_create("parent", NULL, 0);
        }
        make_caches();
}

/* Sends signals until the time is over, and looks whether all threads move on. */
static void pester(const pthread_t *threads, double until)
{
        uint64_t before[WORKERS_MAX + OTHERS], random = seed;
        unsigned moved = 0;

        for (unsigned i = 0; i < worker_count + OTHERS; i++)
                before[i] = progress_of(i);
        begin("round");
        while (now() < until) {
                const struct timespec pause = { 0, (long)(draw(&random) % 400000) };

                pthread_kill(threads[draw(&random) % worker_count], SIGUSR1);
                nanosleep(&pause, NULL);
                for (moved = 0; moved < worker_count + OTHERS; moved++)
                        if (progress_of(moved) == before[moved])
                                break;
                if (moved < worker_count + OTHERS)
                        continue;
                alarm(hang_seconds);
                for (unsigned i = 0; i < worker_count + OTHERS; i++)
                        before[i] = progress_of(i);
        }
}

static void run_round(double until)
{
        static void *(*const others[OTHERS])(void *) = { tuner, forker, spawner, sampler };
        pthread_t threads[WORKERS_MAX + OTHERS];

        __atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < worker_count + OTHERS; i++) {
                void *(*run)(void *) = i < worker_count ? worker : others[i - worker_count];

                if (pthread_create(threads + i, NULL, run, workers + i))
                        fail("no thread");
        }
        pester(threads, until);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        begin("join");
        for (unsigned i = 0; i < worker_count + OTHERS; i++)
                pthread_join(threads[i], NULL);
        stook_maintenance_thread(0);
}

static uint64_t number(const char *text, uint64_t most)
{
        char *end;
        uint64_t n = text ? strtoull(text, &end, 0) : 0;

        if (!text || *end || !*text || n > most) {
                fprintf(stderr, "usage: soak [--seconds N] [--seed N] [--workers 1..%d] "
                                "[--hang SECONDS] [--forks 0|1] [--samples 0|1] "
                                "[--break FAULT|all]\n",
                        WORKERS_MAX);
                exit(2);
        }
        return n;
}

/* Returns in a child that is to abort. What it says is shown. */
static void make_mistakes(void)
{
        static const char *const all[] = { "twice", "lost", "written", "group", "hang" };
        bool every = !strcmp(fault, "all"), known = every;

        for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                int status;
                pid_t pid;

                if (!every && strcmp(fault, all[i]))
                        continue;
                known = true;
                pid = fork();
                if (!pid) {
                        fault = all[i];
                        return;
                }
                if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
                    WTERMSIG(status) != SIGABRT) {
                        fprintf(stderr, "soak: --break %s was not found\n", all[i]);
                        exit(1);
                }
        }
        if (!known)
                number(NULL, 0);
        exit(0);
}

static void report(double seconds, unsigned rounds)
{
        struct stook_sampling_stats sampling = { .stats_size = sizeof(sampling) };
        uint64_t operations = 0, handlers = 0;

        stook_sampling_get_stats(&sampling);
        for (unsigned i = 0; i < worker_count + OTHERS; i++) {
                operations += workers[i].progress;
                handlers += workers[i].handlers;
        }
        printf("%.1f s, %u rounds: %llu operations, %llu handlers, %llu forks, ", seconds, rounds,
               (unsigned long long)operations, (unsigned long long)handlers,
               (unsigned long long)done.forks);
        printf("%llu forks in handlers, %llu threads, %llu tunings, %llu destroys, ",
               (unsigned long long)done.handler_forks, (unsigned long long)done.threads,
               (unsigned long long)done.tunings, (unsigned long long)done.destroys);
        printf("%llu frees by RCU, %llu reads, %llu groups, %llu refusals, ",
               (unsigned long long)done.rcu_frees, (unsigned long long)done.reads,
               (unsigned long long)done.groups, (unsigned long long)done.refusals);
        printf("%llu sessions, %llu profiles, %llu samples, %llu guarded\n",
               (unsigned long long)done.sessions, (unsigned long long)done.profiles,
               (unsigned long long)sampling.kept, (unsigned long long)sampling.guarded);
}

int main(int argc, char **argv)
{
        double began, end = 2;
        unsigned rounds = 0;
        uint64_t random;
        struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
        struct stook_mode mode = { .mode_size = sizeof(mode) };

        seed = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
        for (int i = 1; i < argc; i += 2) {
                if (!strcmp(argv[i], "--seconds"))
                        end = (double)number(argv[i + 1], 1000000);
                else if (!strcmp(argv[i], "--seed"))
                        seed = number(argv[i + 1], UINT64_MAX);
                else if (!strcmp(argv[i], "--workers"))
                        worker_count = (unsigned)number(argv[i + 1], WORKERS_MAX);
                else if (!strcmp(argv[i], "--hang"))
                        hang_seconds = (unsigned)number(argv[i + 1], 100000);
                else if (!strcmp(argv[i], "--forks"))
                        forks = number(argv[i + 1], 1);
                else if (!strcmp(argv[i], "--samples"))
                        samples = number(argv[i + 1], 1);
                else if (!strcmp(argv[i], "--break") && argv[i + 1])
                        fault = argv[i + 1];
                else
                        number(NULL, 0);
        }
        if (*fault) {
                samples = false;        /* a guarded one finds a mistake by another signal */
                make_mistakes();
        }
        if (!worker_count)
                number(NULL, 0);
        began = now();
        signal(SIGALRM, hang);
        sigaction(SIGUSR1, &action, NULL);
        stook_get_mode(&mode);
        printf("soak --seed %llu --workers %u: %s, %u nodes\n", (unsigned long long)seed,
               worker_count, mode.backend, mode.nodes);
        fflush(stdout);
        random = seed;
        for (unsigned i = 0; i < WORKERS_MAX + OTHERS; i++)
                workers[i] = (struct worker){
                        .id = i < worker_count ? i + 1 : OWNER_OTHER + i, .random = draw(&random),
                        .handler_random = draw(&random), .doing = "nothing yet",
                };
        soak_rcu_start();
        if (stook_rcu_use(&soak_rcu))
                fail("cannot choose an RCU");
        for (unsigned i = 0; i < PARENTS; i++) {
                parents[i] = stook_group_create("parent", NULL, 0);
                if (!parents[i])
                        fail("no group");
        }
        make_caches();
        while (now() - began < end) {
                double left = began + end - now();

                run_round(now() + (left < ROUND_SECONDS ? left : ROUND_SECONDS));
                check_all();
                if (draw(&random) % 2 || now() - began >= end)
                        start_again();
                rounds++;
        }
        report(now() - began, rounds);
        return 0;
}
