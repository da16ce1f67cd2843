/*
 * Proves: a process shows its figures through the file of STOOK_STATS as inspect/stats_page.h says:
 * nothing is done without it; records are drawn one for each process, forked and raw-cloned
 * children included (I1); what is read is whole at any moment, after a SIGKILL too (I2); publishing
 * is paced by clock and by powers of two; at the end the figures are exact and final; files that
 * are not ours are refused and left alone. Fakes: the heap below (caches with numbers of our
 * choice), and the clock. Each test is a process of its own.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "cache/cache.h"
#include "gate/gate.h"
#include "group/group.h"
#include "inspect/stats_page.h"
#include "os/os.h"
#include "pages/span.h"
#include "stat/gone.h"
#include "stat/stats_page_tick.h"

/* ---- the heap below ---- */

struct stook_cache *stook_caches;
uint32_t stook_gate_state = STOOK_GATE_OPEN;
static unsigned bound = 4;              /* caches 1..3 */
static const char *stats_variable;
static unsigned refusals;
static uint64_t now_ms = 1000;

unsigned stook_caches_bound(void)
{
        return bound;
}

size_t stook_cache_object_size(const struct stook_cache *cache)
{
        return cache->object_size;
}

void stook_sheaf_sum_all(struct stook_sheaf_sums *sums, unsigned count)
{
        for (unsigned i = 0; i < count; i++)
                sums[i].objects = i;
}

void stook_sheaf_sum(unsigned cache_index, struct stook_sheaf_sums *sums)
{
        (void)cache_index;
        memset(sums, 0, sizeof *sums);
}

size_t stook_slabs_count(const struct stook_slabs *slabs)
{
        return slabs->objects;
}

void stook_pages_stats(struct stook_pages_stats *stats)
{
        memset(stats, 0, sizeof *stats);
        stats->taken_bytes = 12345;
}

const char *stook_slots_backend_name(void)
{
        return "fake";
}

uint16_t stook_group_of_process;
static struct stook_group groups[24];   /* their states */
uint32_t stook_groups_bound = 1;

struct stook_group *stook_group_at(uint16_t id)
{
        return &groups[id];
}

void stook_slabs_note_peaks(struct stook_slabs *slabs)
{
        slabs->slabs_peak = 5;
}

void stook_os_env_for_each(void (*each)(const char *name, size_t name_bytes, const char *value,
                                        bool known, void *data), void *data)
{
        static char longest[2 * STOOK_STATS_PAGE_VARIABLES] = "STOOK_LONG=";

        each("STOOK_STATS=/x", 11, "/x", true, data);
        each("STOOK_CAPACITY=1\n2", 14, "1\n2", true, data);
        memset(longest + 11, 'x', sizeof longest - 12);
        each(longest, 10, longest + 11, true, data);
        each("STOOK_OTHER=secret", 11, "secret", false, data);
}

int stook_group_get_stats(const struct stook_group *group, struct stook_group_stats *stats)
{
        if (group < groups || group >= groups + 24 || stats->stats_size != sizeof *stats)
                return -22;
        stats->usage_bytes = 1111;
        stats->refusals = 22;
        return 0;
}

const char *stook_os_env(const char *name)
{
        return strcmp(name, "STOOK_STATS") ? NULL : stats_variable;
}

void stook_os_env_refuse(const char *name, const char *value, const char *takes)
{
        (void)name, (void)value, (void)takes;
        refusals++;
}

size_t stook_os_page_bytes(void)
{
        return (size_t)sysconf(_SC_PAGESIZE);
}

uint64_t stook_os_address_limit(void)
{
        return UINT64_MAX;
}

uint64_t stook_os_clock_ms(void)
{
        return now_ms;
}

void *stook_os_reserve(size_t bytes, size_t align)
{
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        (void)align;
        return p == MAP_FAILED ? NULL : p;
}

void stook_os_unreserve(void *addr, size_t bytes)
{
        munmap(addr, bytes);
}

bool stook_os_commit(void *addr, size_t bytes)
{
        (void)addr, (void)bytes;
        return true;
}

bool stook_os_advise(void *addr, size_t bytes, enum stook_os_advice advice)
{
        return advice == STOOK_OS_WIPEONFORK && !madvise(addr, bytes, MADV_WIPEONFORK);
}

void stook_os_futex_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        struct timespec t = { .tv_nsec = (long)ns };

        (void)word, (void)value;
        nanosleep(&t, NULL);
}

static void set_all(unsigned caches, uint64_t value)
{
        for (unsigned i = 1; i <= caches; i++)
                for (unsigned n = 0; n < STOOK_STAT_COUNT; n++)
                        stook_caches[i].counters.n[n] = value;
}

/* ---- the file ---- */

static char path[] = "/tmp/stook-stats-page-XXXXXX";
static int  file_fd;

static void make_file(unsigned records, uint64_t magic)
{
        struct stook_stats_file header = { .magic = magic,
                                           .version = STOOK_STATS_PAGE_VERSION,
                                           .records = records,
                                           .record_bytes = STOOK_STATS_RECORD_BYTES };

        file_fd = mkstemp(path);
        assert_true(file_fd >= 0);
        assert_int_equal(ftruncate(file_fd, (off_t)(STOOK_STATS_PAGE_UNIT +
                                                    records * STOOK_STATS_RECORD_BYTES)),
                         0);
        assert_int_equal(pwrite(file_fd, &header, sizeof header, 0), sizeof header);
        stats_variable = path;
}

static uint64_t taken(void)
{
        struct stook_stats_file header;

        if (pread(file_fd, &header, sizeof header, 0) != sizeof header)
                return UINT64_MAX;
        return header.taken;
}

/* The tests read by a mapping: what another process sees at once. */
static struct stook_stats_record *record(unsigned i)
{
        void *p = mmap(NULL, STOOK_STATS_RECORD_BYTES, PROT_READ, MAP_SHARED, file_fd,
                       (off_t)(STOOK_STATS_PAGE_UNIT + i * STOOK_STATS_RECORD_BYTES));

        return p == MAP_FAILED ? NULL : p;
}

static const struct stook_stats_snapshot *latest(const struct stook_stats_record *r)
{
        return &r->snapshot[r->sequence & 1];
}

/* ---- each test in a process of its own: the library starts once in each ---- */

#define CHECK(condition) \
        do { \
                if (!(condition)) { \
                        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
                        _exit(1); \
                } \
        } while (0)

static void in_process(void (*body)(void))
{
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (!pid) {
                body();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void body_unset(void)
{
        stats_variable = NULL;
        stook_stats_page_start();
        CHECK(!stook_stats_page_hook);
        stook_stats_page_tick();
        stook_stats_page_end();
        CHECK(taken() == 0);
}

static void test_nothing_without_the_variable(void **state)
{
        (void)state;
        in_process(body_unset);
}

static void body_pace(void)
{
        struct stook_stats_record *r = record(0);

        stook_stats_page_start();
        CHECK(taken() == 1 && r->birth == STOOK_STATS_BORN_BY_EXEC && r->pid == (uint32_t)getpid());
        CHECK(r->parent == (uint32_t)getppid() && r->sequence == 0);
        /* the 1st, 2nd, 4th and 8th, though no time passes */
        for (unsigned i = 1; i <= 8; i++) {
                uint64_t before = r->sequence;

                stook_stats_page_tick();
                CHECK(r->sequence - before == ((i & (i - 1)) == 0));
        }
        CHECK(r->sequence == 4 && !strcmp(r->backend, "fake"));
        now_ms += STOOK_STATS_PAGE_MS - 1;
        stook_stats_page_tick();
        CHECK(r->sequence == 4);
        now_ms++;
        stook_stats_page_tick();
        CHECK(r->sequence == 5 && latest(r)->at_ms == now_ms && !latest(r)->final);
        stook_stats_page_tick();
        CHECK(r->sequence == 5);
        /* the end: always, final, with the numbers of that moment; then nothing more */
        set_all(3, 7);
        stook_stats_page_end();
        CHECK(r->sequence == 6 && latest(r)->final == 1 && latest(r)->caches == 3 &&
              latest(r)->taken_bytes == 12345);
        CHECK(latest(r)->cache[2].alloc_slab == 7 && latest(r)->cache[2].objects_cached == 3);
        CHECK(!strcmp(latest(r)->cache[0].name, "cache-1") &&
              latest(r)->cache[0].objects_live == 0);
        now_ms += 100;
        stook_stats_page_tick();
        stook_stats_page_end();
        CHECK(r->sequence == 6);
}

static void body_more(void)
{
        struct stook_gone one = { .name = "gone", .object_size = 40, .slab_bytes = 4096,
                                  .slabs_peak = 3 };
        const struct stook_stats_snapshot *s;

        stook_stats_page_start();
        CHECK(!strcmp(record(0)->variables, "STOOK_CAPACITY=1?2\nSTOOK_OTHER\n"));
        stook_stats_page_tick();
        CHECK(latest(record(0))->gone == 0 && latest(record(0))->groups == 0);
        CHECK(latest(record(0))->cache[0].slabs_peak == 5);

        one.counters.n[STOOK_STAT_alloc_slab] = 4;
        stook_gone_add(&one);
        one.slabs_peak = 2;
        stook_gone_add(&one);
        one.object_size = 48;           /* another one of that name */
        stook_gone_add(&one);
        stook_groups_bound = 24;
        for (unsigned i = 2; i < 24; i++)
                groups[i].state = STOOK_GROUP_LIVE;
        stook_stats_page_tick();
        s = latest(record(0));
        CHECK(s->caches == 3 && s->gone == 2 && s->gone_caches[0] == 2 && s->gone_caches[1] == 1);
        CHECK(!strcmp(s->cache[3].name, "gone") && s->cache[3].object_size == 40);
        CHECK(s->cache[3].slabs_peak == 3 && s->cache[3].alloc_slab == 8);
        CHECK(s->cache[3].slab_bytes == 4096 && s->cache[4].object_size == 48);
        CHECK(s->groups == STOOK_STATS_PAGE_GROUPS && s->groups_more == 22 - s->groups);
        CHECK(s->group_list[0].usage_bytes == 1111);
        /* Many names: the last entry takes them. */
        for (unsigned i = 0; i < 2 * STOOK_GONE_MAX; i++) {
                one.object_size = 1000 + i;
                stook_gone_add(&one);
        }
        stook_stats_page_end();
        s = latest(record(0));
        CHECK(s->gone == STOOK_GONE_MAX && s->gone_caches[STOOK_GONE_MAX - 1] ==
              2 * STOOK_GONE_MAX - (STOOK_GONE_MAX - 3));
        CHECK(!strcmp(s->cache[3 + STOOK_GONE_MAX - 1].name, "(others)"));
}

static void test_groups_variables_and_destroyed_caches(void **state)
{
        (void)state;
        in_process(body_more);
}

static void test_pace_and_end(void **state)
{
        (void)state;
        in_process(body_pace);
}

static void body_children(void)
{
        int status;
        pid_t pid;

        stook_stats_page_start();
        stook_stats_page_tick();
        CHECK(record(0)->sequence == 1);

        pid = fork();           /* by the fork handler, without any call */
        if (!pid)
                _exit(0);
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(taken() == 2 && record(1)->pid == (uint32_t)pid &&
              record(1)->birth == STOOK_STATS_BORN_BY_FORK);
        CHECK(record(1)->parent == (uint32_t)getpid() && record(1)->sequence == 0);

        pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);   /* by its first slow call */
        if (!pid) {
                stook_stats_page_tick();
                stook_stats_page_end();
                _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(taken() == 3 && record(2)->pid == (uint32_t)pid &&
              record(2)->birth == STOOK_STATS_BORN_BY_FORK);
        CHECK(record(2)->sequence == 2 && latest(record(2))->final);
        CHECK(record(0)->sequence == 1 && record(0)->pid == (uint32_t)getpid());

        pid = fork();           /* room was for three: it goes without */
        if (!pid) {
                stook_stats_page_tick();
                stook_stats_page_end();
                _exit(stook_stats_page_hook != NULL);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        CHECK(taken() == 4);
}

static void test_children_draw_their_own(void **state)
{
        (void)state;
        in_process(body_children);
}

/* Publishes as fast as it can, each snapshot with one number in all of its counters. */
static void publish_for_ever(void)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);       /* a failed check must not leave it behind */
        stook_stats_page_start();
        for (uint64_t k = 1;; k++) {
                set_all(3, k);
                now_ms += STOOK_STATS_PAGE_MS;
                stook_stats_page_tick();
        }
}

static bool whole(const struct stook_stats_snapshot *s)
{
        for (unsigned i = 0; i < s->caches; i++)
                if (s->cache[i].alloc_slab != s->cache[0].alloc_slab ||
                    s->cache[i].barn_put != s->cache[0].alloc_slab)
                        return false;
        return s->caches == 3;
}

static void body_killed(void)
{
        static struct stook_stats_snapshot copy;
        unsigned live_reads = 0, kills_seen = 0;

        for (unsigned i = 0; i < 30; i++) {
                struct stook_stats_record *r = record(i);
                struct timespec pause = { .tv_nsec = 2000000 + (long)i * 77777 };
                int status;
                pid_t pid = fork();

                if (!pid)
                        publish_for_ever();
                while (__atomic_load_n(&r->sequence, __ATOMIC_ACQUIRE) < 3)
                        ;
                for (unsigned k = 0; k < 2000; k++) {   /* live, as M1 says */
                        uint64_t sequence = __atomic_load_n(&r->sequence, __ATOMIC_ACQUIRE);

                        memcpy(&copy, (const void *)&r->snapshot[sequence & 1], sizeof copy);
                        __atomic_thread_fence(__ATOMIC_ACQUIRE);
                        if (__atomic_load_n(&r->sequence, __ATOMIC_RELAXED) != sequence)
                                continue;
                        CHECK(whole(&copy));
                        live_reads++;
                }
                nanosleep(&pause, NULL);
                kill(pid, SIGKILL);
                CHECK(waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGKILL);
                CHECK(whole(latest(r)));
                /* it did not stop at one place: the other half was often being written */
                kills_seen += latest(r)->cache[0].alloc_slab > 0;
        }
        CHECK(kills_seen == 30 && live_reads > 0);
}

static void test_whole_when_killed(void **state)
{
        (void)state;
        in_process(body_killed);
}

static void body_many(void)
{
        bound = STOOK_STATS_PAGE_CACHES + 11;
        stook_stats_page_start();
        stook_stats_page_end();
        CHECK(latest(record(0))->caches == STOOK_STATS_PAGE_CACHES &&
              latest(record(0))->caches_more == 10);
        CHECK(latest(record(0))->cache[STOOK_STATS_PAGE_CACHES - 1].alloc_slab == 1);
}

static void test_more_caches_than_room(void **state)
{
        (void)state;
        in_process(body_many);
}

static void body_group(void)
{
        stook_group_of_process = 7;
        stook_stats_page_start();
        stook_stats_page_end();
        const struct stook_group_stats *g = &latest(record(0))->group;

        CHECK(g->stats_size == sizeof *g && g->usage_bytes == 1111 && g->refusals == 22);
}

static void test_group(void **state)
{
        (void)state;
        in_process(body_group);
}

static void body_no_group(void)
{
        stook_stats_page_start();
        stook_stats_page_end();
        CHECK(record(0)->sequence && !latest(record(0))->group.stats_size);
}

static void test_no_group(void **state)
{
        (void)state;
        in_process(body_no_group);
}

static void body_below_proc(void)
{
        char link[64];

        /* Has a name: another process's by now. Not opened, and nothing is said. */
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)getpid(), file_fd);
        stats_variable = link;
        stook_stats_page_start();
        CHECK(taken() == 0 && refusals == 0);
        unlink(path);
        stook_stats_page_start();
        CHECK(taken() == 1 && refusals == 0);
}

static void test_below_proc(void **state)
{
        (void)state;
        in_process(body_below_proc);
}

static void body_unused_caches(void)
{
        stook_caches[2].counters.n[STOOK_STAT_alloc_slab] = 0;
        stook_caches[3].state = STOOK_CACHE_FREE;
        stook_stats_page_start();
        stook_stats_page_end();
        CHECK(latest(record(0))->caches == 1 && latest(record(0))->caches_more == 0);
}

static void test_unused_caches_are_left_out(void **state)
{
        (void)state;
        in_process(body_unused_caches);
}

static void body_not_started(void)
{
        stook_gate_state = STOOK_GATE_CLOSED;
        stook_stats_page_start();
        stook_stats_page_end();
        CHECK(latest(record(0))->final && latest(record(0))->caches == 0 &&
              latest(record(0))->taken_bytes == 0);
}

static void test_heap_never_started(void **state)
{
        (void)state;
        in_process(body_not_started);
}

static void body_relative(void)
{
        CHECK(!chdir("/tmp"));
        stats_variable = strrchr(path, '/') + 1;
        stook_stats_page_start();
        CHECK(refusals == 1 && !stook_stats_page_hook && taken() == 0);
}

static void body_missing(void)
{
        stats_variable = "/nonexistent/stook-stats";
        stook_stats_page_start();
        CHECK(refusals == 0 && !stook_stats_page_hook);
}

static void body_foreign(void)
{
        uint64_t magic = 1;

        CHECK(pwrite(file_fd, &magic, sizeof magic, 0) == sizeof magic);
        stook_stats_page_start();
        stook_stats_page_tick();
        stook_stats_page_end();
        CHECK(refusals == 1 && !stook_stats_page_hook && taken() == 0);
}

static void body_short(void)
{
        CHECK(!ftruncate(file_fd, 4096));
        stook_stats_page_start();
        CHECK(refusals == 1 && !stook_stats_page_hook && taken() == 0);
}

static void test_files_that_are_not_ours(void **state)
{
        (void)state;
        in_process(body_relative);
        in_process(body_missing);
        in_process(body_foreign);
        in_process(body_short);
}

static int set_up(void **state)
{
        (void)state;
        strcpy(path, "/tmp/stook-stats-page-XXXXXX");
        make_file(3, STOOK_STATS_PAGE_MAGIC);
        return 0;
}

static int set_up_large(void **state)
{
        (void)state;
        strcpy(path, "/tmp/stook-stats-page-XXXXXX");
        make_file(64, STOOK_STATS_PAGE_MAGIC);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        unlink(path);
        close(file_fd);
        return 0;
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nothing_without_the_variable, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_pace_and_end, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_groups_variables_and_destroyed_caches, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_children_draw_their_own, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_whole_when_killed, set_up_large, tear_down),
                cmocka_unit_test_setup_teardown(test_more_caches_than_room, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_group, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_no_group, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_below_proc, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_unused_caches_are_left_out, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_heap_never_started, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_files_that_are_not_ours, set_up, tear_down),
        };

        stook_caches = aligned_alloc(1024, 512 * sizeof *stook_caches);
        memset(stook_caches, 0, 512 * sizeof *stook_caches);
        for (unsigned i = 1; i < 512; i++) {
                stook_caches[i].state = STOOK_CACHE_LIVE;
                snprintf(stook_caches[i].name, sizeof stook_caches[i].name, "cache-%u", i);
        }
        set_all(511, 1);
        return cmocka_run_group_tests_name("figures through a file", tests, NULL, NULL);
}
