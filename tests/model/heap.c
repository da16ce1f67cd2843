/*
 * What this proves: random calls of the public interface, on caches of all kinds and on malloc's
 * names, behave as a naive oracle (an array of live objects) says: alignment, no two live objects
 * overlap, contents are kept, constructed bytes survive, zeroed ones are zero, destroy succeeds
 * exactly when nothing is left; and after every few steps all invariants hold and the counts are
 * exact.
 *
 *      heap [STEPS [SEED]]     the seed is printed; the same seed gives the same calls
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stook/stook.h>

#define CACHES 10
#define LIVE_MAX 3000
#define BULK_MAX 300
#define CHECK_EVERY 256
#define CONSTRUCTED UINT64_C(0x0123456789abcdef)

static uint64_t seed, random_state;
static long step;

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void failed(const char *what, int line)
{
        printf("heap.c:%d: seed %" PRIu64 " step %ld: not so: %s\n", line, seed, step, what);
        exit(1);
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 */
static uint64_t draw(void)
{
        uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static uint64_t below(uint64_t n)
{
        return draw() % n;
}

/* ---- the oracle ---- */

struct kind {
        struct stook_cache *cache;
        size_t size, align;
        bool   constructed;
        size_t live;
};

struct live {
        unsigned char *object;
        size_t   size;
        unsigned char fill;
        struct kind *kind;              /* NULL: malloc's */
};

static struct kind kinds[CACHES];
static struct live live[LIVE_MAX];
static size_t lives;
static unsigned reports;

static void on_report(const struct stook_report *report, void *data)
{
        (void)report, (void)data;
        reports++;
}

static void construct(void *object, void *data)
{
        (void)data;
        memcpy(object, &(uint64_t){ CONSTRUCTED }, 8);
}

/* Bytes a user may write: behind what the constructor made. */
static size_t user_from(const struct kind *kind)
{
        return kind && kind->constructed ? 8 : 0;
}

static void check_content(const struct live *l)
{
        uint64_t made;

        if (l->kind && l->kind->constructed) {
                memcpy(&made, l->object, 8);
                expect(made == CONSTRUCTED);
        }
        for (size_t i = user_from(l->kind); i < l->size; i++)
                expect(l->object[i] == l->fill);
}

static void born(void *object, size_t size, struct kind *kind, bool zero)
{
        struct live *l = live + lives;
        uintptr_t from = (uintptr_t)object, to = from + size;

        expect(object);
        expect(from % (kind ? kind->align : 16) == 0);
        for (size_t i = 0; i < lives; i++)
                expect(to <= (uintptr_t)live[i].object ||
                       from >= (uintptr_t)live[i].object + live[i].size);
        *l = (struct live){ object, size, (unsigned char)draw(), kind };
        if (zero)
                for (size_t i = 0; i < size; i++)
                        expect(l->object[i] == 0);
        if (kind && kind->constructed)
                memset(l->object + 8, l->fill, size - 8);
        else
                memset(l->object, l->fill, size);
        check_content(l);
        if (kind) {
                kind->live++;
                expect(stook_object_cache(object) == kind->cache);
                expect(stook_object_node(object) >= 0);
        }
        lives++;
}

static struct live died(size_t i)
{
        struct live l = live[i];

        check_content(&l);
        if (l.kind)
                l.kind->live--;
        live[i] = live[--lives];
        return l;
}

/* ---- operations ---- */

static void make(struct kind *kind)
{
        static const size_t sizes[] = { 8,   24,   56,   64,   100,  200,   256,
                                        700, 1024, 3000, 4096, 9000, 20000, 131072 };
        struct stook_cache_args args = { .args_size = sizeof(args) };
        static unsigned made;
        char name[32];

        kind->size = below(3) ? sizes[below(sizeof(sizes) / sizeof(*sizes))] : 8 + below(2000);
        kind->align = 8;
        kind->constructed = !below(4);
        kind->live = 0;
        if (!below(4))
                args.align = kind->align = (size_t)8 << below(10);
        if (!below(4))
                args.flags |= STOOK_CACHE_RANDOM_ORDER;
        if (!below(8))
                args.flags |= STOOK_CACHE_NO_SHEAVES;
        if (!below(4))
                args.sheaf_capacity = (unsigned)below(200);
        if (!below(4))
                args.barn_full = args.barn_empty = below(2) ? UINT32_MAX : 3;
        if (kind->constructed) {
                args.ctor = construct;
        }
        snprintf(name, sizeof(name), "model-%u", ++made);
        kind->cache = stook_cache_create(name, kind->size, &args);
        expect(kind->cache);
        expect(stook_cache_find(name) == kind->cache);
        expect(stook_cache_object_size(kind->cache) == kind->size);
}

static void check_kind(struct kind *kind)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        expect(stook_cache_validate(kind->cache) == 0);
        expect(stook_cache_get_stats(kind->cache, &s) == 0);
        expect(s.objects_live == kind->live);
        expect(s.objects_cached ==
               s.sheaf_refill + s.free_fastpath - s.alloc_fastpath - s.sheaf_flush);
        expect(s.sheaves == s.sheaf_alloc - s.sheaf_free);
        expect(s.slabs == s.alloc_slab - s.free_slab);
}

static void unmake(struct kind *kind)
{
        unsigned before = reports;

        if (kind->live) {
                expect(stook_cache_destroy(kind->cache) == -EBUSY);
                expect(reports > before);
                return;
        }
        expect(stook_cache_destroy(kind->cache) == 0);
        expect(reports == before);
        make(kind);
}

static void alloc_one(struct kind *kind)
{
        switch (below(kind->constructed ? 2 : 4)) {
        case 0:
                born(stook_cache_alloc(kind->cache), kind->size, kind, false);
                break;
        case 1:
                born(stook_cache_alloc_node(kind->cache, STOOK_ALLOC_THISNODE, below(2) ? 0 : -1),
                     kind->size, kind, false);
                break;
        case 2:
                born(stook_cache_zalloc(kind->cache), kind->size, kind, true);
                break;
        default:
                born(stook_cache_alloc_node(kind->cache, STOOK_ALLOC_ZERO, -1), kind->size, kind,
                     true);
        }
}

static void alloc_many(struct kind *kind)
{
        void    *objects[BULK_MAX];
        size_t   n = 1 + below(BULK_MAX), room = LIVE_MAX - lives;
        unsigned zero = kind->constructed || below(2) ? 0 : STOOK_ALLOC_ZERO;

        if (n * kind->size > (4u << 20))
                n = (4u << 20) / kind->size;
        if (n > room)
                n = room;
        if (!n)
                return;
        expect(stook_cache_alloc_bulk(kind->cache, zero, n, objects) == 0);
        for (size_t i = 0; i < n; i++)
                born(objects[i], kind->size, kind, zero);
}

static void free_one(size_t i)
{
        struct live l = died(i);

        if (!l.kind)
                stook_free(l.object);
        else
                stook_cache_free(l.kind->cache, l.object);
}

/* Of one kind, or of all. */
static void free_many(struct kind *kind)
{
        void  *objects[BULK_MAX];
        size_t n = 0, most = 1 + below(BULK_MAX);

        for (size_t i = 0; i < lives && n < most;) {
                if (live[i].kind && (!kind || live[i].kind == kind) && below(3))
                        objects[n++] = died(i).object;
                else
                        i++;
        }
        stook_cache_free_bulk(kind ? kind->cache : NULL, n, objects);
}

static size_t malloc_size(void)
{
        return below(20) ? 1 + below((size_t)16 << below(9)) : 1 + below((size_t)1 << 20);
}

static void malloc_one(void)
{
        size_t size = malloc_size(), align;

        switch (below(4)) {
        case 0:
                born(stook_calloc(1, size), size, NULL, true);
                break;
        case 1:
                align = (size_t)16 << below(9);
                born(stook_aligned_alloc(align, size), size, NULL, false);
                expect((uintptr_t)live[lives - 1].object % align == 0);
                break;
        default:
                born(stook_malloc(size), size, NULL, false);
        }
        expect(stook_usable_size(live[lives - 1].object) >= size);
}

static void realloc_one(size_t i)
{
        size_t size = malloc_size(), kept;
        struct live l;
        unsigned char *moved;

        if (live[i].kind)
                return;
        l = died(i);
        moved = stook_realloc(l.object, size);
        expect(moved);
        kept = size < l.size ? size : l.size;
        for (size_t k = 0; k < kept; k++)
                expect(moved[k] == l.fill);
        born(moved, size, NULL, false);
}

static void one_step(void)
{
        struct kind *kind = kinds + below(CACHES);
        bool room = lives < LIVE_MAX;
        /* Whether the heap grows or shrinks changes slowly, so that slabs come and go. */
        bool growing = (step >> 12) % 3 != 2;

        switch (below(growing ? 40 : 30)) {
        case 0:
                if (!below(8))
                        unmake(kind);
                break;
        case 1:
                if (!below(4))
                        expect(stook_cache_shrink(kind->cache) >= 0);
                break;
        case 2:
                if (!below(16))
                        stook_trim(below(1 << 20));
                else
                        stook_maintain();
                break;
        case 3:
                if (below(2))
                        free_many(below(2) ? kind : NULL);
                break;
        case 4:
                if (room && !below(2))
                        alloc_many(kind);
                break;
        case 5 ... 8:
                if (lives)
                        realloc_one(below(lives));
                break;
        case 9 ... 13:
                if (room)
                        malloc_one();
                break;
        case 14 ... 24:
                if (lives)
                        free_one(below(lives));
                break;
        default:
                if (room)
                        alloc_one(kind);
        }
}

int main(int argc, char **argv)
{
        long steps = argc > 1 ? atol(argv[1]) : 200000;

        seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
        random_state = seed;
        printf("seed %" PRIu64 ", %ld steps\n", seed, steps);
        fflush(stdout);
        stook_on_report(on_report, NULL);
        for (int i = 0; i < CACHES; i++)
                make(kinds + i);
        for (step = 1; step <= steps; step++) {
                one_step();
                if (step % CHECK_EVERY == 0)
                        for (int i = 0; i < CACHES; i++)
                                check_kind(kinds + i);
        }
        while (lives)
                free_one(below(lives));
        for (int i = 0; i < CACHES; i++) {
                check_kind(kinds + i);
                expect(stook_cache_destroy(kinds[i].cache) == 0);
        }
        return 0;
}
