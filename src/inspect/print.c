/*
 * Purpose: a cache's figures, groups and settings as text, from inside the process: the table of
 * all caches, those that were destroyed, groups, pages, and what the environment said. It is
 * printed by stook_stats_print(), and to standard error at exit, on a signal, or both
 * (STOOK_PRINT).
 * Place: API, a constructor and a destructor; reads all layers.
 * Invariants:
 *  I1 a signal that the program ignores or handles when the library starts is left alone. The
 *     program may install a handler of its own later; then the signal is the program's.
 *  I2 the handler uses nothing but its stack and the writes of this file. It preserves errno.
 * Concurrency: relaxed reads without a lock, so it may run in a handler on top of anything. A cache
 * that is destroyed meanwhile may be missing, or stand there with what it had.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cache/cache.h"
#include "gate/gate.h"
#include "group/group.h"
#include "inspect/inspect.h"
#include "life/life.h"
#include "os/os.h"
#include "pages/span.h"
#include "process/process.h"
#include "report/report.h"
#include "stat/counter.h"
#include "stat/gone.h"

#define LINE_MAX_BYTES 224

struct printer {
        void  (*put)(const char *text, size_t bytes, void *data);
        void   *data;
        char    line[LINE_MAX_BYTES + 1];
        size_t  bytes;
};

/* ---- lines ---- */

/* What does not fit is cut; what is not printable becomes '?'. */
static void words(struct printer *p, const char *text)
{
        for (; *text && p->bytes < LINE_MAX_BYTES; text++) {
                unsigned char c = (unsigned char)*text;

                p->line[p->bytes++] = c < ' ' || c == 127 ? '?' : (char)c;
        }
}

static void end_line(struct printer *p)
{
        p->line[p->bytes++] = '\n';
        p->put(p->line, p->bytes, p->data);
        p->bytes = 0;
}

static void number(struct printer *p, uint64_t n)
{
        char digits[24];

        stook_report_format(digits, sizeof(digits), "%u", n);
        words(p, digits);
}

/* One blank, and as many as are missing to column @to. */
static void pad(struct printer *p, size_t to)
{
        do
                words(p, " ");
        while (p->bytes < to && p->bytes < LINE_MAX_BYTES);
}

/* Right-aligned in @width columns, with a blank before. */
static void column(struct printer *p, uint64_t n, unsigned width)
{
        char digits[24];
        size_t bytes = stook_report_format(digits, sizeof(digits), "%u", n);

        words(p, " ");
        for (; bytes < width; bytes++)
                words(p, " ");
        words(p, digits);
}

/* ---- the table ---- */

#define NAME_WIDTH 32
static const char heading[] =
        "cache                              size       live     cached  slabs   slab KiB   "
        "peak KiB    allocated        freed";

struct totals {
        uint64_t live, cached, slabs, slab_bytes, allocated, freed;
};

/* @peak_bytes: NULL for the total. Caches have their peaks at different times: no sum is true. */
static void numbers(struct printer *p, const struct totals *t, const uint64_t *peak_bytes)
{
        column(p, t->live, 10);
        column(p, t->cached, 10);
        column(p, t->slabs, 6);
        column(p, t->slab_bytes / 1024, 10);
        if (peak_bytes)
                column(p, *peak_bytes / 1024, 10);
        else
                words(p, "          -");
        column(p, t->allocated, 12);
        column(p, t->freed, 12);
        end_line(p);
}

static void cache_line(struct printer *p, const struct stook_cache_stats *s, uint64_t gone,
                       struct totals *sum)
{
        struct totals t = {
                s->objects_live, s->objects_cached, s->slabs, s->slabs * s->slab_bytes,
                s->alloc_fastpath + s->alloc_slowpath,
                s->free_fastpath + s->free_slowpath + s->free_rcu_sheaf,
        };
        uint64_t peak_bytes = s->slabs_peak * s->slab_bytes;

        words(p, s->name);
        if (gone) {
                words(p, " (");
                if (gone > 1) {
                        number(p, gone);
                        words(p, " ");
                }
                words(p, "destroyed)");
        }
        pad(p, NAME_WIDTH);
        column(p, s->object_size, 6);
        numbers(p, &t, &peak_bytes);
        sum->live += t.live;
        sum->cached += t.cached;
        sum->slabs += t.slabs;
        sum->slab_bytes += t.slab_bytes;
        sum->allocated += t.allocated;
        sum->freed += t.freed;
}

static bool is_shown(const struct stook_cache *cache)
{
        uint32_t state = __atomic_load_n(&cache->state, __ATOMIC_ACQUIRE);

        return (state == STOOK_CACHE_LIVE || state == STOOK_CACHE_DYING) &&
               stook_counted(&cache->counters, STOOK_STAT_alloc_slab);
}

static void table(struct printer *p)
{
        struct stook_cache_stats stats;
        struct stook_sheaf_sums sums;
        struct totals sum = { 0 };
        unsigned bound = stook_caches_bound();

        words(p, heading);
        end_line(p);
        for (unsigned i = 1; i < bound; i++) {
                if (!is_shown(stook_cache_at(i)))
                        continue;
                stook_sheaf_sum(i, &sums);
                stook_snapshot_cache(stook_cache_at(i), &sums, &stats);
                cache_line(p, &stats, 0, &sum);
        }
        bound = stook_gone_count();
        for (unsigned i = 0; i < bound; i++) {
                uint64_t gone = stook_gone_get(i, &stats);

                cache_line(p, &stats, gone, &sum);
        }
        words(p, "total");
        pad(p, NAME_WIDTH + 7);
        numbers(p, &sum, NULL);
}

/* ---- what follows it ---- */

static void pages(struct printer *p)
{
        struct stook_pages_stats stats;

        stook_pages_stats(&stats);
        words(p, "bytes in slabs and large objects ");
        number(p, stats.taken_bytes);
        words(p, ", free but resident ");
        number(p, stats.free_dirty_bytes);
        words(p, ", the library's own ");
        number(p, stats.metadata_bytes);
        end_line(p);
}

/* What is in force, whether or not a variable asked for it. */
static void mode(struct printer *p)
{
        words(p, "slots by ");
        words(p, stook_slots_index_name());
        words(p, ", ");
        number(p, stook_slots_count());
        words(p, " at most; nodes ");
        number(p, stook_os_node_count());
        words(p, "; huge pages: ");
        words(p, stook_options_thp());
        words(p, stook_options_maintenance() ? "; with a maintenance thread" : "");
        end_line(p);
}

static void groups(struct printer *p)
{
        struct stook_group_stats stats = { .stats_size = sizeof(stats) };
        unsigned bound = __atomic_load_n(&stook_groups_bound, __ATOMIC_ACQUIRE);

        for (unsigned id = 1; id < bound; id++) {
                const struct stook_group *group = stook_group_at((uint16_t)id);

                if (__atomic_load_n(&group->state, __ATOMIC_RELAXED) == STOOK_GROUP_FREE)
                        continue;
                stook_group_get_stats(group, &stats);
                words(p, "group ");
                words(p, stats.name);
                words(p, ": bytes in use ");
                number(p, stats.usage_bytes);
                words(p, ", at most ");
                number(p, stats.peak_bytes);
                if (stats.limit_bytes) {
                        words(p, ", limit ");
                        number(p, stats.limit_bytes);
                }
                words(p, ", refused ");
                number(p, stats.refusals);
                end_line(p);
        }
}

static void variable(const char *name, size_t name_bytes, const char *value, bool known,
                     void *data)
{
        struct printer *p = data;

        (void)name_bytes;
        (void)value;
        words(p, known ? "setting " : "not read by Stook: ");
        words(p, name);                 /* with its value */
        end_line(p);
}

void stook_print_stats(void (*put)(const char *text, size_t bytes, void *data), void *data)
{
        struct printer p = { .put = put, .data = data };

        words(&p, "stook: ");
        words(&p, program_invocation_short_name);
        words(&p, " (pid ");
        number(&p, stook_process_id());
        words(&p, "), backend ");
        words(&p, stook_gate_is_open() ? stook_slots_backend_name() : "none: not started");
        end_line(&p);
        if (stook_gate_is_open()) {
                mode(&p);
                table(&p);
                pages(&p);
                groups(&p);
        }
        stook_env_for_each(variable, &p);
}

static void put_to_file(const char *text, size_t bytes, void *data)
{
        fwrite(text, 1, bytes, data);
}

STOOK_API int stook_stats_print(FILE *out)
{
        if (!out)
                return -EINVAL;
        if (!stook_gate_start())
                return -ENOMEM;
        stook_print_stats(put_to_file, out);
        return ferror(out) ? -EIO : 0;
}

/* ---- STOOK_PRINT ---- */

static const struct {
        const char *name;
        int number;
} signals[] = {
        { "HUP", SIGHUP }, { "QUIT", SIGQUIT }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
        { "URG", SIGURG }, { "WINCH", SIGWINCH }, { "IO", SIGIO },
};

#define TAKES \
        "exit, a signal (USR1, USR2, HUP, QUIT, URG, WINCH, IO, 34 to 64), or several with commas"

static bool at_exit;                    /* const after start */

static void put_to_stderr(const char *text, size_t bytes, void *data)
{
        (void)data;
        stook_os_write(text, bytes);
}

static void handle(int number)
{
        int before = errno;

        (void)number;
        stook_print_stats(put_to_stderr, NULL);
        errno = before;
}

static bool is_word(const char *text, size_t n, const char *word)
{
        return strlen(word) == n && !memcmp(text, word, n);
}

/* A name of the table, with or without SIG, or SIGRTMIN to SIGRTMAX by number. 0: none of them. */
static int signal_number(const char *text, size_t n)
{
        int number = 0;

        if (n > 3 && !memcmp(text, "SIG", 3)) {
                text += 3;
                n -= 3;
        }
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                if (is_word(text, n, signals[i].name))
                        return signals[i].number;
        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9' || number > 6)
                        return 0;
                number = number * 10 + (text[i] - '0');
        }
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                if (number == signals[i].number)
                        return number;
        return number >= 34 && number <= 64 ? number : 0;
}

static void install(int number)
{
        struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART | SA_ONSTACK };
        struct sigaction before;

        if (!sigaction(number, NULL, &before) && before.sa_handler == SIG_DFL)  /* I1 */
                sigaction(number, &action, NULL);
}

__attribute__((constructor)) static void start(void)
{
        const char *value = stook_os_env("STOOK_PRINT"), *c = value;

        for (; c; c = c[strcspn(c, ",")] ? c + strcspn(c, ",") + 1 : NULL) {
                size_t n = strcspn(c, ",");
                int number = signal_number(c, n);

                if (is_word(c, n, "exit")) {
                        at_exit = true;
                        stook_os_keep_stderr();
                } else if (number) {
                        install(number);
                } else {
                        stook_os_env_refuse("STOOK_PRINT", value, TAKES);
                }
        }
}

__attribute__((destructor)) void stook_print_end(void)
{
        if (at_exit)
                stook_print_stats(put_to_stderr, NULL);
}
