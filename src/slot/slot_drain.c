/*
 * Purpose: empty the slots of a cache from outside, while threads go on using them: shrink, destroy, tuning.
 *
 * Place: called by cache and life with no lock held; calls barn to flush, os for membarrier and futex.
 *
 * How: each slot's pair is exchanged for {zero-capacity sheaf, none}, by the same compare-and-swap that
 * everybody changes it with. From then on nobody finds the old sheaves there. But a section that loaded an old
 * main before may still commit to it. One membarrier aborts, on every CPU, sections that have not committed;
 * so what was detached is ours alone after it, and only then it is read or flushed. On slots of the locked
 * backend the same is said by a look at their word: free once, after the exchange. Nothing is put back: the
 * next miss on the slot installs.
 *
 * There is a barrier before the exchanges, too. It finds out whether membarrier still works (a sandbox may have
 * come down since start) before anything is detached; and it ends all sections that saw the cache's
 * configuration as it was before the caller changed it, so that their installs come before our exchange.
 *
 * Invariants:
 *  I1 one drain at a time, under `drain`, which alloc and free never take.
 *  I2 if the second barrier fails, what was detached is never touched again, and no drain is tried any more.
 *  I3 a locked slot whose holder does not come back is waited for once, and skipped from then on while the holder is
 *     away: it keeps what it has. What was detached when that was noticed is left alone, once.
 * Concurrency: M1: the exchange and the membarrier pair with the loads and the commit of every section.
 * Failure: false, as said.
 */
#include "slot/slot_node.h"
#include "slot/slot_rcu.h"
#include "slot/slot_regions.h"
#include "os/os.h"

static uint32_t drain;                  /* 0 free, 1 held, 2 held and somebody may sleep */
static bool broken;                     /* drain; I2 */
static void *drainer;                   /* drain: stook_self of the holder */

/* A mutex that waits, unlike base/lock.h: the holder goes on to take those. Not for handlers. */
static void drain_lock(void)
{
        uint32_t seen = 0;

        if (!__atomic_compare_exchange_n(&drain, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                while (__atomic_exchange_n(&drain, 2, __ATOMIC_ACQUIRE))
                        stook_os_futex_wait(&drain, 2, 100 * 1000 * 1000);
        drainer = stook_self;
}

static bool drain_try(void)
{
        uint32_t seen = 0;

        if (!__atomic_compare_exchange_n(&drain, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return false;
        drainer = stook_self;
        return true;
}

static void drain_unlock(void)
{
        drainer = NULL;
        if (__atomic_exchange_n(&drain, 0, __ATOMIC_RELEASE) == 2)
                stook_os_futex_wake(&drain);
}

void stook_slot_drain_fork_child(void)
{
        __atomic_store_n(&drain, 0, __ATOMIC_RELEASE);
}

/*
 * Pairs that were detached and are not flushed yet, linked. A child of fork finds here what a thread that is gone had
 * in its hands, but for one sheaf.
 */
static struct stook_link *detached;     /* drain */

void stook_slot_drain_fork_mend(void)
{
        if (drainer == stook_self)      /* this thread's own, which forked in a handler on top of it */
                return;
        while (detached) {
                struct stook_sheaf *sheaf = stook_container_of(detached, struct stook_sheaf, link);
                struct stook_barns *barns = stook_barns_first();

                detached = detached->next;
                while (barns && barns->cache_index != sheaf->cache_index)
                        barns = barns->next;
                if (!barns)
                        continue;
                stook_barn_flush(barns, sheaf);
                stook_sheaf_delete(sheaf, barns->counters);
        }
}

#define LOOKS        100                /* without sleep */
#define LOOKS_AT_ALL 1000               /* about a second: the holder was stopped, or jumped out of */

/*
 * Waits until nobody is inside a locked slot who was there before; holders stay for nanoseconds. A slot whose
 * holder never came back is not waited for again, or a trim would wait for it once for each cache.
 */
static bool locked_slot_passed(unsigned slot)
{
        struct stook_line *line = stook_slots_line(slot, 0);

        if (!line)
                return true;
        /* A read-modify-write, not a load: the next holder's exchange comes after it and sees our exchange. */
        for (unsigned tries = 0; __atomic_fetch_or(&line->busy, 0, __ATOMIC_ACQ_REL); tries++) {
                if (tries == (line->stuck ? LOOKS : LOOKS_AT_ALL)) {
                        line->stuck = true;
                        return false;
                }
                if (tries > LOOKS)
                        stook_os_futex_wait(&line->busy, 1, 1000 * 1000);
        }
        line->stuck = false;
        return true;
}

struct passed {
        bool sections;                  /* false: membarrier was refused */
        bool now_stuck;                 /* a holder did not leave that was not waited for in vain before: I3 */
        bool stuck;                     /* one did not leave */
};

/* Afterwards no section is between its loads and its commit that was there before, no holder but in stuck slots. */
static struct passed barrier(void)
{
        struct passed passed = { .sections = true };

        if (__atomic_load_n(&stook_slot_hooks.no_barrier, __ATOMIC_RELAXED))
                return passed;
        passed.sections = !stook_regions.rseq_slots || stook_os_membarrier();
        for (unsigned slot = stook_regions.rseq_slots; passed.sections && slot < stook_slots_bound(); slot++) {
                bool was_stuck = stook_drain_skips(slot);

                if (locked_slot_passed(slot))
                        continue;
                passed.stuck = true;
                passed.now_stuck |= !was_stuck;
        }
        return passed;
}

bool stook_drain_skips(unsigned slot)
{
        const struct stook_line *line = slot < stook_regions.rseq_slots ? NULL : stook_slots_line(slot, 0);

        return line && line->stuck;
}

/* What was detached before is the caller's. */
static bool settle(void)
{
        struct passed passed = barrier();

        if (!passed.sections)
                broken = true;
        return passed.sections && !passed.now_stuck;
}

/* ---- for slot_rcu.c ---- */

bool stook_drain_begin(bool wait)
{
        if (!wait && !drain_try())
                return false;
        if (wait)
                drain_lock();
        if (!broken && barrier().sections)
                return true;
        drain_unlock();
        return false;
}

bool stook_drain_settle(void)
{
        return settle();
}

void stook_drain_end(void)
{
        drain_unlock();
}

/* ---- pairs ---- */

static void chain(struct stook_sheaf *sheaf)
{
        if (!sheaf || sheaf == &stook_sheaf_zero)
                return;
        /* No section touches link; a popper with a stale head may read it, and is rejected by its tag. */
        __atomic_store_n(&sheaf->link.next, detached, __ATOMIC_RELAXED);
        detached = &sheaf->link;
}

/*
 * Has nothing been taken from this slot's sheaves since the look that noted them, and is that long ago? Where no thread
 * can run any more it need not be long. NULL: all are due.
 */
static bool is_due(struct stook_line *line, unsigned slot, const struct stook_slot_look *look)
{
        struct stook_pair pair = stook_pair_read(&line->pair);
        const struct stook_sheaf *main = (const struct stook_sheaf *)pair.lo;
        uint64_t pops = __atomic_load_n(&main->word, __ATOMIC_RELAXED) >> 16;

        if (!look)
                return true;
        if (__atomic_load_n(&line->seen[0], __ATOMIC_RELAXED) != pair.lo ||
            __atomic_load_n(&line->seen[1], __ATOMIC_RELAXED) != pops) {
                stook_line_note(line, pair.lo, pops, look->now_ms);
                return false;
        }
        return look->now_ms - __atomic_load_n(&line->idle_ms, __ATOMIC_RELAXED) >= look->after_ms || look->gone(slot, look->allowed);
}

static bool holds_sheaf(struct stook_line *line)
{
        struct stook_pair pair = stook_pair_read(&line->pair);

        return pair.lo != (uintptr_t)&stook_sheaf_zero || pair.hi;
}

static bool any_due(unsigned line_index, const struct stook_slot_look *look)
{
        bool due = false;

        /* All of them: a look notes what it sees. */
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_line *line = stook_slots_line(slot, line_index);

                if (line && holds_sheaf(line))
                        due |= is_due(line, slot, look);
        }
        return due;
}

/* True: nothing that was due is left in any slot. */
static bool detach_due(unsigned line_index, const struct stook_slot_look *look)
{
        const struct stook_pair nothing = { .lo = (uintptr_t)&stook_sheaf_zero };
        bool all = true;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_line *line = stook_slots_line(slot, line_index);
                struct stook_pair  old;

                if (!line || !is_due(line, slot, look))
                        continue;
                old = stook_pair_read(&line->pair);
                if (stook_drain_skips(slot)) {
                        all &= old.lo == nothing.lo && !old.hi;
                        continue;
                }
                while ((old.lo != nothing.lo || old.hi) && !stook_pair_cas(&line->pair, &old, nothing))
                        ;
                chain((struct stook_sheaf *)old.lo);
                chain((struct stook_sheaf *)old.hi);
        }
        return all;
}

static bool drain_locked(struct stook_barns *barns, const struct stook_slot_look *look)
{
        struct stook_link *rcu = NULL;
        int ticket = 0;
        bool all;

        if (broken || !barrier().sections)
                return false;
        if (!look)
                rcu = stook_slot_rcu_detach(barns->line_index, barns->line_index + 1, UINT64_MAX, &ticket);
        all = detach_due(barns->line_index, look);
        if ((detached || rcu) && !settle()) {
                detached = NULL;
                if (!look)
                        stook_slot_rcu_lose(ticket);
                return false;
        }
        if (!look)                      /* what waits for readers goes by its own clock: stook_rcu_step */
                stook_slot_rcu_hand_on(rcu, ticket);
        while (detached) {
                struct stook_sheaf *sheaf = stook_container_of(detached, struct stook_sheaf, link);

                detached = detached->next;
                stook_barn_flush(barns, sheaf);
                stook_sheaf_delete(sheaf, barns->counters);
        }
        return all;
}

bool stook_slot_drain(struct stook_front *front)
{
        bool done;

        /* A cache that never had a sheaf; its capacity may be 0 only since it was tuned. */
        if (!stook_counted(front->below->counters, STOOK_STAT_sheaf_alloc))
                return true;
        drain_lock();
        stook_slot_drain_remote(front);
        done = drain_locked(front->below, NULL);
        drain_unlock();
        return done;
}

bool stook_slot_drain_idle(struct stook_barns *barns, const struct stook_slot_look *look)
{
        bool done;

        if (!any_due(barns->line_index, look))
                return false;
        drain_lock();
        done = drain_locked(barns, look);
        drain_unlock();
        stook_barns_stir(barns);
        return done;
}

size_t stook_slot_objects(struct stook_front *front)
{
        size_t n = 0;

        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_line *line = stook_slots_line(slot, front->offset >> STOOK_LINE_SHIFT);
                struct stook_pair  seen;

                for (unsigned node = 0; node < stook_regions.nodes; node++) {
                        const struct stook_sheaf *sent = stook_slot_remote_sheaf(front, slot, node);

                        n += sent ? stook_sheaf_size(sent) : 0;
                }
                if (!line)
                        continue;
                seen = stook_pair_read(&line->pair);
                n += stook_sheaf_size((struct stook_sheaf *)seen.lo);
                if (seen.hi)
                        n += stook_sheaf_size((struct stook_sheaf *)seen.hi);
        }
        return n;
}

/* ---- for stocks (slot_stock.c): the same mutex and barrier ---- */

bool stook_slot_drain_begin(bool wait)
{
        if (!wait && !drain_try())
                return false;
        if (wait)
                drain_lock();
        if (!broken)
                return true;
        drain_unlock();
        return false;
}

void stook_slot_drain_end(void)
{
        drain_unlock();
}

bool stook_slot_drain_barrier(void)
{
        struct passed passed = barrier();

        return passed.sections && !passed.stuck;
}
