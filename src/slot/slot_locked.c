/*
 * Purpose: the locked backend: the contract of slot/slot.h with a trylock for each slot. For kernels without
 * rseq, emulators and sanitizers; and, beside the other backend, for threads and vfork children that have no
 * registration.
 * Place: as slot_rseq.c. It has slots of its own, so the two never meet on a line.
 * Invariants:
 *  I1 who does not get a slot's word at the first try has a miss: nobody waits, so a handler on top of a holder,
 *     or a holder that never returns, costs a walk to the layer below.
 *  I2 the pair changes by the same compare-and-swap as everywhere: a drainer and a fork do without the word.
 *  I3 locks_held counts a holder from before he has the word until after: the child of a fork in a handler on top of
 *     him leaves the words alone until he is out (life/fork.c), or his last store would hand an object out twice.
 * Concurrency: M1: the releasing store of `busy` pairs with the acquiring exchange of the next holder, and with
 *  the read-modify-write of a drainer that took the pair before (slot_drain.c): whoever holds the word after
 *  that sees the new pair.
 */
#include "slot/slot_node.h"
#include "base/lock.h"
#include "slot/slot_regions.h"
#include "slot/slot_stock.h"

/* TLS lines of threads lie a multiple of the stack size apart: the high bits of a product spread them. */
static uint32_t slot_of_thread(void)
{
        uint32_t hook = __atomic_load_n(&stook_slot_hooks.locked_slot, __ATOMIC_RELAXED);

        if (STOOK_UNLIKELY(hook))
                return (hook - 1) & (stook_regions.locked_slots - 1);
        /* On several nodes a slot is of the CPU's. Made-up ones are all to be used, by few CPUs. */
        if (STOOK_UNLIKELY(stook_slots_by_node) && !stook_os_topology_is_fake())
                return stook_os_cpu() & (stook_regions.locked_slots - 1);

        uint64_t hash = (uintptr_t)stook_self * UINT64_C(0x9e3779b97f4a7c15);

        return (uint32_t)(hash >> 40) & (stook_regions.locked_slots - 1);
}

/* The thread's slot, held. NULL: a miss. */
static char *enter(void)
{
        char *slot = stook_regions.locked_slots ? stook_regions_locked(slot_of_thread()) : NULL;

        if (!slot)
                return NULL;
        stook_lock_forbid_waits();                                      /* I3 */
        if (!__atomic_exchange_n(&((struct stook_line *)slot)->busy, 1, __ATOMIC_ACQUIRE))
                return slot;
        stook_lock_allow_waits();
        return NULL;
}

static void leave(char *slot)
{
        __atomic_store_n(&((struct stook_line *)slot)->busy, 0, __ATOMIC_RELEASE);
        stook_lock_allow_waits();
}

static struct stook_sheaf *main_of(char *slot, uint32_t offset)
{
        return (struct stook_sheaf *)stook_pair_read(&((struct stook_line *)(slot + offset))->pair).lo;
}

/* Statistics read the word meanwhile. */
static void commit(struct stook_sheaf *main, uint64_t add)
{
        __atomic_store_n(&main->word, main->word + add, __ATOMIC_RELAXED);
}

static size_t pop_n(uint32_t offset, size_t n, void **objects)
{
        char *slot = enter();
        struct stook_sheaf *main;
        unsigned size;
        size_t k;

        if (!slot)
                return 0;
        main = main_of(slot, offset);
        size = stook_sheaf_size(main);
        n = n < STOOK_SLOT_BATCH ? n : STOOK_SLOT_BATCH;
        k = n < size ? n : size;
        for (size_t i = 0; i < k; i++)
                objects[i] = main->objects[size - 1 - i];
        if (k)
                commit(main, k * STOOK_SHEAF_POP);
        leave(slot);
        return k;
}

static size_t push_n(uint32_t offset, size_t n, void *const *objects)
{
        char *slot = enter();
        struct stook_sheaf *main;
        unsigned size;
        size_t k;

        if (!slot)
                return 0;
        main = main_of(slot, offset);
        size = stook_sheaf_size(main);
        n = n < STOOK_SLOT_BATCH ? n : STOOK_SLOT_BATCH;
        k = n < main->capacity - size ? n : main->capacity - size;
        for (size_t i = 0; i < k; i++)
                main->objects[size + i] = objects[i];
        if (k)
                commit(main, k);
        leave(slot);
        return k;
}

static void *pop(uint32_t offset)
{
        void *object;

        return pop_n(offset, 1, &object) ? object : NULL;
}

static enum stook_push push(uint32_t offset, void *object)
{
        char *slot = enter();
        enum stook_push answer = STOOK_PUSH_MISS;
        struct stook_sheaf *main;
        unsigned size;

        if (!slot)
                return STOOK_PUSH_MISS;
        main = main_of(slot, offset);
        size = stook_sheaf_size(main);
        if (size < main->capacity && size && main->objects[size - 1] == object) {
                answer = STOOK_PUSH_DOUBLE;
        } else if (size < main->capacity) {
                main->objects[size] = object;
                commit(main, 1);
                answer = STOOK_PUSH_DONE;
        }
        leave(slot);
        return answer;
}

static void *pop_if(uint32_t offset, void *expected)
{
        char *slot = enter();
        struct stook_sheaf *main;
        unsigned size;

        if (!slot)
                return NULL;
        main = main_of(slot, offset);
        size = stook_sheaf_size(main);
        if (!size || main->objects[size - 1] != expected)
                expected = NULL;
        else
                commit(main, STOOK_SHEAF_POP);
        leave(slot);
        return expected;
}

static void *peek(uint32_t offset)
{
        char *slot = enter();
        struct stook_sheaf *main;
        void *object;
        unsigned size;

        if (!slot)
                return NULL;
        main = main_of(slot, offset);
        size = stook_sheaf_size(main);
        object = size ? main->objects[size - 1] : NULL;
        leave(slot);
        return object;
}

static struct stook_pair look(uint32_t offset)
{
        struct stook_pair nothing = { .lo = (uintptr_t)&stook_sheaf_zero };
        char *slot = stook_regions.locked_slots ? stook_regions_locked(slot_of_thread()) : NULL;

        return slot ? stook_pair_read(&((struct stook_line *)(slot + offset))->pair) : nothing;
}

static struct stook_line *own(void)
{
        return (struct stook_line *)(stook_regions.locked_slots ? stook_regions_locked(slot_of_thread()) : NULL);
}

static bool exchange(uint32_t offset, struct stook_pair expected, struct stook_pair desired, unsigned size,
                     const uint32_t *config, uint32_t generation)
{
        char *slot = enter();
        bool done;

        if (!slot)
                return false;
        done = stook_sheaf_size((struct stook_sheaf *)expected.lo) == size &&
               (!config || __atomic_load_n(config, __ATOMIC_ACQUIRE) == generation) &&
               stook_pair_cas(&((struct stook_line *)(slot + offset))->pair, &expected, desired);
        leave(slot);
        return done;
}

/* Compare-and-swaps, as a drainer may mark the word meanwhile. */
static bool stock_add(uint32_t offset, uint64_t tag, int64_t delta)
{
        char *slot = enter();
        uint64_t *word = slot ? (uint64_t *)(slot + offset) : NULL, seen, now;
        bool done;

        if (!slot)
                return false;
        seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        now = seen + (uint64_t)delta;
        done = seen - tag <= STOOK_STOCK_MAX && now - tag <= STOOK_STOCK_MAX &&
               __atomic_compare_exchange_n(word, &seen, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        leave(slot);
        return done;
}

static bool stock_set(uint32_t offset, uint64_t expected, uint64_t desired)
{
        char *slot = enter();
        bool done = slot && __atomic_compare_exchange_n((uint64_t *)(slot + offset), &expected, desired, false,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED);

        if (slot)
                leave(slot);
        return done;
}

static uint64_t stock_look(uint32_t offset)
{
        char *slot = stook_regions.locked_slots ? stook_regions_locked(slot_of_thread()) : NULL;

        return slot ? __atomic_load_n((uint64_t *)(slot + offset), __ATOMIC_RELAXED) : 0;
}

static struct stook_sheaf **rcu_of(char *slot, uint32_t offset)
{
        return &((struct stook_line *)(slot + offset))->rcu_free;
}

/* Off the line, if nobody else has taken it. */
static struct stook_sheaf *take_rcu(struct stook_sheaf **place, struct stook_sheaf *sheaf)
{
        return __atomic_compare_exchange_n(place, &sheaf, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ? sheaf : NULL;
}

static void *rcu_push(uint32_t offset, void *object)
{
        char *slot = enter();
        struct stook_sheaf *sheaf;
        unsigned size;

        if (!slot)
                return NULL;
        sheaf = __atomic_load_n(rcu_of(slot, offset), __ATOMIC_ACQUIRE);
        if (!sheaf) {
                object = NULL;
        } else {
                size = stook_sheaf_size(sheaf);
                if (size + 1 < sheaf->capacity) {
                        sheaf->objects[size] = object;
                        commit(sheaf, 1);
                } else {
                        object = STOOK_RCU_LAST;
                }
        }
        leave(slot);
        return object;
}

static struct stook_sheaf *rcu_fill(uint32_t offset, void *object)
{
        char *slot = enter();
        struct stook_sheaf *sheaf;
        unsigned size;

        if (!slot)
                return NULL;
        sheaf = __atomic_load_n(rcu_of(slot, offset), __ATOMIC_ACQUIRE);
        if (sheaf) {
                size = stook_sheaf_size(sheaf);
                sheaf = size + 1 == sheaf->capacity ? take_rcu(rcu_of(slot, offset), sheaf) : NULL;
        }
        if (sheaf) {
                sheaf->objects[size] = object;
                commit(sheaf, 1);
        }
        leave(slot);
        return sheaf;
}

const struct stook_slot_ops stook_slot_locked = {
        .name = "locked",
        .abort_limit = 2,               /* a busy slot stays busy for longer than a few tries take */
        .pop = pop,
        .push = push,
        .pop_n = pop_n,
        .push_n = push_n,
        .peek = peek,
        .pop_if = pop_if,
        .look = look,
        .own = own,
        .exchange = exchange,
        .stock_add = stock_add,
        .stock_set = stock_set,
        .stock_look = stock_look,
        .rcu_push = rcu_push,
        .rcu_fill = rcu_fill,
};
