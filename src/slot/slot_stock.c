/*
 * Purpose: stocks (slot_stock.h) beyond their hot path: by the backend in use, summed, and taken back from outside.
 *
 * Taking them back: each word is marked as frozen, by an atomic or. From then on sections miss it, but one that had
 * loaded the word before may still store over the mark. After a barrier (slot_drain.c) none is left: a word that
 * still bears the mark is nobody's but the drainer's; one that does not is marked again.
 *
 * Concurrency: one drain at a time, with the mutex of slot_drain.c. M1: the or, then the barrier, pair with the load
 *  and the commit of every section, and with the trylock of a locked slot.
 * Failure: a barrier that is refused leaves all words as they were, marks taken off.
 */
#include "slot/slot_regions.h"
#include "slot/slot_stock.h"

#define ROUNDS 4                        /* a word is stored over only by who was inside a section at the mark */

bool stook_stock_add(uint16_t id, int64_t delta)
{
        return stook_slot_ops()->stock_add(stook_stock_offset(id), stook_stock_tag(id), delta);
}

bool stook_stock_set(uint16_t id, uint64_t from, uint64_t to)
{
        return stook_slot_ops()->stock_set(stook_stock_offset(id), from, to);
}

uint64_t stook_stock_look(uint16_t id)
{
        return stook_slot_ops()->stock_look(stook_stock_offset(id));
}

/* @word of @slot. NULL: the slot is not ready. */
static uint64_t *word_at(unsigned slot, unsigned word)
{
        struct stook_line *line = stook_slots_line(slot, 0);

        return line ? (uint64_t *)((char *)line + stook_stock_offset((uint16_t)word)) : NULL;
}

static uint16_t id_of(uint64_t word)
{
        return (uint16_t)(word >> 32);
}

static uint64_t bytes_of(uint64_t word)
{
        return word & STOOK_STOCK_MAX;
}

uint64_t stook_stocks_sum(bool (*counts)(uint16_t id, const void *data), const void *data)
{
        uint64_t sum = 0;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned i = 0; i < STOOK_STOCKS; i++) {
                        uint64_t *at = word_at(slot, i), word = at ? __atomic_load_n(at, __ATOMIC_RELAXED) : 0;

                        if (bytes_of(word) && counts(id_of(word), data))
                                sum += bytes_of(word);
                }
        return sum;
}

/* Marks all words of @id (0: of any) that are not marked yet; how many. */
static unsigned freeze(uint16_t id)
{
        unsigned marked = 0;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned i = 0; i < STOOK_STOCKS; i++) {
                        uint64_t *at = word_at(slot, i), word = at ? __atomic_load_n(at, __ATOMIC_RELAXED) : 0;

                        if (!id_of(word) || (word & STOOK_STOCK_FROZEN) || (id && id_of(word) != id))
                                continue;
                        __atomic_fetch_or(at, STOOK_STOCK_FROZEN, __ATOMIC_SEQ_CST);   /* M1 */
                        marked++;
                }
        return marked;
}

/* Ends all marks: the words become nobody's, their bytes go to @back; without it they are what they were. */
static void thaw(void (*back)(uint16_t id, uint64_t bytes))
{
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++)
                for (unsigned i = 0; i < STOOK_STOCKS; i++) {
                        uint64_t *at = word_at(slot, i), word = at ? __atomic_load_n(at, __ATOMIC_RELAXED) : 0;

                        if (!(word & STOOK_STOCK_FROZEN))
                                continue;
                        if (!back) {
                                __atomic_fetch_and(at, ~STOOK_STOCK_FROZEN, __ATOMIC_RELAXED);
                                continue;
                        }
                        __atomic_store_n(at, 0, __ATOMIC_RELAXED);
                        back(id_of(word & ~STOOK_STOCK_FROZEN), bytes_of(word));
                }
}

bool stook_stocks_drain(uint16_t id, bool wait, void (*back)(uint16_t id, uint64_t bytes))
{
        bool done = true;

        if (!stook_slot_drain_begin(wait))
                return false;
        for (unsigned round = 0; round < ROUNDS && freeze(id); round++) {
                done = stook_slot_drain_barrier();
                if (!done)
                        break;
        }
        thaw(done ? back : NULL);
        stook_slot_drain_end();
        return done;
}
