/*
 * Purpose: objects of other nodes go home a sheaf at a time, when the sheaf that they are in leaves
 * its slot. (A remote free straight into a slab is a compare-and-swap on a line of the other node
 * for every object.)
 *
 * Place: called through stook_slot_dispose by whatever takes sheaves off slots and keeps their
 * objects in sheaves (slot_pair.h, prefilled sheaves, sheaves that waited for readers), and by
 * cache's bulk frees; calls barn.
 *
 * A new sheaf is made here, and not by the barn. Its call has one node, for the barn and for
 * new memory. Here the barn is this thread's node's, and the memory is the home's, where the sheaf
 * goes once it is full.
 *
 * How: the hot paths push any object on the main of the slot they are on. So a slot has at most two
 * sheaves of a cache with objects of other nodes. A sheaf that leaves the slot is looked at as a
 * whole. Objects of one home: it goes to that home's barn as it is. Objects of several: they are
 * divided. For each slot and node there is a word that holds a sheaf of that node's objects, which
 * goes home when it is full. The part of this node has such a sheaf, too: what is left of a divided
 * sheaf is not full, and no barn takes it. A thread takes the sheaf out of its word by an exchange,
 * is its sole owner, puts objects in, and puts the sheaf back. The word is empty meanwhile. A
 * thread that finds that (a handler on top, another thread on the slot) makes a sheaf of its own. A
 * thread that then finds the word taken sends its sheaf home as it is. So there is nothing to be in
 * the middle of, no section is needed, and an evacuation owns what it takes. A sheaf that is never
 * filled goes home when no thread has put anything in since a look for what is idle last passed
 * (slot/slot_tick.c). What such a look has seen it says in the word, in bits that the address of a
 * sheaf has not. A thread that puts the sheaf back leaves them out.
 *
 * Invariants:
 *  I1 a sheaf in a word has at least one object and room for one, is of the cache, and its objects
 *     are of that node, which has memory.
 *  I2 a sheaf in a word is of its cache's capacity at least, and was put there under the newest
 *     generation of `config`. One that was put there under an older one is taken out again, by the
 *     tuner or by the thread that put it there.
 *  I3 the barn of a node that has memory holds objects of that node alone: each sheaf with objects
 *     that goes to a barn comes through stook_slot_dispose, or was filled with objects of one home.
 * Concurrency: M1: the release of a word's exchange pairs with the acquire of the next: the owner
 *  sees the objects. M2: a sheaf is put into its word, then the generation is looked at; a tuner
 *  (cache_tune.c) stores a generation, then looks at the words (stook_home_evacuate): one of the
 *  two sees the other.
 * Failure: no memory for a sheaf: the objects go to their slabs.
 */
#include <limits.h>
#include <string.h>

#include "base/inject.h"
#include "home/home.h"
#include "pages/meta.h"
#include "pages/pagemap.h"
#include "slab/slab.h"

static uintptr_t *word_of(const struct stook_barns *barns, size_t slot, unsigned node)
{
        return barns->remote->word + slot * stook_regions.nodes + node;
}

static struct stook_sheaf *sheaf_in(uintptr_t word)
{
        return (struct stook_sheaf *)(word & ~(uintptr_t)STOOK_LOOK_AT_ALL);
}

/* The sheaf is the caller's; NULL: there was none. */
static struct stook_sheaf *take_out(uintptr_t *word)
{
        return sheaf_in(__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL));
}

bool stook_home_add_cache(struct stook_front *front)
{
        size_t words = (size_t)stook_slots_bound() * stook_regions.nodes;
        struct stook_remote **remote = &front->barns->remote;

        if (*remote)
                memset((*remote)->sent, 0, sizeof((*remote)->sent));
        else if (stook_slots_by_node)
                *remote = stook_meta_bump(sizeof(**remote) + words * sizeof(uintptr_t), 0);
        return !stook_slots_by_node || *remote;
}

static uint32_t generation_of(struct stook_front *front)
{
        return __atomic_load_n(&front->config, __ATOMIC_ACQUIRE);
}

/* In hand: one with room, of this cache. NULL: no memory, or the cache has no sheaves yet. */
static struct stook_sheaf *take(struct stook_front *front, uintptr_t *word, unsigned home)
{
        struct stook_barns *barns = front->barns;
        struct stook_sheaf *sheaf = take_out(word);

        if (sheaf || !stook_barns_capacity(barns))
                return sheaf;
        sheaf = stook_barn_get_empty(barns, stook_slot_node(), STOOK_FROM_BARN);
        return sheaf ? sheaf : stook_sheaf_new(barns->cache_index, stook_barns_capacity(barns),
                                               home, barns->slabs->counters);
}

/* Full to the home's barn; else, or where that has no room, into the slabs. */
static void send(struct stook_front *front, struct stook_sheaf *sheaf, unsigned home, unsigned node)
{
        struct stook_remote_counts *sent = &front->barns->remote->sent[home];

        if (home != node) {
                __atomic_fetch_add(&sent->objects, stook_sheaf_size(sheaf), __ATOMIC_RELAXED);
                __atomic_fetch_add(&sent->sheaves, 1, __ATOMIC_RELAXED);
        }
        stook_barn_put(front->barns, home, sheaf);
}

/* True: @sheaf was still in @word, and is in hand again. */
static bool take_again(uintptr_t *word, const struct stook_sheaf *sheaf)
{
        uintptr_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

        while (sheaf_in(seen) == sheaf)
                if (__atomic_compare_exchange_n(word, &seen, 0, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_RELAXED))
                        return true;
        return false;
}

/*
 * Out of hand again. False: it cannot stay there. A tuner stores a new generation, then looks at
 * all words. If it passed this one before the sheaf was there, the generation is seen to be a new
 * one here. Another thread that took the sheaf in between flushes it, or has its own look here.
 */
static bool put_back(struct stook_front *front, uintptr_t *word, struct stook_sheaf *sheaf,
                     uint32_t generation)
{
        unsigned capacity = stook_barns_capacity(front->barns);
        uintptr_t none = 0;

        if (stook_sheaf_full(sheaf) || !stook_sheaf_size(sheaf) || !capacity ||
            sheaf->capacity < capacity || generation_of(front) != generation)
                return false;
        STOOK_INJECT_CALL(putting_back, front);
        if (!__atomic_compare_exchange_n(word, &none, (uintptr_t)sheaf, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED))                     /* M1, M2 */
                return false;
        return STOOK_LIKELY(__atomic_load_n(&front->config, __ATOMIC_SEQ_CST) == generation) ||
               !take_again(word, sheaf);
}

#define SEVERAL UINT_MAX

typedef uintptr_t two_words __attribute__((vector_size(16), aligned(8), may_alias));

/* The bits that are set in the distance of any of @n objects from @start. */
static uintptr_t distances(size_t n, void *const *objects, uintptr_t start)
{
        two_words from = { start, start }, even = { 0 }, odd = { 0 };
        uintptr_t rest = 0;

        for (; n >= 4; n -= 4, objects += 4) {
                even |= *(const two_words *)objects - from;
                odd |= *(const two_words *)(objects + 2) - from;
        }
        for (size_t i = 0; i < n; i++)
                rest |= (uintptr_t)objects[i] - start;
        even |= odd;
        return even[0] | even[1] | rest;
}

/*
 * The home of @n objects, at least one; SEVERAL: they have not the same. Nothing is decided for
 * one: the distances of all from the start of the first one's part of the range are gathered. All
 * lie in that part if none of them has a bit of the part's size or above. That takes two or three
 * instructions an object. It tells nothing of objects outside of the range that is cut into parts.
 */
static unsigned home_of_all(size_t n, void *const *objects)
{
        unsigned home = stook_address_node((uintptr_t)objects[0]), shift = stook_node_ranges.shift;
        uintptr_t place = (uintptr_t)objects[0] - stook_range.base, part;

        if (STOOK_LIKELY(shift != STOOK_NODES_UNCUT && place < STOOK_RANGE_BYTES)) {
                part = place >> shift << shift;
                if (STOOK_LIKELY(!(distances(n, objects, stook_range.base + part) >> shift)))
                        return home;
        }
        for (size_t i = 1; i < n; i++)
                if (stook_address_node((uintptr_t)objects[i]) != home)
                        return SEVERAL;
        return home;
}

/*
 * How objects come into a sheaf of a word: from their user, or from another sheaf. It matters to
 * what is counted.
 */
enum from { FREED, MOVED };

/* What a step leaves to its caller. */
struct rest {
        size_t left;                    /* objects, at the array's front; all: there was no sheaf */
        struct stook_sheaf *out;        /* goes home now; NULL: none */
};

/* Of @n objects those of @home, as many as its sheaf takes. */
static STOOK_NOINLINE struct rest put_home(struct stook_front *front, unsigned home, size_t n,
                                           void **objects, enum from from)
{
        uintptr_t *word = word_of(front->barns, stook_slot_now(), home);
        uint32_t generation = generation_of(front);
        struct stook_sheaf *sheaf = generation & 1 ? NULL : take(front, word, home);
        unsigned size, room;
        size_t left = 0;

        if (!sheaf)
                return (struct rest){ .left = n };
        size = stook_sheaf_size(sheaf);
        room = sheaf->capacity;
        for (size_t i = 0; i < n; i++)
                if (size < room && stook_address_node((uintptr_t)objects[i]) == home)
                        sheaf->objects[size++] = objects[i];
                else
                        objects[left++] = objects[i];
        if (from == FREED)
                __atomic_store_n(&sheaf->word, sheaf->word + size - stook_sheaf_size(sheaf),
                                 __ATOMIC_RELAXED);
        else
                stook_sheaf_set_size(sheaf, size);
        return (struct rest){ left, put_back(front, word, sheaf, generation) ? NULL : sheaf };
}

/*
 * Each of @n objects, freed on @node, towards its home. (What goes further down does so from here:
 * see tools/check-stack.)
 */
static void put_homes(struct stook_front *front, unsigned node, size_t n, void **objects,
                      enum from from)
{
        while (n) {
                unsigned home = stook_address_node((uintptr_t)objects[0]);
                struct rest rest = put_home(front, home, n, objects, from);

                if (rest.out)
                        send(front, rest.out, home, node);
                else if (rest.left == n)
                        break;
                n = rest.left;
        }
        if (!n)
                return;
        stook_count(front->barns->slabs->counters,
                    from == FREED ? STOOK_STAT_free_slowpath : STOOK_STAT_sheaf_flush, n);
        stook_slab_drain(front->barns->slabs, n, objects);
}

/*
 * To the barn of the node whose memory the sheaf is, where the next one that is asked for is near.
 * So a node that only frees gets back what its full sheaves took along. Else they would all be
 * deleted on the other node, and made anew here.
 */
static void put_empty(struct stook_front *front, struct stook_sheaf *sheaf)
{
        stook_barn_put(front->barns, stook_sheaf_node(sheaf), sheaf);
}

/*
 * As sole owner. The sheaf is empty at once: where the call is jumped out of, no object is in two
 * places.
 */
static void divide(struct stook_front *front, struct stook_sheaf *sheaf, unsigned node)
{
        size_t size = stook_sheaf_size(sheaf);

        stook_sheaf_set_size(sheaf, 0);
        put_homes(front, node, size, sheaf->objects, MOVED);
        put_empty(front, sheaf);
}

void stook_home_put(struct stook_front *front, int or_here, struct stook_sheaf *sheaf)
{
        unsigned node = or_here < 0 ? stook_slot_node() : (unsigned)or_here;
        unsigned size = stook_sheaf_size(sheaf), home = node;

        if (!size) {
                put_empty(front, sheaf);
                return;
        }
        if (stook_os_node_has_memory(node))
                home = home_of_all(size, sheaf->objects);
        if (home == SEVERAL)
                divide(front, sheaf, node);
        else if (home == node)
                stook_barn_put(front->barns, node, sheaf);
        else
                send(front, sheaf, home, node);
}

void stook_home_put_object(struct stook_front *front, void *object)
{
        /* It was popped for no user: not an allocation after all. */
        stook_count(front->barns->slabs->counters, STOOK_STAT_alloc_fastpath, (uint64_t)-1);
        put_homes(front, stook_slot_node(), 1, &object, MOVED);
}

size_t stook_home_sort(struct stook_front *front, size_t n, void **objects)
{
        unsigned node = stook_slot_node();
        size_t local = 0;

        /* Where there is no memory, any object may lie in the barn. */
        if (STOOK_LIKELY(!n || !stook_os_node_has_memory(node) || home_of_all(n, objects) == node))
                return n;
        for (size_t i = 0; i < n; i++)
                if (stook_address_node((uintptr_t)objects[i]) == node) {
                        void *object = objects[i];

                        objects[i] = objects[local];
                        objects[local++] = object;
                }
        put_homes(front, node, n - local, objects + local, FREED);
        return local;
}

/* ---- idle ones, and all ---- */

static bool reap(struct stook_barns *barns, uintptr_t *word, unsigned home,
                 enum stook_home_look look)
{
        uintptr_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

        if (!sheaf_in(seen))
                return false;
        if (look != STOOK_LOOK_AT_ALL && !(seen & look)) {
                /*
                 * Relaxed: a read-modify-write goes on with the release that put the sheaf there.
                 */
                __atomic_compare_exchange_n(word, &seen, seen | look, false, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED);
                return false;
        }
        if (!__atomic_compare_exchange_n(word, &seen, 0, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
                return false;
        stook_barn_retire(barns, home, sheaf_in(seen));
        return true;
}

unsigned stook_home_reap(struct stook_barns *barns, size_t slot, enum stook_home_look look,
                         unsigned work)
{
        unsigned done = 0;

        if (!barns->remote)
                return 0;
        for (unsigned node = 0; node < stook_regions.nodes && done < work; node++)
                done += reap(barns, word_of(barns, slot, node), node, look);
        return done;
}

/*
 * No barrier is needed, and no mutex. A thread takes such a sheaf out of its word by an exchange,
 * and owns it until it puts it back. So what is taken out here is this thread's alone.
 */
void stook_home_evacuate(struct stook_front *front)
{
        if (!front->barns->remote)
                return;
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned node = 0; node < stook_regions.nodes; node++) {
                        uintptr_t *word = word_of(front->barns, slot, node);
                        struct stook_sheaf *sheaf;

                        if (!__atomic_load_n(word, __ATOMIC_SEQ_CST))           /* M2 */
                                continue;
                        sheaf = take_out(word);
                        if (sheaf)
                                stook_barn_discard(front->barns, sheaf);
                }
}

/* ---- figures ---- */

struct stook_sheaf *stook_home_sheaf(struct stook_front *front, unsigned slot, unsigned node)
{
        uintptr_t word = 0;

        if (front->barns->remote)
                word = __atomic_load_n(word_of(front->barns, slot, node), __ATOMIC_ACQUIRE);
        return sheaf_in(word);
}

size_t stook_home_objects(struct stook_front *front)
{
        size_t n = 0;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned node = 0; node < stook_regions.nodes; node++) {
                        const struct stook_sheaf *sheaf = stook_home_sheaf(front, slot, node);

                        n += sheaf ? stook_sheaf_size(sheaf) : 0;
                }
        return n;
}

struct stook_remote_counts stook_home_counts(const struct stook_front *front, unsigned node)
{
        const struct stook_remote *remote = front->barns->remote;
        struct stook_remote_counts c = { 0 };

        if (remote) {
                c.objects = __atomic_load_n(&remote->sent[node].objects, __ATOMIC_RELAXED);
                c.sheaves = __atomic_load_n(&remote->sent[node].sheaves, __ATOMIC_RELAXED);
        }
        return c;
}
