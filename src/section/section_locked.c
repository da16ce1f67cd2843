/*
 * Purpose: the contract of section.h with a trylock for each slot: for kernels without restartable
 * sequences, emulators and sanitizers. Beside the other backend it serves threads and vfork
 * children that have no registration.
 * Place: as section_rseq.c. It has slots of its own.
 * Invariants:
 *  I1 a thread that does not get a slot's word at the first try has a miss. No thread waits for a
 *     word. So a handler on top of a holder, or a holder that never returns, costs a walk to the
 *     layer below. The first operation on a slot makes it ready (stook_locked_slots.ready). Only
 *     that may wait: for the lock of the regions, within the bounds of base/lock.h I2.
 *  I2 the pair changes by the same compare-and-swap as everywhere. So an evacuation and a fork do
 *     without the word.
 *  I3 locks_held counts a holder from before it has the word until after it has let it go. So a
 *     child that is forked in a handler on top of the holder leaves the words alone until then
 *     (life/fork.c). Otherwise the holder's last store would hand an object out twice.
 *  I4 a call of this thread that was jumped out of may leave its word behind. The next call has it
 *     again: with locks_held at zero before (base/lock.h), no call that is under way holds it. A
 *     slot is whole at each instruction.
 * Concurrency: M1: the releasing store of `holder` pairs with the acquiring compare-and-swap of the
 *  next holder, and with the read-modify-write of an evacuation that took the pair before
 *  (evacuate/evacuate.c). A thread that holds the word after that sees the new pair.
 */
#include "base/inject.h"
#include "base/lock.h"
#include "os/os.h"
#include "section/section.h"

struct stook_locked_slots stook_locked_slots;

/*
 * Thread records lie a multiple of the stack size apart: the high bits of a product spread them.
 */
static uint32_t slot_of_thread(void)
{
        uint32_t mask = stook_locked_slots.count - 1;
        uint32_t pin = STOOK_INJECT_GET(locked_slot);

        if (STOOK_UNLIKELY(pin))
                return (pin - 1) & mask;
        if (STOOK_UNLIKELY(stook_locked_slots.by_cpu))
                return stook_os_cpu() & mask;

        uint64_t hash = (uintptr_t)stook_self * UINT64_C(0x9e3779b97f4a7c15);

        return (uint32_t)(hash >> 40) & mask;
}

/* The thread's slot; NULL: it cannot have one now. */
static struct stook_slot_head *own(void)
{
        return stook_locked_slots.count ? stook_locked_slots.ready(slot_of_thread()) : NULL;
}

/* The thread's slot, held. NULL: a miss. */
static char *enter(void)
{
        struct stook_slot_head *slot = own();
        uint64_t holder = 0;
        bool alone;

        if (!slot)
                return NULL;
        alone = !stook_self->locks_held;
        stook_lock_raise(STOOK_HELD_GAP);                               /* I3 */
        if (__atomic_compare_exchange_n(&slot->holder, &holder, (uintptr_t)stook_self, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return (char *)slot;
        if (STOOK_UNLIKELY(alone && holder == (uintptr_t)stook_self))  /* I4 */
                return (char *)slot;
        stook_lock_allow_waits();
        return NULL;
}

static void leave(char *slot)
{
        __atomic_store_n(&((struct stook_slot_head *)slot)->holder, 0, __ATOMIC_RELEASE);
        stook_lock_allow_waits();
}

static struct stook_sheaf *main_of(char *slot, uint32_t offset)
{
        struct stook_line *line = (struct stook_line *)(slot + offset);

        return (struct stook_sheaf *)stook_pair_read(&line->pair).lo;
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
        n = n < STOOK_SECTION_BATCH ? n : STOOK_SECTION_BATCH;
        k = n < size ? n : size;
        k = k < stook_word_to_mark(main->word) ? k : stook_word_to_mark(main->word);
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
        n = n < STOOK_SECTION_BATCH ? n : STOOK_SECTION_BATCH;
        k = n < main->capacity - size ? n : main->capacity - size;
        for (size_t i = 0; i < k; i++)
                __atomic_store_n(&main->objects[size + i], objects[i], __ATOMIC_RELAXED);
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
                /* Atomic: a report's search reads sheaves of others. */
                __atomic_store_n(&main->objects[size], object, __ATOMIC_RELAXED);
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

static bool rearm(uint32_t offset, struct stook_sheaf *main, uint64_t from, uint64_t to)
{
        char *slot = enter();
        bool done;

        if (!slot)
                return false;
        done = main_of(slot, offset) == main && main->word == from;
        if (done)
                __atomic_store_n(&main->word, to, __ATOMIC_RELAXED);
        leave(slot);
        return done;
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
        char *slot = (char *)own();

        return slot ? stook_pair_read(&((struct stook_line *)(slot + offset))->pair) : nothing;
}

static bool exchange(uint32_t offset, struct stook_pair expected, struct stook_pair desired,
                     unsigned size, const uint32_t *config, uint32_t generation)
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

/* Compare-and-swaps: an evacuation may mark the word meanwhile. */
static bool precharge_add(uint32_t offset, uint64_t tag, int64_t delta)
{
        char *slot = enter();
        uint64_t *word = slot ? (uint64_t *)(slot + offset) : NULL, seen, now;
        bool done;

        if (!slot)
                return false;
        seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        now = seen + (uint64_t)delta;
        done = seen - tag <= STOOK_PRECHARGE_MAX && now - tag <= STOOK_PRECHARGE_MAX &&
               __atomic_compare_exchange_n(word, &seen, now, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
        leave(slot);
        return done;
}

static bool precharge_set(uint32_t offset, uint64_t expected, uint64_t desired)
{
        char *slot = enter();
        bool done;

        if (!slot)
                return false;
        done = __atomic_compare_exchange_n((uint64_t *)(slot + offset), &expected, desired, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        leave(slot);
        return done;
}

static uint64_t precharge_look(uint32_t offset)
{
        char *slot = (char *)own();

        return slot ? __atomic_load_n((uint64_t *)(slot + offset), __ATOMIC_RELAXED) : 0;
}

static struct stook_sheaf **rcu_of(char *slot, uint32_t offset)
{
        return &((struct stook_line *)(slot + offset))->rcu_free;
}

/* Off the line, unless an evacuation has taken it. */
static struct stook_sheaf *take_rcu(struct stook_sheaf **place, struct stook_sheaf *sheaf)
{
        bool taken = __atomic_compare_exchange_n(place, &sheaf, NULL, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_RELAXED);

        return taken ? sheaf : NULL;
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

const struct stook_section_ops stook_section_locked = {
        .name = "locked",
        /* A busy slot stays busy for longer than a few tries take. */
        .abort_limit = 2,
        .pop = pop,
        .push = push,
        .pop_n = pop_n,
        .push_n = push_n,
        .peek = peek,
        .pop_if = pop_if,
        .rearm = rearm,
        .look = look,
        .own = own,
        .exchange = exchange,
        .precharge_add = precharge_add,
        .precharge_set = precharge_set,
        .precharge_look = precharge_look,
        .rcu_push = rcu_push,
        .rcu_fill = rcu_fill,
};
