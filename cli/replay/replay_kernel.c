/*
 * Purpose: see replay_kernel.h.
 * Files of a cache: a number, which is the sum of all CPUs where it is a counter, and perhaps more
 * behind it. A file that is not there is one that this kernel has not; one that cannot be read, or
 * does not begin with a number, ends the command.
 * Counters: the kernel's since sheaves are in all caches have the names and meanings of Stook's.
 * Before, where caches had sheaves by choice, alloc_pcs and free_pcs were the sheaves' hits, and
 * alloc_fastpath and alloc_slowpath went on to slabs.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/replay/replay_kernel.h"

#define VARIANTS     19
#define CAPACITY_MAX 65534              /* stook_cache_tune() */

struct reader {
        const char *folder;
        char       *message;            /* its first byte is 0 while nothing is wrong */
        size_t      bytes;
        int         failed;
};

/* 0: it is not there. */
static uint64_t number(struct reader *r, const char *cache, const char *file, bool *there)
{
        char path[PATH_MAX + 256], text[64] = "", *end;
        unsigned long long n = 0;
        FILE *in;

        *there = false;
        snprintf(path, sizeof path, "%s/%s/%s", r->folder, cache, file);
        in = r->failed ? NULL : fopen(path, "re");
        if (!in) {
                r->failed = r->failed || errno == ENOENT || errno == ENOTDIR ? r->failed : errno;
                if (r->failed && !r->message[0])
                        snprintf(r->message, r->bytes, "%s: %s", path, strerror(errno));
                return 0;
        }
        errno = 0;
        if (fgets(text, sizeof text, in) && isdigit((unsigned char)text[0]))
                n = strtoull(text, &end, 10);
        if (!isdigit((unsigned char)text[0]) || errno || !(isspace((unsigned char)*end) || !*end)) {
                r->failed = errno ? errno : EINVAL;
                snprintf(r->message, r->bytes, "%s: it does not begin with a number", path);
        }
        fclose(in);
        *there = !r->failed;
        return n;
}

/* Adds a cache's figures. False: there is no such cache. */
static bool add(struct reader *r, const char *name, struct replay_kernel_cache *k)
{
        struct stook_cache_stats s = { 0 };
        struct replay_layers allocs, frees;
        bool there, counted, by_choice;
        uint64_t n, pcs;

        n = number(r, name, "object_size", &there);
        if (!there)
                return false;
        if (!k->is_there) {
                k->object_size = n;
                k->sheaf_capacity = number(r, name, "sheaf_capacity", &k->has_sheaves);
                k->is_there = true;
        }
        k->is_shared |= number(r, name, "aliases", &there) > 0;
        s.sheaf_capacity = k->sheaf_capacity;
#define COUNTER(name_) s.name_ = number(r, name, #name_, &there);
        STOOK_COUNTERS(COUNTER)
#undef COUNTER
        number(r, name, "alloc_fastpath", &counted);
        k->is_counted |= counted;
        pcs = number(r, name, "alloc_pcs", &by_choice);
        if (by_choice) {
                s.alloc_slowpath += s.alloc_fastpath;
                s.alloc_fastpath = pcs;
                s.free_slowpath += s.free_fastpath;
                s.free_fastpath = number(r, name, "free_pcs", &there);
        }
        replay_layers(&s, &allocs, &frees);
        k->allocs.slot += allocs.slot;
        k->allocs.barn += allocs.barn;
        k->allocs.slabs += allocs.slabs;
        k->frees.slot += frees.slot;
        k->frees.barn += frees.barn;
        k->frees.slabs += frees.slabs;
        return true;
}

/* All caches that serve kmalloc of a size: plain, accounted, reclaimable, for DMA, random. */
static void add_kmalloc(struct reader *r, const char *size, struct replay_kernel_cache *k)
{
        static const char *const prefixes[] = { "kmalloc-", "kmalloc-cg-", "kmalloc-rcl-",
                                                "dma-kmalloc-" };
        char name[96];

        for (unsigned i = 0; i < VARIANTS; i++) {
                if (i < 4)
                        snprintf(name, sizeof name, "%s%s", prefixes[i], size);
                else
                        snprintf(name, sizeof name, "kmalloc-rnd-%02u-%s", i - 3, size);
                add(r, name, k);
        }
}

struct replay_kernel_cache *replay_kernel_read(const struct replay_list *list, const char *folder,
                                               char *message, size_t bytes)
{
        struct replay_kernel_cache *kernel = calloc(list->cache_count + 1, sizeof *kernel);
        struct reader r = { .folder = folder, .message = message, .bytes = bytes };
        DIR *dir = opendir(folder);
        size_t there = 0;

        message[0] = 0;
        if (!kernel)
                snprintf(message, bytes, "no memory");
        else if (!dir)
                snprintf(message, bytes, "%s: %s", folder, strerror(errno));
        for (size_t i = 0; !message[0] && i < list->cache_count; i++) {
                const char *name = list->caches[i].name;

                /* A trace has any name; a name of a folder has no slash. */
                if (!strncmp(name, "kmalloc-", 8))
                        add_kmalloc(&r, name + 8, &kernel[i]);
                else if (!strchr(name, '/') && name[0] != '.')
                        add(&r, name, &kernel[i]);
                there += kernel[i].is_there;
        }
        if (!message[0] && !there)
                snprintf(message, bytes, "%s: no cache of the trace is in it: it is to be as "
                         "/sys/kernel/slab", folder);
        if (dir)
                closedir(dir);
        if (!message[0])
                return kernel;
        free(kernel);
        return NULL;
}

int32_t *replay_kernel_capacities(const struct replay_kernel_cache *kernel, size_t caches)
{
        int32_t *capacity = calloc(caches + 1, sizeof *capacity);

        for (size_t i = 0; capacity && i < caches; i++)
                capacity[i] = kernel[i].has_sheaves && kernel[i].sheaf_capacity <= CAPACITY_MAX ?
                        (int32_t)kernel[i].sheaf_capacity : -1;
        return capacity;
}
