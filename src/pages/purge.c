/*
 * Purpose: memory given back to the system: what is old, or is owed for fresh memory taken
 * (stook_pages_step); at once, where far more lies free than may (stook_pages_purge_excess); on
 * request (stook_pages_purge).
 *
 * How much, and what, policy/dirty.h says: the dirty limit, what recurs, and debt.
 *
 * Invariant: I1 a span is taken out of the bins before its content is dropped, and no lock is held
 *  meanwhile.
 * Failure: where the system refuses (mlocked pages) the span stays dirty and starts to age anew.
 */
#include <limits.h>
#include "base/probe.h"
#include "os/os.h"
#include "pages/meta.h"
#include "pages/pages_node.h"
#include "policy/constants.h"

#define STEP_SPANS   32                 /* purged by one step at most: a slow call waits for it */
/* Purged at once by one call, at most: as many as a flush may free, and some of before. */
#define EXCESS_SPANS     256
#define PIECE_DOUBLINGS  16             /* of a piece that is purged: 128 GiB at most */

static uint32_t decay_ms = STOOK_DECAY_MS;    /* atomic, relaxed */

void stook_pages_set_decay_ms(uint32_t ms)
{
        __atomic_store_n(&decay_ms, ms, __ATOMIC_RELAXED);
}

uint32_t stook_pages_decay_ms(void)
{
        return __atomic_load_n(&decay_ms, __ATOMIC_RELAXED);
}

/* Drops the content of @span, which this thread owns, and releases it. Return: bytes purged. */
static size_t drop(struct stook_pages_node *node, struct stook_span *span)
{
        size_t bytes = span->bytes;
        bool done;

        stook_huge_purge(node, span->start, bytes);
        done = stook_os_purge((void *)span->start, bytes);
        STOOK_PROBE3(pages_purge, span->start, bytes, done);
        if (done)
                span->state = STOOK_SPAN_PURGED;
        else
                stook_span_set_age(span, (uint32_t)stook_os_clock_ms());
        __atomic_fetch_add(&node->ledger.purged, done ? bytes : 0, __ATOMIC_RELAXED);
        __atomic_fetch_add(&node->ledger.purges, done, __ATOMIC_RELAXED);
        stook_pages_insert_or_pend(node, span);
        return done ? bytes : 0;
}

/*
 * Under the lock; @span is in hands. Behind it, in the same huge page, may lie memory without
 * content. A fault of the huge page made it resident with the rest, so it is purged with the rest.
 */
static void join_clean(struct stook_pages_node *node, struct stook_span *span,
                       struct stook_span **spare)
{
        uintptr_t end = span->start + span->bytes;
        size_t room = -end & (STOOK_HUGE_PAGE - 1);
        struct stook_span *after;

        if (!room || !stook_huge_any() || !*spare)
                return;
        after = stook_pages_behind(node, end);
        if (after && stook_pages_is_clean(after))
                stook_pages_absorb(node, span, after, after->bytes < room ? after->bytes : room,
                                   spare);
}

struct part {
        uintptr_t start, end;
};

/*
 * The part of @span to purge: its last @bytes. While the process does not shrink, that memory is
 * soon taken again. So it is whole huge pages then, if @span has some, and rather too many. What a
 * purge breaks would come back in small pages, whose faults take six times as long.
 */
static struct part last_part(const struct stook_pages_node *node, const struct stook_span *span,
                             size_t bytes)
{
        uintptr_t mask = STOOK_HUGE_PAGE - 1, end = span->start + span->bytes, last = end & ~mask;
        uintptr_t first = (last - bytes) & ~mask, least = (span->start + mask) & ~mask;

        first = first < least ? least : first;
        if (first < last && stook_huge_any() && !stook_dirty_is_shrinking(&node->ledger))
                return (struct part){ first, last };
        return (struct part){ end - bytes, end };
}

/*
 * Under the lock: about the last @bytes of @span, or all of a little one, leave the bins. The rest
 * stays there. @spares: descriptors or NULL.
 */
static struct stook_span *cut_off(struct stook_pages_node *node, struct stook_span *span,
                                  size_t bytes, struct stook_span *spares[2])
{
        struct stook_span *front = span;
        struct part part;

        bytes = stook_os_whole_pages(bytes);
        stook_pages_remove(node, span);
        if (!spares[0] || !spares[1] || span->bytes < bytes + STOOK_PURGE_SMALL)
                return span;
        part = last_part(node, span, bytes);
        if (part.end < span->start + span->bytes)
                stook_pages_insert(node, stook_pages_split(span, part.end - span->start,
                                                           &spares[1]));
        if (part.start > span->start) {
                span = stook_pages_split(front, part.start - front->start, &spares[0]);
                stook_pages_insert(node, front);
        }
        return span;
}

/*
 * Under the lock. @big is a free span worth purging. The part of dirty memory that exceeds @keep
 * bytes is cut off its end, and the front stays free. With nothing to keep that is all of @big: the
 * process may make no more calls. @most: at once, or a little more. Return: the span to purge.
 */
static struct stook_span *excess(struct stook_pages_node *node, struct stook_span *big, size_t keep,
                                 size_t most, struct stook_span *spares[2])
{
        size_t dirty = node->bins[STOOK_SET_DIRTY].bytes, bytes = dirty > keep ? dirty - keep : 0;

        if (!keep)
                bytes = big->bytes;
        /* No rest is left that is too small to be worth a purge. */
        if (bytes > 2 * most)
                bytes = most;
        return cut_off(node, big, bytes < STOOK_DIRTY_LEAST ? STOOK_DIRTY_LEAST : bytes, spares);
}

/* More lies free than may. Racy, but the thread that frees last sees all bytes. */
static bool has_excess(const struct stook_pages_node *node)
{
        return stook_pages_dirty(node) > stook_dirty_at_once(&node->ledger);
}

/* Under the lock: the largest free span, or its end, about @most bytes, if it is worth a purge. */
static struct stook_span *largest(struct stook_pages_node *node, size_t most,
                                  struct stook_span *spares[2])
{
        struct stook_bins *dirty = &node->bins[STOOK_SET_DIRTY];
        struct stook_span *span = stook_bins_largest(dirty);

        if (!span || span->bytes < stook_dirty_worth(&node->ledger, dirty->bytes))
                return NULL;
        return excess(node, span, stook_dirty_left(&node->ledger), most, spares);
}

static size_t debt(struct stook_pages_node *node)
{
        return stook_debt(&node->ledger, stook_pages_dirty(node));
}

/*
 * Under the lock: takes the span that is to be dropped now out of the bins. NULL: none. What recurs
 * is dropped only after STOOK_RECURS_DECAYS decay times: else phases that are one apart would be
 * faulted in each time. Memory ceases to recur after two decay times (policy/ledger.h), but those
 * windows only turn with steps.
 */
static struct stook_span *oldest(struct stook_pages_node *node, uint32_t now,
                                 struct stook_span *spares[2])
{
        uint32_t age, decay = stook_pages_decay_ms();
        struct stook_span *span;
        size_t keep, owed;

        if (stook_list_empty(&node->aged))
                return NULL;
        span = stook_container_of(node->aged.next, struct stook_span, list);
        owed = debt(node);
        if (owed)
                return cut_off(node, span, owed < STOOK_PURGE_SMALL ? STOOK_PURGE_SMALL : owed,
                               spares);
        age = now - span->dirty_since_ms;
        keep = age / STOOK_RECURS_DECAYS < decay ? stook_dirty_recurring(&node->ledger) : 0;
        if (age < decay || stook_pages_dirty(node) <= keep)
                return NULL;
        return excess(node, span, keep, SIZE_MAX / 2, spares);
}

/* Under the lock: the largest free span, all of it, if more than @keep bytes are dirty. */
static struct stook_span *beyond(struct stook_pages_node *node, size_t keep)
{
        struct stook_bins *dirty = &node->bins[STOOK_SET_DIRTY];
        struct stook_span *span = dirty->bytes > keep ? stook_bins_largest(dirty) : NULL;

        if (span)
                stook_pages_remove(node, span);
        return span;
}

/* What a purge takes: the largest where more is free than may; what is due now; what is asked. */
enum why { EXCESS, DUE, ASKED };

/*
 * Purges one span, or a part of it. @arg: of EXCESS how much at most; of DUE the time; of ASKED the
 * bytes that stay. *@tried: its bytes; 0: there was none. Return: bytes purged. If the system
 * refused one, it would refuse the next, too: all memory is locked.
 */
static size_t purge_one(struct stook_pages_node *node, enum why why, size_t arg, size_t *tried)
{
        /* A cut leaves up to two rests; NULL where there is no memory. */
        struct stook_span *spares[2] = { stook_meta_span_new(), stook_meta_span_new() };
        struct stook_span *span = NULL;
        bool locked = stook_pages_lock(node);
        size_t purged = 0;

        if (locked)
                span = why == EXCESS ? largest(node, arg, spares)
                       : why == DUE  ? oldest(node, (uint32_t)arg, spares)
                                     : beyond(node, arg);
        if (span)
                join_clean(node, span, &spares[1]);
        stook_lock_forbid_waits();
        if (locked)
                stook_pages_unlock(node);
        *tried = span ? span->bytes : 0;
        if (span) {
                if (why == DUE)
                        stook_debt_pay(&node->ledger, span->bytes);
                purged = drop(node, span);
        }
        stook_lock_allow_waits();
        for (unsigned i = 0; i < 2; i++)
                if (spares[i])
                        stook_meta_span_free(spares[i]);
        return purged;
}

/* Pieces get larger: 64 GiB are 28 of them. */
static size_t piece(unsigned turn)
{
        unsigned doublings = turn / 2;

        return STOOK_HUGE_PAGE << (doublings < PIECE_DOUBLINGS ? doublings : PIECE_DOUBLINGS);
}

/*
 * In pieces: another thread may take its next object meanwhile, and then the process does not
 * shrink any more. If the process did not shrink when this call began, and another thread's free
 * makes it shrink, that other thread purges, and this one stops.
 */
void stook_pages_purge_excess_of(struct stook_pages_node *node)
{
        bool shrinking;
        size_t tried;

        if (stook_lock_may_not_wait() || !has_excess(node))
                return;
        shrinking = stook_dirty_is_shrinking(&node->ledger);
        for (unsigned i = 0; i < EXCESS_SPANS && has_excess(node); i++)
                if (!purge_one(node, EXCESS, piece(i), &tried) ||
                    (!shrinking && stook_dirty_is_shrinking(&node->ledger)))
                        break;
}

void stook_pages_purge_excess(void)
{
        for (unsigned n = 0; n < stook_os_node_count(); n++)
                stook_pages_purge_excess_of(&stook_pages_nodes[n]);
}

/*
 * True for one thread in each eighth of the decay time. A lost race is another thread's step. A
 * wait that is over wraps around. One that is much too long is from before a shorter decay, or is
 * none at all: the clock may be anywhere at the first step. A little too long is one that another
 * thread just noted.
 */
static bool is_due(struct stook_pages_node *node, uint32_t now)
{
        uint32_t decay = stook_pages_decay_ms();
        uint32_t next = __atomic_load_n(&node->next_step_ms, __ATOMIC_RELAXED);
        uint32_t wait_ms = next - now, each_ms = decay / 8 + 1;

        if ((wait_ms && wait_ms <= 2 * each_ms) ||
            !__atomic_compare_exchange_n(&node->next_step_ms, &next, now + each_ms, false,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                return false;
        stook_ledger_age(&node->ledger, now, decay);
        return true;
}

/* Purges what is due, STEP_SPANS at most. Return: spans tried. */
static unsigned purge_due(struct stook_pages_node *node, uint32_t now)
{
        unsigned i;
        size_t tried;

        for (i = 0; i < STEP_SPANS; i++) {
                purge_one(node, DUE, now, &tried);
                if (!tried)
                        break;
        }
        return i;
}

void stook_pages_pay(void)
{
        if (stook_lock_may_not_wait())
                return;
        for (unsigned n = 0; n < stook_os_node_count(); n++)
                if (debt(&stook_pages_nodes[n]))
                        purge_due(&stook_pages_nodes[n], (uint32_t)stook_os_clock_ms());
}

void stook_pages_step(void)
{
        if (stook_lock_may_not_wait())
                return;
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                struct stook_pages_node *node = &stook_pages_nodes[n];
                uint32_t now;
                bool due;

                if (!__atomic_load_n(&node->bins[STOOK_SET_DIRTY].spans, __ATOMIC_RELAXED) &&
                    !stook_ledger_refaults(&node->ledger) &&
                    !stook_recent_bytes(node))
                        continue;
                now = (uint32_t)stook_os_clock_ms();
                due = is_due(node, now);
                if (due)
                        stook_recent_flush(node);
                if (due || debt(node))
                        purge_due(node, now);
        }
}

unsigned stook_pages_age(void)
{
        uint32_t now = (uint32_t)stook_os_clock_ms();
        unsigned all = 0;

        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                unsigned tried;

                (void)is_due(&stook_pages_nodes[n], now);
                stook_recent_flush(&stook_pages_nodes[n]);
                /* A span that the system refuses to purge gets age zero, so this loop ends. */
                do
                        all += tried = purge_due(&stook_pages_nodes[n], now);
                while (tried == STEP_SPANS && stook_pages_decay_ms());
                /* A thread that found the lock taken left its spans to the holder. */
                stook_pages_purge_excess_of(&stook_pages_nodes[n]);
        }
        return all;
}

/* @most spans, until @keep bytes are dirty. */
static size_t purge_beyond(struct stook_pages_node *node, size_t keep, unsigned most)
{
        size_t purged = 0, got = 1, tried;

        stook_recent_flush(node);
        for (unsigned i = 0; i < most && got; i++)
                purged += got = purge_one(node, ASKED, keep, &tried);
        return purged;
}

size_t stook_pages_purge(size_t keep_bytes)
{
        size_t purged = 0;

        for (unsigned n = 0; n < stook_os_node_count(); n++)
                purged += purge_beyond(&stook_pages_nodes[n], keep_bytes, UINT_MAX);
        return purged;
}

/*
 * What refaulted is forgotten: it may have been the work of threads that are gone. What is taken
 * from here on counts anew.
 */
static size_t purge_rest(struct stook_pages_node *node)
{
        size_t purged = purge_beyond(node, 0, EXCESS_SPANS);

        __atomic_store_n(&node->ledger.purged_rest, purged, __ATOMIC_RELAXED);
        __atomic_store_n(&node->ledger.refault, 0, __ATOMIC_RELAXED);
        return purged;
}

size_t stook_pages_purge_rest(void)
{
        size_t purged = 0;

        for (unsigned n = 0; n < stook_os_node_count(); n++)
                purged += purge_rest(&stook_pages_nodes[n]);
        return purged;
}

bool stook_pages_rest_refaulted(void)
{
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                const struct stook_pages_node *node = &stook_pages_nodes[n];
                size_t rest = __atomic_load_n(&node->ledger.purged_rest, __ATOMIC_RELAXED);

                if (rest && stook_dirty_refaulted(&node->ledger) >= rest / 2)
                        return true;
        }
        return false;
}
