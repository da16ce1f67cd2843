/*
 * Purpose: objects out of slabs into an array.
 * Place: called by barn (refills, single objects), cache (bulk), home (objects of one node),
 * prefill, and limit (memory that the program prepares); calls pages by way of slab_birth.
 *
 * A fill takes from these, in this order:
 *  1. the slabs of the node's list, under its lock; without the lock, the parts on pending;
 *  2. the lists of other nodes that have more slabs than they keep. Their memory would stay unused
 *     otherwise. Not if the caller insists on one node;
 *  3. new slabs;
 *  4. all lists and all memory of other nodes, under the same condition as 2.
 *
 * A take notes bits: up to TAKES words of them in one hold of the lock. Addresses are written, and
 * constructors called, after the lock was dropped.
 *
 * Invariants:
 *  F1 Objects whose bits were taken are the fill's alone. Until the fill returns they are in no
 *     other place: a thread that vanishes with them loses them.
 *  F2 No object is touched, but by a constructor.
 *  F3 An object is marked as constructed by the thread that took its bit, once its constructor has
 *     run. So no mark stands for an object whose constructor is not done, in the child of a fork
 *     either: there the bytes are still those of what the memory was before. A thread that vanishes
 *     in the constructor, or leaves it by a jump, still has the object.
 * Failure: fewer objects than asked, at the array's start.
 */
#include <string.h>

#include "base/inject.h"
#include "base/thread.h"
#include "os/os.h"
#include "slab/slab_inside.h"

/* Words of bits taken in one hold of the lock: 192 bytes of stack (tools/check-stack). */
#define TAKES 12
/*
 * Slabs at the head of a list that are compared: the fullest of them is taken from first. Fewer
 * where threads meet at the list: comparing is most of what a fill does with the lock held.
 */
#define COMPARED      8
#define COMPARED_BUSY 2

/* Objects taken from one part. */
struct taken {
        stook_part_key key;
        uint64_t bits;
};

struct fill {
        struct stook_slabs *slabs;
        void   **objects;
        size_t   n, got;                /* got: written */
        size_t   want;                  /* n less what was taken */
        unsigned takes;
        bool     down;                  /* from objects[n-1] downwards */
        bool     try;
        bool     may_ask;               /* the program may be asked for memory */
        bool     busy;                  /* the lock was taken: threads meet here */
        uint64_t random;                /* with random order: this fill's */
        struct taken taken[TAKES];
        uint8_t  count[TAKES];          /* of each: how many objects */
};

static bool is_satisfied(const struct fill *f)
{
        return !f->want || f->takes == TAKES;
}

/* ---- from bits to addresses ---- */

typedef uint64_t two_words __attribute__((vector_size(16), aligned(8), may_alias));

/* out[i] = first + i * step. The work of a bulk allocation: two pointers a store. */
static void write_addresses(void **out, uintptr_t first, intptr_t step, size_t n)
{
        two_words a = { first, first + (uintptr_t)step };
        two_words by = { 2 * (uintptr_t)step, 2 * (uintptr_t)step };
        two_words b = a + by;

        by += by;
        for (; n >= 4; n -= 4, out += 4, a += by, b += by) {
                *(two_words *)out = a;
                *(two_words *)(out + 2) = b;
        }
        for (size_t i = 0; i < n; i++)
                out[i] = (void *)(a[0] + i * (uintptr_t)step);
}

/* The objects of @bits, lowest address first, to to[0], to[step], ... */
static void write_bits(void **to, ptrdiff_t step, uintptr_t base, uintptr_t stride, uint64_t bits,
                       unsigned n)
{
        unsigned low = (unsigned)__builtin_ctzll(bits);
        uint64_t run = bits >> low;
        uintptr_t first = base + low * stride;

        if (!(run & (run + 1))) {                               /* neighbours, as in a new slab */
                if (step > 0)
                        write_addresses(to, first, (intptr_t)stride, n);
                else
                        write_addresses(to - (n - 1), first + (n - 1) * stride,
                                        -(intptr_t)stride, n);
                return;
        }
        for (; bits; bits &= bits - 1, to += step)
                *to = (void *)(base + (unsigned)__builtin_ctzll(bits) * stride);
}

/*
 * A number of 32 bits for @key in this fill, always the same one. The process's random number is
 * drawn once for a fill, because that costs a locked instruction.
 */
STOOK_INLINE uint64_t random_of(const struct fill *f, uint64_t key)
{
        const uint64_t factor = UINT64_C(6364136223846793005);          /* D. Knuth's MMIX */
        uint64_t mixed = (f->random ^ key) * factor;

        return (mixed ^ mixed >> 32) * factor >> 32;
}

/*
 * The order in which this fill takes and writes the objects of a part: the cache's permutation
 * from a random place on. The table has it twice, so that no step tests for its end. Take and write
 * begin at one place. So the write passes only objects that were out before. NULL: lowest address
 * first.
 */
STOOK_INLINE const uint8_t *order_of(const struct fill *f, stook_part_key key)
{
        const struct stook_slabs *slabs = f->slabs;
        uint32_t objects = slabs->objects;

        if (STOOK_LIKELY(!slabs->in_random_order))
                return NULL;
        if (objects > STOOK_PART_OBJECTS)
                objects = STOOK_PART_OBJECTS;
        /* As D. Lemire, "Fast random integer generation in an interval", 2019. */
        return slabs->random + (random_of(f, key) * objects >> 32);
}

/*
 * The objects of taken[i], to to[0] and on. Each place is written by the next index of the order,
 * and kept if that object was taken. A branch on the bit would be guessed wrong half of the time,
 * and compilers make one of a condition.
 */
static STOOK_NOINLINE void write_random(const struct fill *f, unsigned i, void **to, uintptr_t base)
{
        const uint8_t *order = order_of(f, f->taken[i].key);
        uint64_t bits = f->taken[i].bits;
        uintptr_t stride = f->slabs->stride;
        ptrdiff_t step = f->down ? -1 : 1;

        for (unsigned n = f->count[i]; n; order++) {
                unsigned has = bits >> *order & 1;

                *to = (void *)(base + *order * stride);
                to += step & -(ptrdiff_t)has;
                n -= has;
        }
}

/*
 * User code: no lock is held, and waits are allowed if the caller of the fill allows them.
 * F3: the marks of a part are set together, after its last constructor. If that is left by a jump,
 * or the thread vanishes, all objects stay out, so those that are done may lack their marks. With a
 * destructor, which has to run for them in a destroy of all, each mark is set at once.
 */
static STOOK_NOINLINE void construct(struct stook_slabs *slabs, struct stook_slab *slab, unsigned p,
                                     uint64_t bits, uintptr_t base)
{
        uint64_t *marks = &stook_slab_made(slab)[p];
        uint64_t left = bits & ~__atomic_load_n(marks, __ATOMIC_RELAXED), done = 0;
        uintptr_t stride = slabs->stride;
        bool     at_once = slabs->dtor != NULL;
        uint32_t held;

        if (!left)
                return;
        held = stook_lock_pin();                /* the constructor may allocate, or jump */
        for (; left; left &= left - 1) {
                slabs->ctor((void *)(base + (unsigned)__builtin_ctzll(left) * stride),
                            slabs->ctor_data);
                done |= left & -left;
                if (at_once || !(left & (left - 1))) {
                        /* Release: a fork copies what was written, if it copies the mark. */
                        __atomic_fetch_or(marks, done, __ATOMIC_RELEASE);
                        done = 0;
                }
        }
        stook_lock_unpin(held);
}

/* Writes what was taken. */
static void emit(struct fill *f)
{
        struct stook_slabs *slabs = f->slabs;
        uintptr_t stride = slabs->stride;

        for (unsigned i = 0; i < f->takes; i++) {
                struct stook_slab *slab = stook_key_slab(f->taken[i].key);
                unsigned p = stook_key_part(f->taken[i].key);
                uint64_t bits = f->taken[i].bits;
                unsigned n = f->count[i];
                uintptr_t base = stook_slab_span(slab)->start + p * STOOK_PART_OBJECTS * stride;
                void **to = f->objects + (f->down ? f->n - 1 - f->got : f->got);

                if (STOOK_UNLIKELY(slabs->in_random_order))
                        write_random(f, i, to, base);
                else
                        write_bits(to, f->down ? -1 : 1, base, stride, bits, n);
                if (STOOK_UNLIKELY(slabs->ctor != NULL))
                        construct(slabs, slab, p, bits, base);
                f->got += n;
        }
        f->takes = 0;
}

/* @bits has @n bits. */
static void note(struct fill *f, stook_part_key key, uint64_t bits, uint32_t n)
{
        f->count[f->takes] = (uint8_t)n;
        f->taken[f->takes++] = (struct taken){ key, bits };
        f->want -= n;
}

/* What is asked of one part: everything, or as many as are still wanted. */
static uint32_t ask(const struct fill *f)
{
        return f->want < STOOK_PART_OBJECTS ? (uint32_t)f->want : STOOK_PART_OBJECTS;
}

/* ---- the node's list ---- */

/* With random order the first part is a random one; the others follow in turn. */
static unsigned first_part(const struct fill *f, const struct stook_slab *slab)
{
        if (STOOK_LIKELY(!f->slabs->in_random_order || slab->part_count == 1))
                return 0;
        return (unsigned)(random_of(f, ~(uintptr_t)slab) * slab->part_count >> 32);
}

/* Held: from the listed parts of a slab. */
static void take_from_slab(struct fill *f, struct stook_slab_hold *hold, struct stook_slab *slab)
{
        unsigned from = first_part(f, slab);
        uint64_t listed = slab->listed, used_up = 0;
        uint64_t turned = from ? listed >> from | listed << (STOOK_SLAB_PARTS - from) : listed;

        for (; turned && !is_satisfied(f); turned &= turned - 1) {
                unsigned p = ((unsigned)__builtin_ctzll(turned) + from) % STOOK_SLAB_PARTS;
                stook_part_key key = stook_part_key_of(slab, p);
                uint32_t n;
                bool left;
                uint64_t bits = stook_part_take(slab, p, ask(f), STOOK_PART_LISTED,
                                                order_of(f, key), &n, &left);

                note(f, key, bits, n);
                if (!left)
                        used_up |= UINT64_C(1) << p;
        }
        if (used_up)
                stook_slab_remove(hold, slab, used_up);
}

/*
 * Held: the first slabs of the list, those with the fewest free objects first. Meanwhile the free
 * objects of a listed slab do not become fewer. A slab that keeps some of them stays where it is.
 * So it is used up before other slabs are begun.
 * Return: how many, at most @most.
 */
static unsigned fullest_first(struct stook_slabs_node *node, unsigned most,
                              struct stook_slab **slabs)
{
        uint32_t free_objects[COMPARED];
        unsigned n = 0;

        stook_list_for_each(e, &node->list) {
                struct stook_slab *slab = stook_slab_listed_at(e);
                uint32_t free = stook_slab_free_listed(slab);
                unsigned at = n++;

                for (; at > 0 && free_objects[at - 1] > free; at--) {
                        free_objects[at] = free_objects[at - 1];
                        slabs[at] = slabs[at - 1];
                }
                free_objects[at] = free;
                slabs[at] = slab;
                if (n == most)
                        break;
        }
        return n;
}

/* Held. Not inline: its stack is free again when pages are given back. */
static STOOK_NOINLINE void take_from_list(struct fill *f, struct stook_slab_hold *hold)
{
        struct stook_slabs_node *node = hold->node;

        stook_slab_settle_pending(hold);
        while (!is_satisfied(f) && node->partial) {
                struct stook_slab *slabs[COMPARED];
                unsigned n = 1;

                if (node->partial == 1)
                        slabs[0] = stook_slab_listed_at(node->list.next);
                else
                        n = fullest_first(node, f->busy ? COMPARED_BUSY : COMPARED, slabs);
                for (unsigned i = 0; i < n && !is_satisfied(f); i++)
                        take_from_slab(f, hold, slabs[i]);
        }
}

/* ---- pending, without the lock ---- */

/*
 * Takes from the parts of @slab whose claims @claims are the caller's. Return: the claims that are
 * left.
 */
static uint64_t take_from_claims(struct fill *f, struct stook_slab *slab, uint64_t claims)
{
        uint64_t kept = claims;

        for (; claims && !is_satisfied(f); claims &= claims - 1) {
                unsigned p = (unsigned)__builtin_ctzll(claims);
                stook_part_key key = stook_part_key_of(slab, p);
                uint32_t n;
                bool left;
                uint64_t bits;

                /*
                 * S1: from a listed part only the holder of the lock takes. This part was claimed
                 * because all of its objects became free.
                 */
                if (__atomic_load_n(&stook_slab_part(slab, p)->lo, __ATOMIC_ACQUIRE) &
                    STOOK_PART_LISTED)
                        continue;
                bits = stook_part_take(slab, p, ask(f), STOOK_PART_CLAIM, order_of(f, key), &n,
                                       &left);
                if (bits)
                        note(f, key, bits, n);
                if (!left)
                        kept &= ~(UINT64_C(1) << p);
        }
        return kept;
}

/*
 * From the first slab. The others are back before that: a thread that is preempted here keeps one
 * slab from the other fills without the lock, which would make new ones, not all that are pending.
 */
static void take_from_pending(struct fill *f, struct stook_slabs_node *node)
{
        struct stook_link *link;
        struct stook_slab *slab;
        uint64_t claims;

        stook_lock_forbid_waits();              /* slab_partial.c P4 */
        link = stook_pending_stack_take_all(&node->pending);
        if (link) {
                stook_slab_pend_again(f->slabs, node, link->next);
                slab = stook_slab_pending_at(link);
                claims = __atomic_exchange_n(&slab->pending, 0, __ATOMIC_ACQ_REL);
                STOOK_INJECT_CALL(in_hands, f->slabs);
                claims = take_from_claims(f, slab, claims);
                if (claims)
                        stook_slab_settle_parts(f->slabs, slab, claims, true);
        }
        stook_lock_allow_waits();
}

/* ---- lists and new slabs ---- */

static STOOK_NOINLINE void fill_from_list(struct fill *f, struct stook_slabs_node *node)
{
        while (f->want && !stook_slabs_node_idle(node)) {
                struct stook_slab_hold hold;

                f->busy = stook_lock_is_taken(&node->lock);
                if (stook_slab_hold(&hold, f->slabs, node, f->try)) {
                        take_from_list(f, &hold);
                        stook_slab_unhold(&hold);
                } else {
                        take_from_pending(f, node);
                }
                if (!f->takes)
                        return;
                emit(f);
        }
}

/* From a slab that no other thread can see yet. */
static void take_from_new(struct fill *f, struct stook_slab *slab)
{
        unsigned from = first_part(f, slab);

        for (unsigned i = 0; i < slab->part_count && !is_satisfied(f); i++) {
                unsigned p = (from + i) % slab->part_count;
                stook_part_key key = stook_part_key_of(slab, p);
                struct stook_pair *part = stook_slab_part(slab, p);
                uint64_t objects = stook_part_objects(slab, p), bits = part->hi & objects;
                uint32_t n = stook_popcount(bits);

                if (n > f->want) {
                        n = (uint32_t)f->want;
                        bits = f->slabs->in_random_order ?
                                stook_first_bits(order_of(f, key), bits, n) :
                                stook_lowest_bits(bits, n);
                }
                /* Atomic for the same late reader as in slab_birth.c. */
                __atomic_store_n(&part->hi, part->hi & ~bits, __ATOMIC_RELAXED);
                if (!(part->hi & objects))
                        __atomic_store_n(&part->lo, part->lo & ~STOOK_PART_CLAIM, __ATOMIC_RELAXED);
                note(f, key, bits, n);
        }
}

/* False: no memory. */
static STOOK_NOINLINE bool fill_from_births(struct fill *f, unsigned node)
{
        struct stook_slab *born[STOOK_SLAB_BIRTHS];
        unsigned n = stook_slab_births(f->slabs, node, f->want, f->may_ask, born);

        for (unsigned i = 0; i < n; i++) {
                take_from_new(f, born[i]);
                stook_slab_publish(f->slabs, born[i], true, f->try);
                emit(f);
        }
        return n;
}

/*
 * A slab may have more parts than are noted at once. Its others are listed by then. Inlined for the
 * depth of the stack.
 */
STOOK_INLINE void fill_from_memory(struct fill *f, unsigned node)
{
        while (f->want && fill_from_births(f, node))
                if (STOOK_UNLIKELY(f->want))
                        fill_from_list(f, &f->slabs->node[node]);
}

/* ---- other nodes ---- */

/*
 * Of 1024 fills that find too little on their own node, so many look at other nodes' lists first.
 * It is nearly all, as with the kernel's remote_node_defrag_ratio.
 */
#define DEFRAG_RATIO 1000

static bool may_look_at_others(void)
{
        uint32_t injected = STOOK_INJECT_GET(defrag_ratio_plus_1);
        uint32_t ratio = injected ? injected - 1 : DEFRAG_RATIO;

        return ratio && (stook_os_random() & 1023) <= ratio;
}

/*
 * The next higher nodes first, so that not all nodes fill from the lowest. Locks are only tried:
 * otherwise many nodes would wait for one.
 */
static void fill_from_others(struct fill *f, unsigned node, uint32_t more_than)
{
        unsigned nodes = stook_os_node_count();
        bool try = f->try;

        f->try = true;
        for (unsigned i = 1; i < nodes && f->want; i++) {
                unsigned other = (node + i) % nodes;

                if (stook_slabs_partial(f->slabs, other) > more_than)
                        fill_from_list(f, &f->slabs->node[other]);
        }
        f->try = try;
}

/* The node has no memory left: from all lists and all memory of other nodes. */
static void fill_from_anywhere(struct fill *f, unsigned node)
{
        unsigned nodes = stook_os_node_count();

        fill_from_others(f, node, 0);
        for (unsigned i = 1; i < nodes && f->want; i++)
                if (stook_os_node_has_memory((node + i) % nodes))
                        fill_from_memory(f, (node + i) % nodes);
}

size_t stook_slab_fill(struct stook_slabs *slabs, unsigned node, size_t n, void **objects,
                       unsigned flags)
{
        struct fill f;

        f.slabs = slabs;                        /* not `taken`: it is written before it is read */
        f.objects = objects;
        f.n = f.want = n;
        f.got = 0;
        f.takes = 0;
        f.down = flags & STOOK_FILL_FOR_SHEAF;
        f.random = STOOK_UNLIKELY(slabs->in_random_order) ? stook_os_random() : 0;
        f.try = false;
        f.may_ask = flags & STOOK_FILL_MAY_ASK;
        node = stook_os_node_home(node);
        fill_from_list(&f, &slabs->node[node]);
        if (stook_os_node_count() > 1 && !(flags & STOOK_FILL_THISNODE) && f.want &&
            may_look_at_others())
                fill_from_others(&f, node, slabs->min_partial);
        fill_from_memory(&f, node);
        if (STOOK_UNLIKELY(f.want) && stook_os_node_count() > 1 && !(flags & STOOK_FILL_THISNODE))
                fill_from_anywhere(&f, node);
        if (f.down && f.got < n)
                memmove(objects, objects + (n - f.got), f.got * sizeof(*objects));
        return f.got;
}
