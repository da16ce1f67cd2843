/*
 * Purpose: glibc's calls that describe the heap or tune it, answered by stook_get_totals(). Numbers
 * are of the whole heap, object caches included. What lies free in sheaves and slabs is not in use.
 * Place: called by programs, seldom; calls inspect, cache and life. Not for handlers, but harmless
 * in one.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <stook/control.h>
#include <stook/stats.h>
#include "base/compiler.h"
#include "cache/cache.h"
#include "gate/gate.h"
#include "os/os.h"
#include "report/report.h"

/* All zero if the library could not start. */
static struct stook_totals sums(void)
{
        struct stook_totals totals = { .totals_size = sizeof(totals) };

        (void)stook_get_totals(&totals);
        return totals;
}

int malloc_trim(size_t keep);
STOOK_API int malloc_trim(size_t keep)
{
        return stook_trim(keep) > 0;
}

int mallopt(int parameter, int value);
STOOK_API int mallopt(int parameter, int value)
{
        (void)parameter;                        /* all are glibc's own: accepted and ignored */
        (void)value;
        return 1;
}

#ifdef __GLIBC__
/* Both structures have these fields. */
#define FIELDS(totals, to) \
        .arena = to((totals).active_bytes + (totals).free_dirty_bytes), \
        .ordblks = to((totals).free_spans), \
        .smblks = to((totals).objects_cached), \
        .usmblks = to((totals).active_peak_bytes), \
        .fsmblks = to((totals).cached_bytes), \
        .uordblks = to((totals).allocated_bytes), \
        .fordblks = to((totals).active_bytes + (totals).free_dirty_bytes - \
                       (totals).allocated_bytes), \
        .keepcost = to((totals).free_dirty_bytes)

#if __GLIBC_PREREQ(2, 33)
STOOK_API struct mallinfo2 mallinfo2(void)
{
        struct stook_totals totals = sums();

        return (struct mallinfo2){ FIELDS(totals, (size_t)) };
}
#endif

static int clamp(size_t n)
{
        return n > INT_MAX ? INT_MAX : (int)n;
}

STOOK_API struct mallinfo mallinfo(void)
{
        struct stook_totals totals = sums();

        return (struct mallinfo){ FIELDS(totals, clamp) };
}
#endif

void malloc_stats(void);
STOOK_API void malloc_stats(void)
{
        struct stook_totals totals = sums();
        char   text[512];
        size_t bytes = stook_report_format(text, sizeof(text),
                                           "stook: bytes in use %u\n"
                                           "stook: bytes in slabs and large objects %u\n"
                                           "stook: bytes free but resident %u\n"
                                           "stook: bytes free and not resident %u\n"
                                           "stook: bytes of metadata %u\n",
                                           totals.allocated_bytes, totals.active_bytes,
                                           totals.free_dirty_bytes, totals.free_clean_bytes,
                                           totals.metadata_bytes);

        stook_os_write(text, bytes);
}

/* What XML or a terminal would take for something else becomes '_'. */
static void copy_name(char *to, const char *name, size_t bytes)
{
        size_t i = 0;

        for (; name[i] && i < bytes - 1; i++)
                to[i] = name[i] < ' ' || name[i] > '~' || strchr("<>&\"'", name[i]) ? '_' : name[i];
        to[i] = 0;
}

/* No lock is held while a line is written: the stream may allocate. */
static void print_cache(const struct stook_cache *cache, FILE *out)
{
        uint32_t state = __atomic_load_n(&cache->state, __ATOMIC_ACQUIRE);
        struct stook_cache_stats s = { .stats_size = sizeof(s) };
        char name[sizeof(s.name)];

        if (state != STOOK_CACHE_LIVE || stook_cache_get_stats(cache, &s) || !s.alloc_slab)
                return;
        copy_name(name, s.name, sizeof(name));
        fprintf(out,
                "<cache name=\"%s\" size=\"%" PRIu64 "\" live=\"%" PRIu64 "\" cached=\"%" PRIu64
                "\" slabs=\"%" PRIu64 "\" bytes=\"%" PRIu64 "\" peak=\"%" PRIu64
                "\" allocated=\"%" PRIu64 "\"/>\n",
                name, s.object_size, s.objects_live, s.objects_cached, s.slabs,
                s.slabs * s.slab_bytes, s.slabs_peak * s.slab_bytes,
                s.alloc_fastpath + s.alloc_slowpath);
}

static void print_caches(FILE *out)
{
        unsigned bound = stook_gate_is_open() ? stook_caches_bound() : 0;

        for (unsigned i = 1; i < bound; i++)
                print_cache(stook_cache_at(i), out);
}

int malloc_info(int options, FILE *out);
STOOK_API int malloc_info(int options, FILE *out)
{
        struct stook_totals totals = sums();

        if (options) {
                errno = EINVAL;
                return -1;
        }
        fprintf(out,
                "<malloc version=\"stook-1\">\n"
                "<allocated bytes=\"%" PRIu64 "\" objects=\"%" PRIu64 "\"/>\n"
                "<taken bytes=\"%" PRIu64 "\" peak=\"%" PRIu64 "\"/>\n"
                "<free spans=\"%" PRIu64 "\" resident=\"%" PRIu64 "\" purged=\"%" PRIu64 "\"/>\n"
                "<metadata bytes=\"%" PRIu64 "\"/>\n",
                totals.allocated_bytes, totals.objects_live, totals.active_bytes,
                totals.active_peak_bytes, totals.free_spans, totals.free_dirty_bytes,
                totals.free_clean_bytes, totals.metadata_bytes);
        print_caches(out);
        fputs("</malloc>\n", out);
        return ferror(out) ? -1 : 0;
}
