/*
 * Purpose: a pop missed, and main has objects: its count has come to the mark (barn/sheaf_word.h).
 * It gets a new one.
 * Place: slot_get.c and slot_bulk.c, before they take such a miss for an abort; home.
 * Concurrency: main's word is changed by a section, which compares main and the word with what was
 *  seen. So of all calls that see one mark, one gives the new count, and no pop or push between is
 *  lost. A section that loaded the word before finds at its commit what it loaded: no other thread
 *  ran on the slot. The model is tests/proof/models/slot.pml, MARK.
 */
#include "slot/slot_pair.h"

/* Another thread, or a signal, is in the way this often at most. */
#define TRIP_TRIES 16

static void fold(struct stook_counters *counters, uint64_t word)
{
        if (STOOK_LIKELY(!stook_word_folds(word)))
                return;
        stook_count(counters, STOOK_STAT_alloc_fastpath, STOOK_WORD_FOLD);
        stook_count(counters, STOOK_STAT_free_fastpath, STOOK_WORD_FOLD);
}

STOOK_NOINLINE bool stook_slot_trip(struct stook_front *front)
{
        const struct stook_section_ops *ops = stook_slot_ops_inlined();

        for (unsigned tries = 0; tries < TRIP_TRIES; tries++) {
                struct stook_sheaf *main = stook_slot_look(front).main;
                uint64_t word = __atomic_load_n(&main->word, __ATOMIC_RELAXED);

                if (!stook_word_is_marked(word) || !(word & 0xffff))
                        return false;
                if (STOOK_INJECT_EVERY(rearm_fail) ||
                    !ops->rearm(front->offset, main, word,
                                stook_word_rearmed(word, STOOK_WORD_COUNTS)))
                        continue;
                fold(front->barns->slabs->counters, word);
                return true;
        }
        return false;
}

void stook_sheaf_trip(struct stook_sheaf *sheaf, struct stook_counters *counters)
{
        uint64_t word = sheaf->word;

        __atomic_store_n(&sheaf->word, stook_word_rearmed(word, STOOK_WORD_COUNTS),
                         __ATOMIC_RELAXED);
        fold(counters, word);
}
