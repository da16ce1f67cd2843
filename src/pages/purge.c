/*
 * Purpose: memory given back to the system: by age, and where fresh memory is taken beside it (stook_pages_step, from
 * slow paths), at once where much was freed (stook_pages_purge_big), and on request (stook_pages_purge).
 * Invariant: I1 a span is taken out of the bins before its content is dropped, and no lock is held meanwhile.
 * Failure: where the system refuses (mlocked pages) the span stays dirty and starts to age anew.
 */
#include "os/os.h"
#include "pages/pages_node.h"
#include "pages/range.h"

#define DECAY_MS     1000               /* as mimalloc's and jemalloc's order of magnitude */
#define STEP_SPANS   8                  /* purged by one step at most: a slow path's caller waits for it */
#define BIG          ((size_t)1 << 20)  /* a free span from here on is purged at once, above the allowance */
#define SMALL        ((size_t)64 << 10) /* the same above twice the allowance: spans between slabs that live on */
#define ALLOWANCE    ((size_t)4 << 20)  /* dirty memory that is never purged at once; measured: below, compilers fault more */

enum stook_thp stook_pages_thp = STOOK_THP_SYSTEM;
static uint32_t decay_ms = DECAY_MS;    /* atomic, relaxed */

void stook_pages_set_decay_ms(uint32_t ms)
{
        __atomic_store_n(&decay_ms, ms, __ATOMIC_RELAXED);
}

uint32_t stook_pages_decay_ms(void)
{
        return __atomic_load_n(&decay_ms, __ATOMIC_RELAXED);
}

void stook_pages_set_thp(enum stook_thp policy)
{
        stook_pages_thp = policy;
}

/* Drops the content of @span, which is in hands, and releases it. Returns bytes purged. */
static size_t drop(struct stook_pages_node *node, struct stook_span *span)
{
        size_t bytes = span->bytes;
        bool done = stook_os_purge((void *)span->start, bytes);

        if (done)
                span->state = STOOK_SPAN_PURGED;
        else
                span->age_ms = (uint32_t)stook_os_clock_ms();
        stook_pages_release(node, span);
        return done ? bytes : 0;
}

/*
 * Bytes of dirty free memory that may stay. What was purged and is taken again was purged for nothing: a program
 * that frees and allocates the same megabytes in turn keeps them, one that is idle after a spike does not.
 */
static size_t allowance(struct stook_pages_node *node)
{
        size_t share = __atomic_load_n(&node->taken_bytes, __ATOMIC_RELAXED) / 8;

        return (share > ALLOWANCE ? share : ALLOWANCE) + __atomic_load_n(&node->retaken_bytes, __ATOMIC_RELAXED);
}

static size_t dirty_bytes(struct stook_pages_node *node)
{
        return __atomic_load_n(&node->bins[STOOK_SET_DIRTY].bytes, __ATOMIC_RELAXED);
}

/* Bytes of a free span from which on it is purged at once: fewer, the more lies free. */
static size_t worth(size_t dirty, size_t allowed)
{
        if (dirty <= allowed)
                return SIZE_MAX;
        return dirty <= 2 * allowed ? BIG : SMALL;
}

void stook_pages_purge_big(struct stook_pages_node *node)
{
        struct stook_span *big;

        /* racy: whoever frees last sees all */
        if (stook_lock_may_not_wait() || dirty_bytes(node) <= allowance(node) || !stook_pages_lock(node))
                return;
        big = stook_bins_largest(&node->bins[STOOK_SET_DIRTY]);
        if (big && big->bytes >= worth(node->bins[STOOK_SET_DIRTY].bytes, allowance(node)))
                stook_pages_remove(node, big);
        else
                big = NULL;
        stook_lock_forbid_waits();
        stook_pages_unlock(node);
        if (big)
                drop(node, big);
        stook_lock_allow_waits();
}

void stook_pages_relieve(void)
{
        for (unsigned n = 0; n < stook_os_node_count(); n++)
                stook_pages_purge_big(&stook_pages_nodes[n]);
}

/*
 * Fresh memory was handed out although more than the allowance lies free: in pieces that do not fit, as sizes drift.
 * As much is dropped, whatever its age, or the process keeps both.
 */
static bool owes(struct stook_pages_node *node)
{
        if (!__atomic_load_n(&node->owed_bytes, __ATOMIC_RELAXED))
                return false;
        if (dirty_bytes(node) > allowance(node))
                return true;
        __atomic_store_n(&node->owed_bytes, 0, __ATOMIC_RELAXED);
        return false;
}

/* Racily: a debt that is paid twice was a small one. */
static void pay(struct stook_pages_node *node, size_t bytes)
{
        size_t owed = __atomic_load_n(&node->owed_bytes, __ATOMIC_RELAXED);

        __atomic_store_n(&node->owed_bytes, owed > bytes ? owed - bytes : 0, __ATOMIC_RELAXED);
}

void stook_pages_owe(struct stook_pages_node *node, size_t bytes)
{
        if (dirty_bytes(node) > allowance(node))
                __atomic_fetch_add(&node->owed_bytes, bytes, __ATOMIC_RELAXED);
}

/* One thread for each eighth of the decay time; a lost race is somebody else's step. */
static bool is_due(struct stook_pages_node *node, uint32_t now, uint32_t decay)
{
        uint32_t next = __atomic_load_n(&node->next_step_ms, __ATOMIC_RELAXED);
        size_t retaken;

        if ((int32_t)(now - next) < 0 ||
            !__atomic_compare_exchange_n(&node->next_step_ms, &next, now + decay / 8 + 1, false,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                return false;
        /* eight times in a decay time: forgotten by two thirds in it */
        retaken = __atomic_load_n(&node->retaken_bytes, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&node->retaken_bytes, retaken / 8 + !!retaken, __ATOMIC_RELAXED);
        return true;
}

/* Return: spans tried. */
static unsigned drop_oldest(struct stook_pages_node *node, uint32_t now, uint32_t decay)
{
        unsigned i;

        for (i = 0; i < STEP_SPANS; i++) {
                struct stook_span *oldest = NULL;

                if (!stook_pages_lock(node))
                        return i;
                if (!stook_list_empty(&node->aged)) {
                        oldest = stook_container_of(node->aged.next, struct stook_span, list);
                        if (now - oldest->age_ms < decay && !owes(node))
                                oldest = NULL;
                        else
                                stook_pages_remove(node, oldest);
                }
                stook_lock_forbid_waits();
                stook_pages_unlock(node);
                if (oldest) {
                        pay(node, oldest->bytes);
                        drop(node, oldest);
                }
                stook_lock_allow_waits();
                if (!oldest)
                        break;
        }
        return i;
}

void stook_pages_step(void)
{
        uint32_t decay = stook_pages_decay_ms();

        if (stook_lock_may_not_wait())
                return;
        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                struct stook_pages_node *node = &stook_pages_nodes[n];
                uint32_t now;

                if (!__atomic_load_n(&node->bins[STOOK_SET_DIRTY].spans, __ATOMIC_RELAXED) &&
                    !__atomic_load_n(&node->retaken_bytes, __ATOMIC_RELAXED))
                        continue;
                now = (uint32_t)stook_os_clock_ms();
                if (is_due(node, now, decay) || owes(node))
                        drop_oldest(node, now, decay);
        }
}

unsigned stook_pages_age(void)
{
        uint32_t decay = stook_pages_decay_ms(), now = (uint32_t)stook_os_clock_ms();
        unsigned all = 0;

        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                unsigned tried;

                (void)is_due(&stook_pages_nodes[n], now, decay);
                /* What the system refuses to drop is as young as new: this ends. */
                do
                        all += tried = drop_oldest(&stook_pages_nodes[n], now, decay);
                while (tried == STEP_SPANS && decay);
        }
        return all;
}

size_t stook_pages_purge(size_t keep_bytes)
{
        size_t purged = 0;

        for (unsigned n = 0; n < stook_os_node_count(); n++) {
                struct stook_pages_node *node = &stook_pages_nodes[n];
                size_t refused = 0;

                for (;;) {
                        struct stook_span *span = NULL;
                        size_t got, bytes;

                        if (!stook_pages_lock(node))
                                break;
                        if (node->bins[STOOK_SET_DIRTY].bytes > keep_bytes + refused)
                                span = stook_bins_largest(&node->bins[STOOK_SET_DIRTY]);
                        if (span)
                                stook_pages_remove(node, span);
                        stook_lock_forbid_waits();
                        stook_pages_unlock(node);
                        bytes = span ? span->bytes : 0;
                        got = span ? drop(node, span) : 0;
                        stook_lock_allow_waits();
                        if (!span)
                                break;
                        purged += got;
                        if (!got) {
                                refused += bytes;
                                break;          /* mlocked: the next largest would be refused as well */
                        }
                }
        }
        return purged;
}
