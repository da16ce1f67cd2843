/*
 * What this proves: rounds of maintenance give back what no slow call would: sheaves of slots on
 * which nothing runs, by age, and at once where no thread can run any more; free pages of a process
 * that idles; everything when memory is scarce. The thread does it without a call, ends when it is
 * told to, and begins again in a forked child.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "cache/cache.h"
#include "os/os.h"
#include "pages/purge.h"
#include "policy/dirty.h"
#include "pages/span.h"
#include "slot/slot_regions.h"

#define SHORT_MS 50
#define LONG_MS  3600000
#define WAITS    6000                   /* of 5 ms */

static void pause_5_ms(void)
{
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

static void use(struct stook_cache *cache, size_t n)
{
        void **objects = malloc(n * sizeof(*objects));

        for (size_t i = 0; i < n; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (size_t i = 0; i < n; i++)
                stook_cache_free(cache, objects[i]);
        free(objects);
}

static size_t in_slot(struct stook_cache *cache, unsigned slot)
{
        struct stook_line *line = stook_slots_line(slot, cache->index);
        struct stook_pair pair;

        if (!line)
                return 0;
        pair = stook_pair_read(&line->pair);
        return stook_sheaf_size((struct stook_sheaf *)pair.lo) +
               (pair.hi ? stook_sheaf_size((struct stook_sheaf *)pair.hi) : 0);
}

static uint64_t slabs_of(struct stook_cache *cache)
{
        struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        return stats.slabs;
}

static void gone(struct stook_cache *cache)
{
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* ---- a second thread, on a slot of its own while both live ---- */

struct other {
        struct stook_cache *cache;
        pthread_t thread;
        int cpu;                        /* -1: any */
        uint32_t used, end;             /* atomic */
};

static void stay_on(int cpu)
{
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof(one), &one);
}

static void *use_and_wait(void *arg)
{
        struct other *other = arg;

        if (other->cpu >= 0)
                stay_on(other->cpu);
        use(other->cache, 500);
        __atomic_store_n(&other->used, 1, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&other->end, __ATOMIC_ACQUIRE))
                pause_5_ms();
        return NULL;
}

static void start_other(struct other *other)
{
        assert_int_equal(pthread_create(&other->thread, NULL, use_and_wait, other), 0);
        while (!__atomic_load_n(&other->used, __ATOMIC_ACQUIRE))
                pause_5_ms();
}

static void end_other(struct other *other)
{
        __atomic_store_n(&other->end, 1, __ATOMIC_RELEASE);
        pthread_join(other->thread, NULL);
}

static void test_an_idle_slot_is_evacuated(void **state)
{
        struct other other = { .cache = stook_cache_create("waits", 64, NULL), .cpu = -1 };
        int waits;

        (void)state;
        stook_pages_set_decay_ms(SHORT_MS);
        start_other(&other);
        assert_true(stook_slot_objects(&other.cache->front) > 0);
        other.cache->barns.node[0].slabs_given =
                1;     /* as the idle reaper leaves it while the slot is in use */
        for (waits = 0; waits < WAITS && stook_slot_objects(&other.cache->front); waits++) {
                stook_maintain();
                pause_5_ms();
        }
        assert_int_equal(stook_slot_objects(&other.cache->front), 0);
        for (waits = 0; waits < WAITS && slabs_of(other.cache); waits++) {
                stook_maintain();
                pause_5_ms();
        }
        assert_int_equal(slabs_of(other.cache), 0);     /* nor are empty slabs kept */
        end_other(&other);
        use(other.cache, 500);
        assert_true(stook_slot_objects(&other.cache->front) > 0);
        gone(other.cache);
}

static void test_a_slot_whose_cpu_is_gone_is_evacuated(void **state)
{
        struct other other = { .cache = stook_cache_create("moves", 64, NULL) };
        cpu_set_t before;
        int cpus[2], n = 0;

        (void)state;
        assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
        for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
                if (CPU_ISSET(cpu, &before))
                        cpus[n++] = cpu;
        if (n < 2 || !stook_regions.rseq_slots) {
                gone(other.cache);
                skip();                 /* one CPU only, or slots that are no CPU's */
        }
        stook_pages_set_decay_ms(LONG_MS);
        stay_on(cpus[0]);
        use(other.cache, 500);
        other.cpu = cpus[1];
        start_other(&other);
        end_other(&other);
        /* Only this thread is left, and it may use one CPU: one slot at most keeps what it has. */
        for (int i = 0; i < 3; i++)
                stook_maintain();
        n = 0;
        for (unsigned slot = 0; slot < stook_regions.rseq_slots; slot++)
                n += in_slot(other.cache, slot) != 0;
        assert_true(n <= 1);
        sched_setaffinity(0, sizeof(before), &before);
        gone(other.cache);
}

/* ---- memory pressure ---- */

static char folder[] = "/tmp/stook-test.XXXXXX";

static void write_file(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
}

static size_t free_dirty_bytes(void)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        return stats.free_dirty_bytes;
}

/* Something to give back: in sheaves, and in free pages. None of it is old yet. */
static void litter(struct stook_cache *cache)
{
        static void *large[64];

        stook_pages_set_decay_ms(LONG_MS);
        for (int i = 0; i < 64; i++) {
                assert_non_null(large[i] = stook_malloc(30000));
                memset(large[i], 1, 30000);
        }
        for (int i = 0; i < 64; i++)
                stook_free(large[i]);
        use(cache, 5000);
        assert_true(stook_slot_objects(&cache->front) > 0);
        assert_true(free_dirty_bytes() > 0);
}

static void expect_trimmed(struct stook_cache *cache, bool trimmed)
{
        stook_maintain();
        assert_int_equal(free_dirty_bytes() == 0, trimmed);
        if (trimmed) /* else the idle reaper may have been there: the pages taken were fresh */
                assert_int_equal(stook_slot_objects(&cache->front), 0);
}

static void count_pressure(void *data)
{
        ++*(unsigned *)data;
        stook_free(stook_malloc(100));  /* it may use the library */
}

static void test_all_is_given_back_when_memory_is_scarce(void **state)
{
        struct stook_cache *cache = stook_cache_create("presses", 64, NULL);
        char pressure[64], events[64];
        unsigned told = 0;

        (void)state;
        assert_non_null(mkdtemp(folder));
        snprintf(pressure, sizeof(pressure), "%s/pressure", folder);
        snprintf(events, sizeof(events), "%s/events", folder);
        write_file(
                pressure,
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n"
                "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        write_file(events, "low 0\nhigh 7\nmax 0\noom 0\noom_kill 0\n");
        stook_pages_set_decay_ms(LONG_MS);
        stook_inject.pressure_file = pressure;
        stook_inject.events_file = events;
        stook_maintain();          /* notes what there is */
        litter(cache);
        stook_on_pressure(count_pressure, &told);
        expect_trimmed(cache, false);                   /* as before */
        assert_int_equal(told, 0);

        write_file(
                pressure,
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=99999999999\n"
                "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
        expect_trimmed(cache, true);
        litter(cache);
        expect_trimmed(cache, false);                   /* no new stalls */
        assert_int_equal(told, 1);

        write_file(events, "low 0\nhigh 8\nmax 0\noom 0\noom_kill 0\n");
        expect_trimmed(cache, true);
        litter(cache);
        assert_int_equal(told, 2);
        stook_on_pressure(NULL, NULL);
        write_file(events, "low 5\nhigh 8\nmax 1\noom 0\noom_kill 0\n");
        expect_trimmed(cache, true);
        assert_int_equal(told, 2);
        litter(cache);
        unlink(pressure);
        unlink(events);
        expect_trimmed(cache, false);                   /* files that are gone say nothing */
        rmdir(folder);
        stook_inject.pressure_file = stook_inject.events_file = NULL;
        gone(cache);
}

/* ---- the thread; the page layer is told of it (pages/purge.h) ---- */

static int threads_of_process(void)
{
        DIR *tasks = opendir("/proc/self/task");
        int n = 0;

        assert_non_null(tasks);
        for (struct dirent *e; (e = readdir(tasks));)
                n += e->d_name[0] != '.';
        closedir(tasks);
        return n;
}

static bool becomes(int threads)
{
        for (int waits = 0; waits < WAITS; waits++) {
                if (threads_of_process() == threads)
                        return true;
                pause_5_ms();
        }
        return false;
}

static void test_the_thread_does_it_by_itself(void **state)
{
        struct stook_cache *cache = stook_cache_create("rests", 64, NULL);
        int status, waits, others = threads_of_process();       /* a sanitizer may have one */
        pid_t child;

        (void)state;
        litter(cache);
        stook_pages_set_decay_ms(SHORT_MS);
        assert_int_equal(stook_maintenance_thread(1), 0);
        assert_int_equal(stook_maintenance_thread(1), 0);
        assert_int_equal(threads_of_process(), others + 1);
        assert_true(stook_dirty_is_threaded());
        for (waits = 0; waits < WAITS && (stook_slot_objects(&cache->front) || free_dirty_bytes());
             waits++)
                pause_5_ms();
        assert_int_equal(stook_slot_objects(&cache->front), 0);
        assert_int_equal(free_dirty_bytes(), 0);

/* Its runtime creates no threads in the child of a process that has some. */
#ifdef __SANITIZE_THREAD__
        child = -1;
#else
        child = fork();
#endif
        if (!child) {
                bool alone = threads_of_process() == 1, aged;

                use(cache, 500);
                aged = stook_dirty_is_threaded();
                stook_maintain();
                alarm(120);
                if (!alone || aged || !stook_dirty_is_threaded() || threads_of_process() != 2)
                        _exit(1);
                stook_maintenance_thread(0);
                _exit(becomes(1) ? 0 : 2);
        }
        if (child > 0) {
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_int_equal(status, 0);
        }

        assert_int_equal(stook_maintenance_thread(0), 0);
        assert_true(becomes(others));
        assert_false(stook_dirty_is_threaded());
        assert_int_equal(stook_maintenance_thread(0), 0);
        stook_maintain();
        assert_true(becomes(others));
        gone(cache);
}

/* Return: not NULL: a call failed. */
static void *stop_and_start(void *failed)
{
        for (int i = 0; i < 300; i++)
                if (stook_maintenance_thread(i % 2))
                        return failed;
        return NULL;
}

/*
 * Stops beside starts: neither waits for ever, there is one thread at most, and what was asked for
 * last, by a thread alone, holds.
 */
static void test_stops_beside_starts(void **state)
{
        int others = threads_of_process();
        pthread_t threads[3];
        void *answer;

        (void)state;
        alarm(120);
        for (int i = 0; i < 3; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, stop_and_start, &threads), 0);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(pthread_join(threads[i], &answer), 0);
                assert_null(answer);
        }
        assert_int_equal(stook_maintenance_thread(0), 0);
        assert_true(becomes(others));
        assert_false(stook_dirty_is_threaded());
        assert_int_equal(stook_maintenance_thread(1), 0);
        assert_true(becomes(others + 1));
        assert_true(stook_dirty_is_threaded());
        assert_int_equal(stook_maintenance_thread(0), 0);
        assert_true(becomes(others));
        alarm(0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_idle_slot_is_evacuated),
                cmocka_unit_test(test_a_slot_whose_cpu_is_gone_is_evacuated),
                cmocka_unit_test(test_all_is_given_back_when_memory_is_scarce),
                cmocka_unit_test(test_the_thread_does_it_by_itself),
                cmocka_unit_test(test_stops_beside_starts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
