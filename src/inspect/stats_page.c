/*
 * Purpose: the library's side of the figures file; stats_page.h has the layout, the protocol and
 * the reasons.
 * Place: start and end by constructor and destructor; ticks through stat/counter.h. Reads
 * the cache, barn and page layers' own counters, and changes nothing there.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include "barn/sheaf.h"
#include "cache/cache.h"
#include "gate/gate.h"
#include "group/group.h"
#include "inspect/inspect.h"
#include "inspect/stats_page.h"
#include "os/os.h"
#include "pages/span.h"
#include "process/process.h"
#include "stat/counter.h"

/* Const after start. */
static struct {
        struct stook_stats_file *file;
        size_t   records;               /* within what was mapped */
        size_t   record_bytes;
} page;

/*
 * What belongs to this process and not to a forked child. It lies in memory that a fork wipes, or
 * the fork handler does. All zero: a process that has no record yet.
 */
struct publisher {
        /* Atomic: 1 while a thread publishes; acquired by exchange, released by store. */
        uint32_t busy;
        /* Under `busy`: no record was to be had, or the file system is full. */
        uint32_t refused;
        struct stook_stats_record *record;      /* busy */
        size_t   populated[2];          /* busy: bytes of each snapshot that are there */
        uint64_t due_ms;                /* atomic, relaxed: no snapshot for its time before */
        uint64_t ticks;                 /* atomic, relaxed */
};
static struct publisher *publisher;
static bool fork_wipes;                 /* const after start */

static struct stook_sheaf_sums *sums;   /* [STOOK_CACHES_MAX], publisher's busy */

/* ---- one snapshot ---- */

/* Has the first @bytes of a snapshot there, in steps of four pages. */
static bool room(struct stook_stats_snapshot *s, unsigned side, size_t bytes)
{
        const size_t step = 16384;
        uintptr_t    page_mask = stook_os_page_bytes() - 1;
        size_t       whole;

        if (STOOK_LIKELY(bytes <= publisher->populated[side]))
                return true;
        whole = (bytes + step - 1) & ~(step - 1);
        if (whole > sizeof *s)
                whole = sizeof *s;

        uintptr_t from = ((uintptr_t)s + publisher->populated[side]) & ~page_mask;
        uintptr_t to = ((uintptr_t)s + whole + page_mask) & ~page_mask;

        if (!stook_file_populate_part((void *)from, to - from))
                return false;
        publisher->populated[side] = whole;
        return true;
}

static void copy_text(char *out, size_t bytes, const char *text)
{
        size_t i = 0;

        for (; text && text[i] && i < bytes - 1; i++)
                out[i] = text[i];
        out[i] = 0;
}

static bool write_caches(struct stook_stats_snapshot *s, unsigned side)
{
        unsigned bound = stook_caches_bound();

        if (bound > STOOK_CACHES_MAX)
                bound = STOOK_CACHES_MAX;
        stook_snapshot_sums(sums, bound);
        for (unsigned i = 1; i < bound; i++) {
                const struct stook_cache *cache = stook_cache_at(i);
                uint32_t state = __atomic_load_n(&cache->state, __ATOMIC_ACQUIRE);

                if (state != STOOK_CACHE_LIVE && state != STOOK_CACHE_DYING)
                        continue;
                if (!stook_counted(&cache->counters, STOOK_STAT_alloc_slab))
                        continue;
                if (s->caches == STOOK_STATS_PAGE_CACHES) {
                        s->caches_more++;
                        continue;
                }
                if (!room(s, side, (size_t)((char *)&s->cache[s->caches + 1] - (char *)s)))
                        return false;
                s->cache[s->caches].stats_size = sizeof s->cache[0];
                stook_snapshot_cache(cache, &sums[i], &s->cache[s->caches++]);
        }
        return true;
}

static bool write_gone(struct stook_stats_snapshot *s, unsigned side)
{
        unsigned count = stook_gone_count();

        for (unsigned i = 0; i < count; i++) {
                struct stook_cache_stats *stats = &s->cache[s->caches + s->gone];

                if (s->caches + s->gone == STOOK_STATS_PAGE_CACHES) {
                        s->caches_more += count - i;
                        return true;
                }
                if (!room(s, side, (size_t)((char *)(stats + 1) - (char *)s)))
                        return false;
                s->gone_caches[s->gone++] = stook_gone_get(i, stats);
        }
        return true;
}

static void write_groups(struct stook_stats_snapshot *s)
{
        unsigned bound = __atomic_load_n(&stook_groups_bound, __ATOMIC_ACQUIRE);

        for (unsigned id = 1; id < bound; id++) {
                struct stook_group_stats *stats = &s->group_list[s->groups];

                if (__atomic_load_n(&stook_group_at((uint16_t)id)->state, __ATOMIC_RELAXED) ==
                    STOOK_GROUP_FREE)
                        continue;
                if (s->groups == STOOK_STATS_PAGE_GROUPS) {
                        s->groups_more++;
                        continue;
                }
                stats->stats_size = sizeof(*stats);
                stook_group_get_stats(stook_group_at((uint16_t)id), stats);
                s->groups++;
        }
}

static void write_group(struct stook_stats_snapshot *s)
{
        uint16_t id = stook_group_of_process;

        s->group.stats_size = id ? sizeof s->group : 0;
        if (id)
                stook_group_get_stats(stook_group_at(id), &s->group);
}

static bool write_snapshot(struct stook_stats_record *record, bool final)
{
        uint64_t sequence = record->sequence;
        unsigned side = (unsigned)(sequence + 1) & 1;
        struct stook_stats_snapshot *s = &record->snapshot[side];
        struct stook_pages_stats pages;

        if (!room(s, side, offsetof(struct stook_stats_snapshot, cache)))
                return false;
        s->caches = s->caches_more = s->gone = s->groups = s->groups_more = 0;
        s->group.stats_size = 0;
        memset(&pages, 0, sizeof pages);
        if (stook_gate_is_open()) {
                copy_text(record->backend, sizeof record->backend, stook_slots_backend_name());
                if (!write_caches(s, side) || !write_gone(s, side))
                        return false;
                write_group(s);
                write_groups(s);
                stook_pages_stats(&pages);
        }
        s->taken_bytes = pages.taken_bytes;
        s->free_dirty_bytes = pages.free_dirty_bytes;
        s->free_clean_bytes = pages.free_clean_bytes;
        s->metadata_bytes = pages.metadata_bytes;
        s->reserved_bytes = pages.reserved_bytes;
        s->final = final;
        s->at_ms = stook_os_clock_ms();
        /*
         * M1: the snapshot is whole before sequence says so; pairs with cli/run/figures.c
         * read_snapshot
         */
        __atomic_store_n(&record->sequence, sequence + 1, __ATOMIC_RELEASE);
        return true;
}

/* ---- a record for this process ---- */

struct lines {
        char  *text;
        size_t bytes;
};

static void add_line(const char *name, size_t n, const char *value, bool known, void *data)
{
        struct lines *lines = data;
        size_t value_bytes = known ? strlen(value) + 1 : 0;
        char *at = lines->text + lines->bytes;

        if (lines->bytes + n + value_bytes + 2 > STOOK_STATS_PAGE_VARIABLES ||
            (n == 11 && (!memcmp(name, "STOOK_STATS", n) || !memcmp(name, "STOOK_NOTES", n))))
                return;
        memcpy(at, name, n + value_bytes);
        lines->bytes += n + value_bytes + 1;
        for (char *c = at; c < at + n + value_bytes; c++)
                if (*c == '\n')
                        *c = '?';
        at[n + value_bytes] = '\n';
        at[n + value_bytes + 1] = 0;
}

/* NULL: none to be had. */
static struct stook_stats_record *take_record(enum stook_stats_birth birth)
{
        uint64_t index = __atomic_fetch_add(&page.file->taken, 1, __ATOMIC_RELAXED);
        struct stook_stats_record *record;

        if (index >= page.records)
                return NULL;
        record = (void *)((char *)page.file + STOOK_STATS_PAGE_UNIT + index * page.record_bytes);
        if (!stook_file_open_part(record, page.record_bytes) ||
            !stook_file_populate_part(record, stook_os_page_bytes()))
                return NULL;
        record->pid = stook_process_id();
        record->parent = stook_process_parent_id();
        record->begun_ms = stook_os_clock_ms();
        record->image = getauxval(AT_RANDOM);   /* where, not what: another place in each image */
        record->heap = (uintptr_t)&page;
        copy_text(record->program, sizeof record->program, program_invocation_short_name);
        stook_env_for_each(add_line, &(struct lines){ .text = record->variables });
        __atomic_store_n(&record->birth, birth, __ATOMIC_RELEASE);
        return record;
}

enum occasion { TAKE_RECORD, PUBLISH, PUBLISH_FINAL };

static void publish(enum stook_stats_birth birth, enum occasion occasion)
{
        struct publisher *p = publisher;

        /*
         * Busy: another thread publishes, or the one below this handler. At the end it is worth a
         * short wait.
         */
        for (unsigned tries = 0; __atomic_exchange_n(&p->busy, 1, __ATOMIC_ACQUIRE); tries++) {
                if (occasion != PUBLISH_FINAL || tries == 100)
                        return;
                stook_os_futex_wait(&p->busy, 1, 1000000);
        }
        if (!p->record && !p->refused) {
                p->record = take_record(birth);
                p->refused = !p->record;
        }
        if (occasion != TAKE_RECORD && !p->refused)
                p->refused = !write_snapshot(p->record, occasion == PUBLISH_FINAL);
        if (p->refused)
                __atomic_store_n(&stook_stats_page_hook, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&p->due_ms, stook_os_clock_ms() + STOOK_STATS_PAGE_MS, __ATOMIC_RELAXED);
        __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
}

static void tick(void)
{
        uint64_t ticks = __atomic_add_fetch(&publisher->ticks, 1, __ATOMIC_RELAXED);

        if ((ticks & (ticks - 1)) &&
            stook_os_clock_ms() < __atomic_load_n(&publisher->due_ms, __ATOMIC_RELAXED))
                return;
        /*
         * No record here means a child of _Fork or a raw clone: start and the fork handler take one
         * otherwise.
         */
        publish(STOOK_STATS_BORN_BY_FORK, PUBLISH);
}

/* ---- start, fork, end ---- */

/* False: the file is not one of ours. */
static bool attach(void *base, size_t bytes)
{
        struct stook_stats_file *file = base;

        if (bytes < STOOK_STATS_PAGE_UNIT + STOOK_STATS_RECORD_BYTES ||
            !stook_file_open_part(base, STOOK_STATS_PAGE_UNIT))
                return false;
        if (file->magic != STOOK_STATS_PAGE_MAGIC || file->version != STOOK_STATS_PAGE_VERSION ||
            file->record_bytes != STOOK_STATS_RECORD_BYTES)
                return false;
        page.file = file;
        page.record_bytes = STOOK_STATS_RECORD_BYTES;
        page.records = (bytes - STOOK_STATS_PAGE_UNIT) / page.record_bytes;
        if (page.records > file->records)
                page.records = file->records;
        return true;
}

void stook_stats_page_start(void)
{
        const char *path = stook_os_env("STOOK_STATS");
        uint64_t    limit;
        size_t      bytes = 0;
        void       *base;

        if (!path || page.file)
                return;
        limit = stook_os_address_limit();
        /*
         * With a limit on address space, less of the file; children may then find no record. One
         * that cannot be opened is no mistake of the user's: a program changed its root or its user
         * since `stook run`. Nor is another file below /proc: the command has ended, or is in
         * another PID namespace.
         */
        base = stook_file_map(path, limit == UINT64_MAX ? SIZE_MAX : (size_t)(limit / 16),
                                 &bytes);
        if (path[0] != '/' || (base && !attach(base, bytes))) {
                if (strncmp(path, "/proc/", 6))
                        stook_os_env_refuse("STOOK_STATS", path,
                                            "the file that `stook run --stats` makes");
                if (base)
                        stook_os_unreserve(base, bytes);
        }
        if (!page.file)
                return;
        sums = stook_os_zeroed(STOOK_CACHES_MAX * sizeof *sums);
        publisher = stook_os_zeroed(sizeof *publisher);
        if (!sums || !publisher)
                return;
        fork_wipes = stook_os_advise(publisher, stook_os_page_bytes(), STOOK_OS_WIPEONFORK);
        pthread_atfork(NULL, NULL, stook_stats_page_fork_child);
        publish(STOOK_STATS_BORN_BY_EXEC, TAKE_RECORD);
        if (!publisher->refused)
                __atomic_store_n(&stook_stats_page_hook, tick, __ATOMIC_RELAXED);
}

void stook_stats_page_fork_child(void)
{
        if (!__atomic_load_n(&stook_stats_page_hook, __ATOMIC_RELAXED))
                return;
        if (!fork_wipes)
                memset(publisher, 0, sizeof *publisher);
        publish(STOOK_STATS_BORN_BY_FORK, TAKE_RECORD);
}

void stook_stats_page_end(void)
{
        if (!__atomic_load_n(&stook_stats_page_hook, __ATOMIC_RELAXED))
                return;
        __atomic_store_n(&stook_stats_page_hook, NULL, __ATOMIC_RELAXED);
        publish(STOOK_STATS_BORN_BY_FORK, PUBLISH_FINAL);
}

__attribute__((constructor)) static void load(void)
{
        stook_stats_page_start();
}

__attribute__((destructor)) void stook_stats_page_unload(void)
{
        stook_stats_page_end();
}
