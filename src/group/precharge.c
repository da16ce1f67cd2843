/*
 * Purpose: precharges (precharge.h) beyond their hot path: on the backend in use, summed, and taken
 * back from outside.
 *
 * Taking them back: an atomic or marks each word as frozen. From then on sections miss it, but a
 * section that had loaded the word before may still store over the mark. After a barrier none such
 * is left. A word that still bears the mark belongs to this evacuation alone. A word that does not
 * is marked again.
 *
 * Concurrency: one evacuation at a time, under the mutex of the engine. M1: the or, then the
 *  barrier, pair with the load and the commit of every section, and with the trylock of a locked
 *  slot.
 * Failure: a barrier that is refused leaves all words as they were; the marks are taken off.
 */
#include "group/precharge.h"
#include "evacuate/evacuate.h"
#include "slot/slot.h"

/* A mark is stored over only by a section that was under way when it was made. */
#define ROUNDS 4

bool stook_precharge_add(uint16_t id, int64_t delta)
{
        return stook_slot_ops()->precharge_add(stook_precharge_offset(id), stook_precharge_tag(id),
                                               delta);
}

bool stook_precharge_set(uint16_t id, uint64_t from, uint64_t to)
{
        return stook_slot_ops()->precharge_set(stook_precharge_offset(id), from, to);
}

uint64_t stook_precharge_look(uint16_t id)
{
        return stook_slot_ops()->precharge_look(stook_precharge_offset(id));
}

/* The words of a slot. NULL: it is not ready. */
static uint64_t *words_of(unsigned slot)
{
        struct stook_line *lines = (struct stook_line *)stook_slots_head(slot);

        return lines ? ((struct stook_precharge_line *)(lines + STOOK_PRECHARGE_LINE))->word : NULL;
}

static uint16_t id_of(uint64_t word)
{
        return (uint16_t)(word >> 32);
}

static uint64_t bytes_of(uint64_t word)
{
        return word & STOOK_PRECHARGE_MAX;
}

/* Calls @visit for each word of each slot that is not 0. */
static void for_each_precharge(void (*visit)(uint64_t *at, uint64_t word, void *data), void *data)
{
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                uint64_t *words = words_of(slot);

                for (unsigned i = 0; words && i < STOOK_PRECHARGE_WORDS; i++) {
                        uint64_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);

                        if (word)
                                visit(&words[i], word, data);
                }
        }
}

struct sum {
        bool   (*counts)(uint16_t id, const void *data);
        const void *data;
        uint64_t bytes;
};

static void add_to_sum(uint64_t *at, uint64_t word, void *data)
{
        struct sum *sum = data;

        (void)at;
        if (bytes_of(word) && sum->counts(id_of(word), sum->data))
                sum->bytes += bytes_of(word);
}

uint64_t stook_precharges_sum(bool (*counts)(uint16_t id, const void *data), const void *data)
{
        struct sum sum = { .counts = counts, .data = data };

        for_each_precharge(add_to_sum, &sum);
        return sum.bytes;
}

/* Marks a word that is not marked yet; counts it. */
static void freeze(uint64_t *at, uint64_t word, void *data)
{
        unsigned *marked = data;

        if (!id_of(word) || (word & STOOK_PRECHARGE_FROZEN))
                return;
        __atomic_fetch_or(at, STOOK_PRECHARGE_FROZEN, __ATOMIC_SEQ_CST);        /* M1 */
        ++*marked;
}

static unsigned freeze_all(void)
{
        unsigned marked = 0;

        for_each_precharge(freeze, &marked);
        return marked;
}

/* A marked word is no group's any more; its bytes go to the caller's function. */
static void take_precharge(uint64_t *at, uint64_t word, void *data)
{
        void (**back)(uint16_t id, uint64_t bytes) = data;

        if (!(word & STOOK_PRECHARGE_FROZEN))
                return;
        __atomic_store_n(at, 0, __ATOMIC_RELAXED);
        (*back)(id_of(word & ~STOOK_PRECHARGE_FROZEN), bytes_of(word));
}

static void thaw(uint64_t *at, uint64_t word, void *data)
{
        (void)data;
        if (word & STOOK_PRECHARGE_FROZEN)
                __atomic_fetch_and(at, ~STOOK_PRECHARGE_FROZEN, __ATOMIC_RELAXED);
}

bool stook_precharges_evacuate(bool wait, void (*back)(uint16_t id, uint64_t bytes))
{
        bool done = true;

        if (!stook_evacuate_begin(wait ? STOOK_EVACUATE_WAIT : STOOK_EVACUATE_TRY_COUNTED))
                return false;
        for (unsigned round = 0; round < ROUNDS && freeze_all(); round++) {
                done = stook_evacuate_barrier();
                if (!done)
                        break;
        }
        if (done)
                for_each_precharge(take_precharge, &back);
        else
                for_each_precharge(thaw, NULL);
        stook_evacuate_end();
        return done;
}
