/*
 * Purpose: runs: 2 MiB of pages that belong to one cache, aligned, and cut into slabs. For a cache
 * that wants huge pages, or whose memory the program prepares itself: locks it, registers it with a
 * device, maps a file over it.
 * Place: called by cache, and by slab by way of struct stook_slabs_special; calls slab and pages.
 *
 * All slabs of a run are made together. Those that the caller does not need are listed empty. Frees
 * release none of them (stook_slabs_only_shrink). A shrink releases a run whose slabs are all
 * empty. So a run has all of its slabs as long as it lives, and needs no descriptor of its own.
 *
 * Invariants:
 *  R1 Every slab of the cache lies in a run. The run's address is the slab's, rounded down. The
 *     pagemap leads from there to all of its slabs. In the child of a fork some may be missing,
 *     which a vanished thread was giving back; the others are released without them.
 *  R2 The program's functions are called for whole runs, with no lock of the slabs held. `in` comes
 *     before a slab of the run is published. `out` comes after all slabs of the run were unmade,
 *     and before the pages have them. So each is called once for each run.
 * Concurrency: births as in slab_birth.c. Only calls under the registry mutex release runs, one at
 *  a time; so the chain `gone` has spans of one run, and in the child of a fork what a vanished
 *  thread left there. That is lost.
 * Failure: no memory for a whole run, or `in` refuses it: there is no slab.
 */
#include <errno.h>

#include "os/os.h"
#include "pages/pagemap.h"
#include "pages/meta.h"
#include "slab/slab_inside.h"
#include "special/special.h"

#define SLAB_LEAST ((size_t)32 << 10)   /* as slabs of other caches have */

/* ---- geometry ---- */

/* Bytes of a slab in a run: a power of two, for @objects or more, at most @most. */
static uint32_t slab_bytes(size_t stride, size_t objects, size_t most)
{
        size_t least = SLAB_LEAST > stook_os_page_bytes() ? SLAB_LEAST : stook_os_page_bytes();

        while (least < most && least < stride * objects)
                least *= 2;
        for (size_t share = 16; share > 1; share /= 2)
                for (size_t bytes = least; bytes <= most; bytes *= 2)
                        if (bytes % stride <= bytes / share)
                                return (uint32_t)bytes;
        return (uint32_t)least;
}

/* ---- births ---- */

static struct stook_span *span_of(struct stook_link *link)
{
        return stook_container_of(link, struct stook_span, link);
}

/* Of slabs that were made and not published: all before @end. */
static void unmake_run(struct stook_link *at, const struct stook_link *end)
{
        for (; at != end; at = at->next) {
                stook_slab_mark_released(stook_slab_of(span_of(at)));
                stook_slab_unmake(stook_slab_of(span_of(at)));
        }
}

static bool make_run(struct stook_slabs *slabs, struct stook_link *run)
{
        for (struct stook_link *at = run; at; at = at->next)
                if (!stook_slab_make(slabs, span_of(at))) {
                        unmake_run(run, at);
                        stook_span_give_chain(run);
                        return false;
                }
        return true;
}

/* R2. The program's code may allocate, or jump. False: it refused. */
static STOOK_NOINLINE bool let_in(struct stook_slabs *slabs, struct stook_link *run)
{
        const struct stook_slabs_memory *memory = &stook_special_of(slabs)->memory;
        uint32_t held = stook_lock_pin();
        int before = errno, refused;

        refused = memory->in((void *)span_of(run)->start, STOOK_RUN_BYTES, memory->data);
        errno = before;
        stook_lock_unpin(held);
        return !refused;
}

/* A run whose slabs are the caller's alone. NULL: no memory, or the program refuses it. */
static struct stook_link *take_run(struct stook_slabs *slabs, unsigned node)
{
        struct stook_link *run = stook_span_take_run(node, STOOK_RUN_BYTES, slabs->slab_bytes,
                                                     stook_special_of(slabs)->huge);

        if (!run || !make_run(slabs, run))
                return NULL;
        if (slabs->run_asks && !let_in(slabs, run)) {
                unmake_run(run, NULL);
                /* It may have mapped something there already. */
                if (stook_span_renew_run(run, STOOK_RUN_BYTES))
                        stook_span_give_chain(run);
                return NULL;
        }
        return run;
}

/* As stook_slab_births: slabs of a new run, @n at most. Those beyond are listed. */
static unsigned births(struct stook_slabs *slabs, unsigned node, size_t n, struct stook_slab **born)
{
        struct stook_link *at = take_run(slabs, node), *next;
        unsigned made = 0;

        if (!at)
                return 0;
        stook_count(slabs->counters, STOOK_STAT_alloc_slab, slabs->run_slabs);
        stook_slabs_note_peaks(slabs);
        for (; at; at = next) {
                struct stook_slab *slab = stook_slab_of(span_of(at));

                next = at->next;
                if (made < n)
                        born[made++] = slab;
                else
                        stook_slab_publish(slabs, slab, false, true);
        }
        return made;
}

/* ---- the end of a run ---- */

/* The slab at @start; NULL: it was lost (R1). */
static struct stook_slab *slab_at(const struct stook_slabs *slabs, uintptr_t start)
{
        uint64_t entry = stook_pagemap_get(start);

        return stook_entry_cache(entry) == slabs->cache_index
                ? stook_slab_of(stook_entry_span(entry)) : NULL;
}

/* Held: the slabs of the run at @start (R1), if all of them may be released. Otherwise 0. */
static uint32_t idle_slabs(const struct stook_slabs *slabs, uintptr_t start)
{
        uint32_t n = 0;

        for (size_t at = 0; at < STOOK_RUN_BYTES; at += slabs->slab_bytes) {
                struct stook_slab *slab = slab_at(slabs, start + at);

                if (!slab)
                        continue;
                if (!stook_slab_empty_but_claim(slab, STOOK_SLAB_PARTS) ||
                    (slabs->dtor && !stook_special_may_go(slab)))
                        return 0;
                n++;
        }
        return n;
}

/* Held: the first slab is marked last, so a run that lacks slabs (R1) still has it. */
static void bury_run(struct stook_slab_hold *hold, uintptr_t start)
{
        for (size_t at = STOOK_RUN_BYTES; at; at -= hold->slabs->slab_bytes) {
                struct stook_slab *slab = slab_at(hold->slabs,
                                                  start + at - hold->slabs->slab_bytes);

                if (slab && stook_slab_retire(slab))
                        stook_slab_bury(hold, slab);
        }
}

/*
 * Held: the next run that is not needed, of which the first slab is on the list. A slab that was
 * looked at goes to the list's tail. 0: there is none.
 */
static uintptr_t next_idle(struct stook_slab_hold *hold, uint32_t *looks)
{
        const struct stook_slabs *slabs = hold->slabs;
        uint32_t surplus = stook_slabs_beyond_reserved(slabs, hold->node);

        if (*looks > hold->node->partial)
                *looks = hold->node->partial;
        while (*looks && surplus) {
                uintptr_t start = stook_slab_span(stook_slab_turn(hold))->start;
                uint32_t n;

                --*looks;
                n = start % STOOK_RUN_BYTES == 0 ? idle_slabs(slabs, start) : 0;
                if (n && n <= surplus)
                        return start;
        }
        return 0;
}

/* `give_later` where the program prepares runs: the span waits until its run is whole. */
static void leave(struct stook_slabs *slabs, struct stook_span *span)
{
        stook_pending_stack_push(&stook_special_of(slabs)->memory.gone, &span->link);
}

/* R2: the run at @start, whose slabs have left. */
static void let_out(struct stook_slabs *slabs, uintptr_t start)
{
        struct stook_slabs_memory *memory = &stook_special_of(slabs)->memory;
        struct stook_link *link = stook_pending_stack_take_all(&memory->gone), *run = NULL, *next;
        unsigned n = 0;
        uint32_t held;
        int before = errno;

        for (; link; link = next) {
                next = link->next;
                if (span_of(link)->start - start >= STOOK_RUN_BYTES)
                        continue;
                stook_link_set_next(link, run);
                run = link;
                n++;
        }
        if (n < slabs->run_slabs)
                return;
        held = stook_lock_pin();
        if (memory->out)
                memory->out((void *)start, STOOK_RUN_BYTES, memory->data);
        errno = before;
        stook_lock_unpin(held);
        if (stook_span_renew_run(run, STOOK_RUN_BYTES))
                stook_span_give_chain(run);
}

/* Releases the runs of a node that are empty and not reserved. */
static void shrink_node(struct stook_slabs *slabs, struct stook_slabs_node *node)
{
        uint32_t looks = UINT32_MAX;
        struct stook_slab_hold hold;
        uintptr_t start;

        do {
                if (!stook_slab_hold_long(&hold, slabs, node))
                        return;
                start = next_idle(&hold, &looks);
                if (start)
                        bury_run(&hold, start);
                stook_slab_unhold(&hold);
                if (start && slabs->run_asks)
                        let_out(slabs, start);
        } while (start);
}

static void shrink(struct stook_slabs *slabs)
{
        if (slabs->dtor)
                stook_special_destruct_empty(slabs);
        for (unsigned i = 0; i < stook_os_node_count(); i++)
                shrink_node(slabs, &slabs->node[i]);
}

/* A slab goes with its run. */
static bool may_go(struct stook_slab *slab)
{
        (void)slab;
        return false;
}

/* ---- of a cache ---- */

static void choose_runs(struct stook_special *special, struct stook_slabs_args *args, bool huge,
                        const struct stook_slabs_memory *memory)
{
        special->does = (struct stook_slabs_special){ births, shrink, may_go };
        special->huge = huge;
        special->memory = *memory;
        args->slab_bytes = slab_bytes(stook_slabs_stride(args), 2u + args->keep_first,
                                      STOOK_SLAB_BYTES_MAX);
        args->run_slabs = (uint32_t)(STOOK_RUN_BYTES / args->slab_bytes);
        args->run_asks = memory->in;
        if (memory->in)
                args->give_later = leave;
}

int stook_special_init(struct stook_slabs *slabs, struct stook_slabs_args *args, bool huge,
                       const struct stook_slabs_memory *memory)
{
        struct stook_special *special;

        if (STOOK_LIKELY(!huge && !memory->in && !args->dtor))
                return stook_slabs_init(slabs, args);
        special = slabs->special ? stook_special_of(slabs) : stook_meta_bump(sizeof(*special), 0);
        if (!special)
                return -ENOMEM;
        args->special = &special->does;
        if (huge || memory->in)
                choose_runs(special, args, huge, memory);
        else
                special->does = (struct stook_slabs_special){
                        .shrink = stook_special_destruct_empty, .may_go = stook_special_may_go };
        return stook_slabs_init(slabs, args);
}
