/*
 * Proves of src/rcu/rcu_turn.c, as it is: what the owner of a turn keeps is seen by the next one,
 * whether that takes the turn or begins in its callback, which may come before the call that asked
 * for it has noted so; a turn has one owner, though its call was lost and a second one is asked
 * for; and of two calls that come at once nothing is left behind, by the fences that rcu_free.c has
 * around the turn. Without those, something is; and without the turn two are owners.
 */
#include "selves.h"

#include "rcu/rcu_turn.c"

#define TICKET(n) ((uint64_t)(n) << 8)

/* ---- the layers below ---- */

static _Alignas(64) uint64_t lost;      /* the ticket of a call that is lost */
static struct stook_rcu_asked spare;
static _Alignas(64) uint64_t with_implementation[2];    /* heads */

bool stook_transit_is_lost(uint64_t ticket)
{
        return ticket == __atomic_load_n(&lost, __ATOMIC_ACQUIRE);
}
bool stook_transit_is_gone(uint64_t ticket) { return (void)ticket, false; }
void *stook_meta_bump(size_t bytes, size_t align) { return (void)bytes, (void)align, &spare; }

void stook_rcu_call(const struct stook_rcu *rcu, struct stook_rcu_head *head,
                    void (*done)(struct stook_rcu_head *head))
{
        (void)rcu, (void)done;
        __atomic_store_n(&with_implementation[head != &spare.head], (uintptr_t)head,
                         __ATOMIC_RELEASE);
}

/* ---- a turn, and what its owner keeps ---- */

static _Alignas(64) struct stook_rcu_turn turn;
static _Alignas(64) uint64_t waiting;
static _Alignas(64) int kept;           /* the owner's: not atomic */

static void reset(void)
{
        turn = (struct stook_rcu_turn){ 0 };
        spare = (struct stook_rcu_asked){ 0 };
        with_implementation[0] = with_implementation[1] = 0;
        waiting = lost = 0;
        kept = 0;
}

static struct stook_rcu_asked *take(uint64_t ticket)
{
        struct stook_rcu_asked *gone;

        return stook_rcu_turn_take(&turn, ticket, &gone);
}

static void own_by(uint64_t ticket)
{
        struct stook_rcu_asked *asked = take(ticket);

        if (!asked)
                return;
        kept++;
        weak_assert(stook_rcu_turn_end(asked, ticket));
}

static void own_first(void) { own_by(TICKET(1)); }
static void own_second(void) { own_by(TICKET(2)); }
static void own_third(void) { own_by(TICKET(3)); }
static void own_without(void) { kept++; }

/* ---- a call and its callback ---- */

static void ask_by(uint64_t ticket)
{
        struct stook_rcu_asked *asked = take(ticket);

        if (!asked)
                return;
        kept++;
        stook_rcu_turn_ask(asked, ticket, NULL, NULL);
}

static void ask_surely(void)
{
        while (!__atomic_load_n(&with_implementation[1], __ATOMIC_RELAXED)) {
                ask_by(TICKET(1));
                if (!__atomic_load_n(&with_implementation[1], __ATOMIC_RELAXED))
                        weak_wait();
        }
}

static void ask_second(void) { ask_by(TICKET(2)); }

static bool call_back(unsigned at, uint64_t ticket)
{
        uintptr_t head = __atomic_load_n(&with_implementation[at], __ATOMIC_ACQUIRE);
        struct stook_rcu_asked *asked = (struct stook_rcu_asked *)head;

        if (!head || !stook_rcu_turn_begin(asked, ticket))
                return false;
        kept++;
        stook_rcu_turn_end(asked, ticket);
        return true;
}

static void serve(void)
{
        while (!call_back(1, TICKET(4)))
                weak_wait();
}

/* The implementation has both heads, or one that comes late. */
static void serve_two(void)
{
        call_back(1, TICKET(4));
        call_back(0, TICKET(5));
}

/* It has asked, and is lost before it notes that. */
static void ask_and_vanish(void)
{
        struct stook_rcu_asked *asked = take(TICKET(1));

        if (!asked)
                return;
        kept++;
        stook_rcu_call(NULL, &asked->head, NULL);
        __atomic_store_n(&lost, TICKET(1), __ATOMIC_RELEASE);
}

/* ---- as rcu_free.c has it ---- */

static void kick(uint64_t ticket, bool fences)
{
        for (;;) {
                struct stook_rcu_asked *asked;

                if (fences)
                        __atomic_thread_fence(__ATOMIC_SEQ_CST);
                if (!__atomic_load_n(&waiting, __ATOMIC_RELAXED))
                        return;
                asked = take(ticket);
                if (!asked)
                        return;
                kept += (int)__atomic_exchange_n(&waiting, 0, __ATOMIC_ACQ_REL);
                weak_assert(stook_rcu_turn_end(asked, ticket));
        }
}

static void put(uint64_t ticket, bool fences)
{
        __atomic_fetch_add(&waiting, 1, __ATOMIC_RELEASE);
        kick(ticket, fences);
}

static void put_first(void) { put(TICKET(1), true); }
static void put_second(void) { put(TICKET(2), true); }
static void put_first_bare(void) { put(TICKET(1), false); }
static void put_second_bare(void) { put(TICKET(2), false); }

static void nothing_is_left(void)
{
        weak_assert(!waiting && kept == 2);
}

static const struct weak_program owners = {
        "turn, owners", reset, { own_first, own_second, own_third }, NULL, 3, 2
};
static const struct weak_program asked = {
        "turn, asked for", reset, { ask_surely, serve, own_second }, NULL, 2, 1
};
static const struct weak_program lost_call = {
        "turn, lost", reset, { ask_and_vanish, ask_second, serve_two }, NULL, 2, 1
};
static const struct weak_program chain = {
        "turn, chain", reset, { put_first, put_second }, nothing_is_left, 3, 2
};
static const struct weak_program bare_chain = {
        "turn, chain without fences", reset, { put_first_bare, put_second_bare },
        nothing_is_left, 3, 2
};
static const struct weak_program without = {
        "turn, none", reset, { own_without, own_without }, NULL, 2, 1
};

int main(void)
{
        weak_hold(&owners);
        weak_hold(&asked);
        weak_hold(&lost_call);
        weak_hold(&chain);
        weak_break(&bare_chain);
        weak_break(&without);
        return 0;
}
