/*
 * Purpose: callbacks of which one at a time is on its way: that of a cache's chain, and that of the
 * clock of open sheaves. A call takes the turn and asks for the callback. The callback ends the
 * turn. A call that is lost (rcu_transit.c) does not keep the turn: its thread has ended, jumped
 * out, was stopped, or is not in this child of a fork.
 *
 * It is not known whether the implementation has the head of a lost call. So the next call gets
 * another head, and the old one stays as it is. A callback for the old head finds another serial
 * number in the turn, and leaves the turn alone. A thread that comes back late has only its own
 * head. In a child of a fork all that was asked for before the fork is lost in this sense: the
 * callback may have been in the hands of a thread that the child does not have. It is asked for
 * once more.
 *
 * Place: called by rcu_free.c and rcu_open.c; calls pages (metadata).
 * Invariants:
 *  I1 `now`, and what the user keeps in it and beside the turn, belong to the owner of the turn.
 *  I2 a serial number is of one taking of the turn. The word and the head agree in it until the
 *     end.
 *  I3 `batch` of a free turn is NULL.
 * Concurrency: M1: the word goes from state to state by acquiring and releasing compare-and-swaps:
 *  each owner sees what the one before it has left. `now` is read before the turn is taken; if the
 *  word is the same then, so is `now`. Only a thread that takes a lost turn changes `now`, by a
 *  compare-and-swap.
 * Failure: without memory for another head the turn stays with the lost call.
 */
#include "pages/meta.h"
#include "rcu/rcu_inside.h"

enum { FREE, ASKING, ASKED, RUNNING };  /* ASKING and RUNNING: a thread's, by its ticket */

#define STATE_BITS  2
#define SERIAL_BITS 29

/* The ticket's generation | its count | serial | state */
static uint64_t word_of(uint32_t serial, uint64_t ticket, unsigned state)
{
        return (ticket >> 8) << 32 | (ticket & 1) << 31 | (uint64_t)serial << STATE_BITS | state;
}

static uint32_t serial_of(uint64_t word)
{
        return (uint32_t)word >> STATE_BITS & ((1u << SERIAL_BITS) - 1);
}

static uint32_t next(uint32_t serial)
{
        return (serial + 1) & ((1u << SERIAL_BITS) - 1);
}

static unsigned state_of(uint64_t word)
{
        return word & ((1u << STATE_BITS) - 1);
}

static uint64_t ticket_of(uint64_t word)
{
        return (word >> 32) << 8 | (word >> 31 & 1);
}

static bool is_lost(uint64_t word)
{
        switch (state_of(word)) {
        case FREE:
                return false;
        case ASKED:
                return stook_transit_is_gone(ticket_of(word));
        default:
                return stook_transit_is_lost(ticket_of(word));
        }
}

static bool pass(struct stook_rcu_turn *turn, uint64_t from, uint64_t to)
{
        return __atomic_compare_exchange_n(&turn->word, &from, to, false, __ATOMIC_ACQ_REL, /* M1 */
                                           __ATOMIC_RELAXED);
}

bool stook_rcu_turn_is_free(const struct stook_rcu_turn *turn)
{
        return state_of(__atomic_load_n(&turn->word, __ATOMIC_RELAXED)) == FREE;
}

bool stook_rcu_turn_is_takeable(const struct stook_rcu_turn *turn)
{
        uint64_t word = __atomic_load_n(&turn->word, __ATOMIC_RELAXED);

        return state_of(word) == FREE || is_lost(word);
}

struct stook_rcu_asked *stook_rcu_turn_take(struct stook_rcu_turn *turn, uint64_t ticket,
                                            struct stook_rcu_asked **gone)
{
        uint64_t word = __atomic_load_n(&turn->word, __ATOMIC_ACQUIRE);         /* M1 */
        uint32_t serial = next(serial_of(word));
        struct stook_rcu_asked *now = __atomic_load_n(&turn->now, __ATOMIC_ACQUIRE), *mine = now;
        bool lost = is_lost(word);

        *gone = NULL;
        if (state_of(word) != FREE && !lost)
                return NULL;
        if (lost)
                mine = stook_meta_bump(sizeof(*mine), 0);
        else if (!now)
                mine = &turn->first;
        if (!mine || !pass(turn, word, word_of(serial, ticket, ASKING)))
                return NULL;
        if (lost) {
                if (!__atomic_compare_exchange_n(&turn->now, &now, mine, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_RELAXED))
                        return NULL;    /* this call itself is lost by now */
                if (stook_transit_is_gone(ticket_of(word)))
                        *gone = now ? now : &turn->first;
        }
        mine->turn = turn;
        __atomic_store_n(&mine->serial, serial, __ATOMIC_RELAXED);
        return mine;
}

void stook_rcu_turn_ask(struct stook_rcu_asked *asked, uint64_t ticket, const struct stook_rcu *rcu,
                        void (*done)(struct stook_rcu_head *head))
{
        struct stook_rcu_turn *turn = asked->turn;
        uint32_t serial = asked->serial;

        stook_rcu_call(rcu, &asked->head, done);
        pass(turn, word_of(serial, ticket, ASKING), word_of(serial, ticket, ASKED));
}

bool stook_rcu_turn_begin(struct stook_rcu_asked *asked, uint64_t ticket)
{
        uint32_t serial = __atomic_load_n(&asked->serial, __ATOMIC_RELAXED);
        uint64_t word = __atomic_load_n(&asked->turn->word, __ATOMIC_RELAXED);

        /* From ASKING, too: the call that asked may not have stored ASKED yet. */
        while (serial_of(word) == serial && (state_of(word) == ASKING || state_of(word) == ASKED)) {
                if (pass(asked->turn, word, word_of(serial, ticket, RUNNING)))
                        return true;
                word = __atomic_load_n(&asked->turn->word, __ATOMIC_RELAXED);
        }
        return false;
}

bool stook_rcu_turn_again(struct stook_rcu_asked *asked, uint64_t ticket)
{
        uint32_t serial = next(asked->serial);

        if (!pass(asked->turn, word_of(asked->serial, ticket, RUNNING),
                  word_of(serial, ticket, ASKING)))
                return false;
        __atomic_store_n(&asked->serial, serial, __ATOMIC_RELAXED);
        return true;
}

bool stook_rcu_turn_end(struct stook_rcu_asked *asked, uint64_t ticket)
{
        uint64_t free = word_of(asked->serial, 0, FREE);

        return pass(asked->turn, word_of(asked->serial, ticket, RUNNING), free) ||
               pass(asked->turn, word_of(asked->serial, ticket, ASKING), free);
}
