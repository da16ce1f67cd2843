/*
 * Purpose: counters of one moment; see baseline.h. The file is this header and the caches as they
 * are in memory: it is for the machine that wrote it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/heap/heap_inside.h"
#include "cli/info/baseline.h"

#define MAGIC      UINT64_C(0x31656e696c657361)         /* "aseline1" */
#define CACHES_MAX ((uint64_t)STOOK_CACHES_MAX * LIBRARIES_MAX)

struct header {
        uint64_t magic, at_ns, count;
        uint32_t pid, counters;
};

/* The counters of a stook_cache_stats, which begins with its size. */
static uint64_t *counters_of(struct stook_cache_stats *s)
{
        return &s->alloc_fastpath;
}

bool baseline_add(struct baseline *b, const struct heap *h)
{
        b->pid = h->memory->pid;
        b->at_ns = h->at_ns;
        for (size_t i = 0; i < h->cache_count; i++) {
                struct baseline_cache *c;

                if (!heap_more((void **)&b->caches, b->count, sizeof *b->caches))
                        return false;
                c = &b->caches[b->count++];
                c->library = h->library->address;
                c->born = h->caches[i].cache.born;
                memcpy(c->n, counters_of(&h->caches[i].stats), sizeof c->n);
        }
        return true;
}

const struct baseline_cache *baseline_of(const struct baseline *b, const struct heap *h,
                                         const struct heap_cache *cache)
{
        for (size_t i = 0; i < b->count; i++)
                if (b->caches[i].born == cache->cache.born &&
                    b->caches[i].library == h->library->address)
                        return &b->caches[i];
        return NULL;
}

void baseline_take_off(const struct baseline *b, struct heap *h)
{
        for (size_t i = 0; i < h->cache_count; i++) {
                uint64_t *now = counters_of(&h->caches[i].stats);
                const struct baseline_cache *was = baseline_of(b, h, &h->caches[i]);

                for (unsigned k = 0; was && k < STOOK_STAT_COUNT; k++)
                        now[k] = now[k] > was->n[k] ? now[k] - was->n[k] : 0;
        }
}

int baseline_save(const struct baseline *b, const char *path)
{
        struct header head = { MAGIC, b->at_ns, b->count, b->pid, STOOK_STAT_COUNT };
        FILE *f = fopen(path, "we");
        bool written;

        if (!f)
                return -errno;
        written = fwrite(&head, sizeof head, 1, f) == 1 &&
                  (!b->count || fwrite(b->caches, sizeof *b->caches, b->count, f) == b->count);
        if (fclose(f) || !written)
                return -(errno ? errno : EIO);
        return 0;
}

int baseline_load(struct baseline *b, const char *path)
{
        struct header head;
        FILE *f = fopen(path, "re");
        int error = f ? 0 : -errno;

        memset(b, 0, sizeof *b);
        if (error)
                return error;
        if (fread(&head, sizeof head, 1, f) != 1 || head.magic != MAGIC ||
            head.counters != STOOK_STAT_COUNT || head.count > CACHES_MAX) {
                error = -EBADMSG;
        } else {
                b->pid = head.pid;
                b->at_ns = head.at_ns;
                b->count = head.count;
                b->caches = malloc((b->count + 1) * sizeof *b->caches);
                if (!b->caches)
                        error = -ENOMEM;
                else if (fread(b->caches, sizeof *b->caches, b->count, f) != b->count)
                        error = -EBADMSG;
        }
        fclose(f);
        if (error)
                baseline_free(b);
        return error;
}

void baseline_free(struct baseline *b)
{
        free(b->caches);
        memset(b, 0, sizeof *b);
}
