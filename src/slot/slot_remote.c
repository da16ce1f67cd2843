/*
 * Purpose: objects freed on another node than their own go home a sheaf at a time. For each slot and node there is a
 * word that holds a sheaf of such objects; a full one goes to its home's barn as it is, and is handed out there. (A
 * remote free straight into a slab is a compare-and-swap on a line of the other node for every object.)
 *
 * Place: called by slot_miss.c and cache's bulk frees; calls barn.
 *
 * How: whoever frees takes the sheaf out of its word by an exchange, is its sole owner, puts the object in, and puts the
 * sheaf back. The word is empty meanwhile: who finds that (a handler on top, another thread of a locked slot) makes a
 * sheaf of its own, and who then finds the word taken sends its sheaf home as it is. So there is nothing to be in the
 * middle of, no section is needed, and a drain owns what it takes.
 * A sheaf that is never filled goes home when nobody has put anything in since a look for what is idle last passed
 * (slot_idle.c). What such a look has seen it says in the word, in bits that the address of a sheaf has not; whoever puts
 * the sheaf back leaves them out.
 *
 * Invariants:
 *  I1 a sheaf in a word has at least one object and room for one, is of the cache, and its objects are of that node, which
 *     has memory. No such object is ever pushed on a main. (A thread that migrates between the look at the node and its
 *     push may do that, and refills from other nodes bring some: those who ask for a node look at the object.)
 *  I2 a sheaf taken under a generation of `config` is put back under that one or not at all.
 * Concurrency: M1: the release of a word's exchange pairs with the acquire of the next: the owner sees the objects.
 * Failure: no memory for a sheaf: the object goes to its slab.
 */
#include <string.h>

#include "pages/meta.h"
#include "pages/pagemap.h"
#include "slot/slot_node.h"
#include "slot/slot_regions.h"
#include "slot/slot_section.h"

/* Of each cache: counts for each node, then words, slot by slot. */
struct stook_remote {
        struct stook_remote_counts sent[STOOK_NODES_MAX];
        uint32_t looked_ms;             /* atomic, relaxed, a hint: when a round last passed */
        uintptr_t word[];               /* atomic M1: sheaf | SEEN_* */
};

#define SEEN_HAND  1u                   /* by the slot's own hand */
#define SEEN_ROUND 2u                   /* by a round over all slots */
#define SEEN       ((uintptr_t)3)

static struct stook_sheaf *sheaf_in(uintptr_t word)
{
        return (struct stook_sheaf *)(word & ~SEEN);
}

static struct stook_sheaf *take_out(uintptr_t *word)
{
        return sheaf_in(__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL));
}

static uintptr_t *word_of(const struct stook_front *front, unsigned slot, unsigned node)
{
        return front->remote->word + (size_t)slot * stook_regions.nodes + node;
}

bool stook_slots_add_remote(struct stook_front *front)
{
        size_t words = (size_t)stook_slots_bound() * stook_regions.nodes;

        if (front->remote)
                memset(front->remote->sent, 0, sizeof(front->remote->sent));
        else if (stook_slots_by_node)
                front->remote = stook_meta_bump(sizeof(*front->remote) + words * sizeof(uintptr_t), 0);
        front->below->remote = front->remote;
        return !stook_slots_by_node || front->remote;
}

static uint32_t generation_of(struct stook_front *front)
{
        return __atomic_load_n(&front->config, __ATOMIC_ACQUIRE);
}

/* In hand: one with room, of this cache. NULL: no memory. */
static struct stook_sheaf *take(struct stook_front *front, uintptr_t *word, unsigned home)
{
        struct stook_barns *barns = front->below;
        struct stook_sheaf *sheaf = take_out(word);

        if (sheaf)
                return sheaf;
        sheaf = stook_barn_get_empty(barns, stook_slot_node());
        return sheaf ? sheaf : stook_sheaf_new(barns->cache_index, stook_barns_capacity(barns), home, barns->counters);
}

/* Full to the home's barn; else, or where that has no room, into the slabs. */
static void send(struct stook_front *front, struct stook_sheaf *sheaf, unsigned home)
{
        struct stook_remote_counts *sent = &front->remote->sent[home];

        __atomic_fetch_add(&sent->objects, stook_sheaf_size(sheaf), __ATOMIC_RELAXED);
        __atomic_fetch_add(&sent->sheaves, 1, __ATOMIC_RELAXED);
        stook_barn_dispose(front->below, home, sheaf);
}

/* Out of hand again. */
static void put_back(struct stook_front *front, uintptr_t *word, unsigned home, struct stook_sheaf *sheaf,
                     uint32_t generation)
{
        uintptr_t none = 0;

        if (!stook_sheaf_full(sheaf) && stook_sheaf_size(sheaf) && generation_of(front) == generation &&
            __atomic_compare_exchange_n(word, &none, (uintptr_t)sheaf, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                return;
        send(front, sheaf, home);
}

/* As sole owner of a sheaf with room. */
static void push(struct stook_sheaf *sheaf, void *object)
{
        sheaf->objects[stook_sheaf_size(sheaf)] = object;
        __atomic_store_n(&sheaf->word, sheaf->word + 1, __ATOMIC_RELAXED);
}

static bool on_top(const struct stook_sheaf *sheaf, const void *object)
{
        unsigned size = stook_sheaf_size(sheaf);

        return size && sheaf->objects[size - 1] == object;
}

/* May the object lie in sheaves of the node? Where there is no memory, any may. */
static bool is_at_home(unsigned home, unsigned node)
{
        return home == node || !stook_os_node_has_memory(node);
}

static void to_slab(struct stook_front *front, void *object)
{
        stook_count(front->below->counters, STOOK_STAT_free_slowpath, 1);
        stook_slab_drain(front->below->below, 1, &object);
}

bool stook_slot_push_home(struct stook_front *front, void *object)
{
        const struct stook_thread_v1 *self = stook_self;
        uint32_t ready = self->ready, slot = ready ? *stook_slot_index(self) : 0;

        return slot < ready &&
               is_at_home(stook_address_node((uintptr_t)object), stook_slots_node_of(&stook_regions, slot)) &&
               stook_slot_rseq.push(front->offset, object) == STOOK_PUSH_DONE;
}

bool stook_slot_free_remote(struct stook_front *front, void *object, void (*on_double)(struct stook_front *, void *))
{
        unsigned home = stook_address_node((uintptr_t)object);
        uint32_t generation = generation_of(front);
        struct stook_sheaf *sheaf;
        uintptr_t *word;
        bool twice;

        if (STOOK_LIKELY(is_at_home(home, stook_slot_node())))
                return false;
        word = word_of(front, stook_slot_now(), home);
        sheaf = generation & 1 ? NULL : take(front, word, home);
        if (!sheaf) {
                to_slab(front, object);
                return true;
        }
        twice = on_top(sheaf, object);
        if (!twice)
                push(sheaf, object);
        put_back(front, word, home, sheaf, generation);
        if (twice)
                on_double(front, object);
        return true;
}

/* Of the @n remote objects those that the first one's sheaf takes. The others are moved to the front; how many. */
static size_t free_first_home(struct stook_front *front, size_t n, void **objects)
{
        unsigned home = stook_address_node((uintptr_t)objects[0]);
        uintptr_t *word = word_of(front, stook_slot_now(), home);
        uint32_t generation = generation_of(front);
        struct stook_sheaf *sheaf = generation & 1 ? NULL : take(front, word, home);
        size_t left = 0;

        if (!sheaf) {
                stook_count(front->below->counters, STOOK_STAT_free_slowpath, n);
                stook_slab_drain(front->below->below, n, objects);
                return 0;
        }
        for (size_t i = 0; i < n; i++)
                if (stook_address_node((uintptr_t)objects[i]) == home && !stook_sheaf_full(sheaf))
                        push(sheaf, objects[i]);
                else
                        objects[left++] = objects[i];
        put_back(front, word, home, sheaf, generation);
        return left;
}

size_t stook_slot_free_remote_bulk(struct stook_front *front, size_t n, void **objects)
{
        unsigned node = stook_slot_node();
        size_t local = 0, remote;

        for (size_t i = 0; i < n; i++)
                if (is_at_home(stook_address_node((uintptr_t)objects[i]), node)) {
                        void *object = objects[i];

                        objects[i] = objects[local];
                        objects[local++] = object;
                }
        for (remote = n - local; remote;)
                remote = free_first_home(front, remote, objects + local);
        return local;
}

void stook_slot_drain_remote(struct stook_front *front)
{
        if (!front->remote)
                return;
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned node = 0; node < stook_regions.nodes; node++) {
                        uintptr_t *word = word_of(front, slot, node);
                        struct stook_sheaf *sheaf;

                        if (!__atomic_load_n(word, __ATOMIC_RELAXED))
                                continue;
                        sheaf = take_out(word);
                        if (!sheaf)
                                continue;
                        stook_barn_flush(front->below, sheaf);
                        stook_sheaf_delete(sheaf, front->below->counters);
                }
}

/* ---- idle ones; within a visit of the barns ---- */

/* @now, or nobody has come since the look @by noted it: its objects go into their slabs. True: they did. */
static bool rest(struct stook_barns *barns, uintptr_t *word, unsigned home, bool now, uintptr_t by)
{
        uintptr_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

        if (!sheaf_in(seen))
                return false;
        if (!now && !(seen & by)) {
                /* Relaxed: as a read-modify-write it goes on with the release that put the sheaf there. */
                __atomic_compare_exchange_n(word, &seen, seen | by, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
                return false;
        }
        if (!__atomic_compare_exchange_n(word, &seen, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
                return false;
        stook_barn_retire(barns, home, sheaf_in(seen));
        return true;
}

void stook_slot_rest_remote(struct stook_barns *barns, const struct stook_line *own, struct stook_idle *idle)
{
        size_t slot = ((uintptr_t)own - (uintptr_t)stook_regions.base) >> STOOK_SLOT_SHIFT;

        if (!barns->remote)
                return;
        for (unsigned node = 0; node < stook_regions.nodes && idle->work; node++)
                idle->work -= rest(barns, barns->remote->word + slot * stook_regions.nodes + node, node, false, SEEN_HAND);
}

bool stook_slots_rest_remote(struct stook_barns *barns, const struct stook_slot_look *look)
{
        struct stook_remote *remote = barns->remote;
        bool due, any = false;

        if (!remote)
                return false;
        due = look->now_ms - __atomic_load_n(&remote->looked_ms, __ATOMIC_RELAXED) >= look->after_ms;
        if (due)
                __atomic_store_n(&remote->looked_ms, look->now_ms, __ATOMIC_RELAXED);
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                bool gone = look->gone(slot, look->allowed);

                if ((!due && !gone) || !stook_slots_line(slot, 0))
                        continue;
                for (unsigned node = 0; node < stook_regions.nodes; node++)
                        any |= rest(barns, remote->word + (size_t)slot * stook_regions.nodes + node, node, gone, SEEN_ROUND);
        }
        return any;
}

struct stook_sheaf *stook_slot_remote_sheaf(struct stook_front *front, unsigned slot, unsigned node)
{
        return front->remote ? sheaf_in(__atomic_load_n(word_of(front, slot, node), __ATOMIC_ACQUIRE)) : NULL;
}

struct stook_remote_counts stook_slot_remote_counts(const struct stook_front *front, unsigned node)
{
        struct stook_remote_counts c = { 0 };

        if (front->remote) {
                c.objects = __atomic_load_n(&front->remote->sent[node].objects, __ATOMIC_RELAXED);
                c.sheaves = __atomic_load_n(&front->remote->sent[node].sheaves, __ATOMIC_RELAXED);
        }
        return c;
}
