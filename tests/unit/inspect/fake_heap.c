/*
 * Purpose: the heap below the figures of a process: caches with numbers of the tests' choice, and
 * the clock. See stats_page_test.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gate/gate.h"
#include "home/home.h"
#include "os/os.h"
#include "pages/span.h"
#include "process/process.h"
#include "report/report.h"
#include "unit/inspect/stats_page_test.h"

struct stook_cache *stook_caches;
uint32_t stook_gate_state = STOOK_GATE_OPEN;
unsigned    bound = 4;
const char *stats_variable;
unsigned    refusals;
uint64_t    now_ms = 1000;

unsigned stook_caches_bound(void)
{
        return bound;
}

bool stook_report_size_is(size_t said, size_t bytes, const char *field)
{
        (void)field;
        return said == bytes;
}

size_t stook_cache_object_size(const struct stook_cache *cache)
{
        return cache->object_size;
}

static unsigned walked;                 /* the index of the sheaf that the walk shows */

void stook_sheaf_walk(void (*each)(struct stook_sheaf *sheaf, unsigned cache_index, void *data),
                      void *data)
{
        for (walked = 0; walked < STOOK_CACHES_MAX; walked++)
                each(NULL, walked, data);
}

void stook_sheaf_sum_in(struct stook_sheaf *sheaf, void *data)
{
        struct stook_sheaf_sums *sums = data;

        (void)sheaf;
        sums->objects += walked;
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
struct stook_group groups[GROUPS];
uint32_t stook_groups_bound = 1;

struct stook_group *stook_group_at(uint16_t id)
{
        return &groups[id];
}

void stook_slabs_note_peaks(struct stook_slabs *slabs)
{
        slabs->slabs_peak = 5;
}

void stook_env_for_each(void (*each)(const char *name, size_t name_bytes, const char *value,
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
        if (group < groups || group >= groups + GROUPS || stats->stats_size != sizeof *stats)
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

struct stook_remote_counts stook_home_counts(const struct stook_front *front, unsigned node)
{
        (void)front;
        (void)node;
        return (struct stook_remote_counts){ 0 };
}

unsigned stook_os_node_count(void)
{
        return 1;
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

void *stook_os_zeroed(size_t bytes)
{
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? NULL : p;
}

void stook_os_unreserve(void *addr, size_t bytes)
{
        munmap(addr, bytes);
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

void set_all(unsigned caches, uint64_t value)
{
        for (unsigned i = 1; i <= caches; i++)
                for (unsigned n = 0; n < STOOK_STAT_COUNT; n++)
                        *stook_counter_at(&stook_caches[i].counters, n) = value;
}

void make_heap(void)
{
        static uint64_t far[512][STOOK_COUNTERS_FAR_COUNT];

        stook_caches = aligned_alloc(1024, 512 * sizeof *stook_caches);
        memset(stook_caches, 0, 512 * sizeof *stook_caches);
        for (unsigned i = 1; i < 512; i++) {
                stook_caches[i].state = STOOK_CACHE_LIVE;
                snprintf(stook_caches[i].short_name, sizeof stook_caches[i].short_name,
                         "cache-%u", i);
                stook_caches[i].slabs.name = stook_caches[i].short_name;
                stook_caches[i].counters.far = far[i];
        }
        set_all(511, 1);
}
