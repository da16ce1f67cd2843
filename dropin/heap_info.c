/*
 * Purpose: glibc's calls that describe the heap or tune it, answered from the page layer's sums.
 * Numbers are of the whole heap, object caches included: bytes taken by slabs and large objects
 * count as used, objects waiting in sheaves too. `stook run --stats` and <stook/stats.h> say more,
 * exactly.
 * Place: called by programs, seldom; calls pages and life. Not for handlers, but harmless in one.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stook/control.h>
#include "base/compiler.h"
#include "gate/gate.h"
#include "os/os.h"
#include "pages/span.h"
#include "report/report.h"

static struct stook_pages_stats sums(void)
{
        struct stook_pages_stats stats = {0};

        if (stook_gate_open())
                stook_pages_stats(&stats);
        return stats;
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
#if __GLIBC_PREREQ(2, 33)
STOOK_API struct mallinfo2 mallinfo2(void)
{
        struct stook_pages_stats stats = sums();

        return (struct mallinfo2){
                .arena = stats.taken_bytes + stats.free_dirty_bytes,
                .ordblks = stats.free_spans,
                .uordblks = stats.taken_bytes,
                .fordblks = stats.free_dirty_bytes,
                .keepcost = stats.free_dirty_bytes,
        };
}
#endif

static int clamp(size_t n)
{
        return n > INT_MAX ? INT_MAX : (int)n;
}

STOOK_API struct mallinfo mallinfo(void)
{
        struct stook_pages_stats stats = sums();

        return (struct mallinfo){
                .arena = clamp(stats.taken_bytes + stats.free_dirty_bytes),
                .ordblks = clamp(stats.free_spans),
                .uordblks = clamp(stats.taken_bytes),
                .fordblks = clamp(stats.free_dirty_bytes),
                .keepcost = clamp(stats.free_dirty_bytes),
        };
}
#endif

void malloc_stats(void);
STOOK_API void malloc_stats(void)
{
        struct stook_pages_stats stats = sums();
        char   text[256];
        size_t bytes = stook_report_format(text, sizeof(text),
                                           "stook: bytes in slabs and large objects %u\n"
                                           "stook: bytes free but resident %u\n"
                                           "stook: bytes free and not resident %u\n"
                                           "stook: bytes of metadata %u\n",
                                           (uint64_t)stats.taken_bytes,
                                           (uint64_t)stats.free_dirty_bytes,
                                           (uint64_t)stats.free_clean_bytes,
                                           (uint64_t)stats.metadata_bytes);

        stook_os_write(text, bytes);
}

int malloc_info(int options, FILE *out);
STOOK_API int malloc_info(int options, FILE *out)
{
        struct stook_pages_stats stats = sums();

        if (options) {
                errno = EINVAL;
                return -1;
        }
        fprintf(out,
                "<malloc version=\"stook-1\">\n"
                "<taken bytes=\"%zu\"/>\n"
                "<free spans=\"%zu\" resident=\"%zu\" purged=\"%zu\"/>\n"
                "<metadata bytes=\"%zu\"/>\n"
                "</malloc>\n",
                stats.taken_bytes, stats.free_spans, stats.free_dirty_bytes, stats.free_clean_bytes,
                stats.metadata_bytes);
        return ferror(out) ? -1 : 0;
}
