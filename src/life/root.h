/*
 * Purpose: where readers outside the process begin (`stook info`, `top`, `check`, `tune`, and
 * debuggers): one object with the version of the library, its layout, and the addresses of all that
 * tells about the heap. Such readers copy memory of the process, or read a core. The process does
 * nothing for them, and may have crashed.
 *
 * How it is found: an ELF note of name "Stook", type 1, in each file that has the library in it (a
 * shared library, a static program). Its 8 bytes are the distance from there to stook_root. Notes
 * lie behind the program headers in the first page of the file, which is in cores, too. The symbol
 * stook_root_v1 is for debuggers.
 *
 * Place: const data but for `state`, `page_bytes`, `nodes` (start.c) and the request. A reader
 * reads structures of the library as they are. So it must have been made from the same sources:
 * `layout` has the size of each structure, and the offset of each field that readers use.
 *
 * Why this is safe to read while the process runs:
 *  I1 the memory of descriptors, sheaves, runs of sheaves, caches, aliases and groups is never
 *     unmapped, and serves as the same kind of thing for ever, so a stale pointer is never foreign.
 *  I2 the lists of runs and of blocks of descriptors only grow, at their heads.
 *  I3 a cache is the same one as long as its state is LIVE and `born` is unchanged.
 * Everything else that is read may be old by the time that the next word is read.
 * Concurrency: M1: the release of `state` pairs with a reader's first read: what it says is set.
 */
#ifndef STOOK_ROOT_H
#define STOOK_ROOT_H

#include "barn/sheaf.h"
#include "cache/cache.h"
#include "debug/debug_inside.h"
#include "group/group.h"
#include "heap/heaps.h"
#include "pages/meta.h"
#include "pages/span.h"
#include "slab/slab_state.h"
#include "home/home.h"
#include "process/process.h"
#include "profile/profile.h"
#include "stack/stack.h"

/* ---- requests ---- */
/*
 * What `stook tune` and `stook profile` ask of a running process: one request at a time, in a block
 * of the root that the command writes from outside.
 * Place: request.c answers: all of them in the maintenance thread, which looks twice a second.
 * Those about samples in any ordinary slow call, too: the command writes ASKED into
 * *stook_gate_heap (gate/gate.h), at which each slow call looks anyway. A process that has no such
 * thread and makes no slow call answers nothing.
 *
 * How: the command finds `state` NONE or ANSWERED, writes the block with its ticket, writes ASKED
 * into `state`, and waits for ANSWERED with its ticket in `answered`. No lock reaches from outside.
 * So a second command may write over the first one's request. `sum` is over the whole request, and
 * one that does not add up is refused. A command that finds another ticket says so.
 * Invariants:
 *  R1 a request is done once at most: by the thread that takes `state` from ASKED to TAKEN, of the
 *     process that `process` names: a child of fork finds its parent's block, and leaves it.
 *  R2 a request names its cache by index and `born`, so that it never meets the next cache of an
 *     index.
 * Concurrency: `state` is atomic; M2: the command's store of ASKED comes after the block, for the
 *  system copies in order; the acquire of ASKED pairs with it. The release of ANSWERED comes after
 *  the answer.
 */
enum stook_request_state { STOOK_REQUEST_NONE, STOOK_REQUEST_ASKED, STOOK_REQUEST_ANSWERED,
                           STOOK_REQUEST_TAKEN };
enum stook_request_action { STOOK_REQUEST_TUNE, STOOK_REQUEST_SAMPLE, STOOK_REQUEST_STOP };

struct stook_request {
        uint64_t ticket;                /* the command's, any number */
        uint64_t born;                  /* TUNE: of the cache; R2 */
        uint64_t interval, most, guard; /* SAMPLE: sample/sample_terms.h */
        uint32_t process;               /* R1 */
        uint32_t action;                /* enum stook_request_action */
        uint32_t lifetimes;             /* SAMPLE */
        uint32_t cache_index;           /* TUNE */
        /* TUNE: 0: none; -1: as it is. */
        int32_t  sheaf_capacity, barn_full, barn_empty;
        uint32_t sum;                   /* stook_request_sum() */
        /* From here on the process writes. */
        uint64_t answered;              /* the ticket; M2 */
        int32_t  answer;                /* of stook_cache_tune(), or as in request.c; M2 */
        uint32_t state;                 /* atomic: enum stook_request_state */
};

/* Over all that the command writes before `sum`. */
STOOK_INLINE uint32_t stook_request_sum(const struct stook_request *request)
{
        const unsigned char *byte = (const unsigned char *)request;
        uint32_t sum = 2166136261u;

        for (size_t i = 0; i < offsetof(struct stook_request, sum); i++)
                sum = (sum ^ byte[i]) * 16777619u;
        return sum;
}

/* ---- request.c ---- */
/* Does what was asked, if anything was. By the maintenance thread; takes the registry mutex. */
void stook_request_answer(void);
/* *stook_gate_heap says ASKED. By a slow call, with no lock held. */
void stook_request_answer_in_call(void);
/* A session was started at some instruction: the next slow call empties slots for it. */
void stook_request_empty_slots(void);

/* ---- the root ---- */
#define STOOK_ROOT_MAGIC UINT64_C(0x31746f6f722d6b73)   /* "sk-root1" */
#define STOOK_ROOT_NOTE  "Stook"
#define STOOK_ROOT_NOTE_TYPE 1

/* X(structure, field): what readers use. */
#define STOOK_ROOT_LAYOUT(X) \
        X(stook_cache, front) X(stook_cache, index) X(stook_cache, flags) \
        X(stook_cache, object_size) X(stook_cache, align) X(stook_cache, state) \
        X(stook_cache, references) X(stook_cache, second_index) X(stook_cache, watch) \
        X(stook_cache, born) X(stook_cache, short_name) X(stook_cache, barns) \
        X(stook_cache, slabs) X(stook_cache, counters) X(stook_cache, ctor) \
        X(stook_cache, debug_modes) \
        X(stook_seldom, aliases) X(stook_seldom, name) X(stook_seldom, counters) \
        X(stook_alias, next) X(stook_alias, name) \
        X(stook_front, offset) X(stook_front, config) \
        X(stook_barns, capacity) X(stook_barns, full_limit) X(stook_barns, empty_limit) \
        X(stook_barns, full_wanted) X(stook_barns, line_index) X(stook_barns, node) \
        X(stook_barns, remote) \
        X(stook_barn, full) X(stook_barn, empty) \
        X(stook_slabs, stride) X(stook_slabs, objects) X(stook_slabs, slab_bytes) \
        X(stook_slabs, object_size) X(stook_slabs, min_partial) \
        X(stook_slabs, slabs_peak) X(stook_slabs, objects_peak) \
        X(stook_slabs, reserved) X(stook_slabs, ctor) X(stook_slabs, in_random_order) \
        X(stook_slabs, give_later) X(stook_slabs, node) X(stook_slabs, name) \
        X(stook_slabs_node, partial) X(stook_slabs_node, slabs) \
        X(stook_counters, near) X(stook_counters, far) \
        X(stook_sheaf, word) X(stook_sheaf, rcu_node) X(stook_sheaf, cache_index) \
        X(stook_sheaf, capacity) X(stook_sheaf, owned.link) X(stook_sheaf, owned.moved_node) \
        X(stook_sheaf, objects) \
        X(stook_sheaf_run, next) X(stook_sheaf_run, memory) X(stook_sheaf_run, stride) \
        X(stook_sheaf_run, sheaves) \
        X(stook_line, pair) X(stook_line, rcu_free) X(stook_precharge_line, word) \
        X(stook_remote, sent) X(stook_remote, word) \
        X(stook_regions, base) X(stook_regions, rseq_slots) X(stook_regions, locked_slots) \
        X(stook_regions, index_offset) X(stook_regions, nodes) \
        X(stook_slots_filled, ready) X(stook_slots_filled, lines) \
        X(stook_slots_filled, locked) \
        X(stook_span, start) X(stook_span, bytes) X(stook_span, kind) X(stook_span, state) \
        X(stook_span, node) X(stook_span, own_mapping) X(stook_span, slab) \
        X(stook_span, pair) \
        X(stook_span_block, link) X(stook_span_block, span) \
        X(stook_slab, listed) X(stook_slab, slabs) X(stook_slab, parts) \
        X(stook_slab, pending) X(stook_slab, objects) X(stook_slab, part_count) \
        X(stook_slab, node) \
        X(stook_meta_range, base) X(stook_meta_range, bump) X(stook_meta_range, state) \
        X(stook_group, parent) X(stook_group, id) X(stook_group, state) \
        X(stook_group, references) X(stook_group, limit) X(stook_group, name) \
        X(stook_group, charged) X(stook_group, peak) X(stook_group, limit_events) \
        X(stook_group, refusals) \
        X(stook_heap, index) X(stook_heap, state) X(stook_heap, group) X(stook_heap, name) \
        X(stook_heap, next) X(stook_heap, limit) X(stook_heap, bytes) X(stook_heap, peak) \
        X(stook_heap, large_bytes) X(stook_heap, refusals) X(stook_heap, spilled) \
        X(stook_option_state, name) X(stook_option_state, value) X(stook_option_state, source) \
        X(stook_profile_state, lifetimes) X(stook_profile_bucket, windows) \
        X(stook_profile_pair, lives) X(stook_stack_module, file) \
        X(stook_profile_life, stack) X(stook_stack, frames) X(stook_debug_tail, tracks) \
        X(stook_debug, tail)

/* Size of the structure, offset of the field. */
#define STOOK_ROOT_LAYOUT_OF(structure, field) \
        (uint16_t)sizeof(struct structure), (uint16_t)offsetof(struct structure, field),

#define STOOK_ROOT_COUNT_OF(structure, field) + 2
enum { STOOK_ROOT_LAYOUT_COUNT = 0 STOOK_ROOT_LAYOUT(STOOK_ROOT_COUNT_OF) };

/* The kinds of spans that a reader tells apart. */
#define STOOK_ROOT_SPAN_KINDS \
        (STOOK_SPAN_SLAB | STOOK_SPAN_LARGE << 8 | STOOK_SPAN_FREE << 16 | STOOK_SPAN_MOVING << 24)

enum stook_root_state { STOOK_ROOT_NOT_STARTED, STOOK_ROOT_STARTED };

/* The first four fields stay as they are in all versions. */
struct stook_root {
        uint64_t magic;
        uint32_t root_bytes;            /* sizeof(struct stook_root) */
        uint32_t layout_count;          /* STOOK_ROOT_LAYOUT_COUNT */
        char     version[16];           /* STOOK_VERSION */
        uint32_t state;                 /* M1; atomic: enum stook_root_state */
        uint32_t page_bytes;
        uint32_t nodes;
        uint32_t counters;              /* STOOK_STAT_COUNT */
        uint32_t span_block;            /* STOOK_SPAN_BLOCK */
        uint32_t meta_ranges;           /* STOOK_META_RANGES */
        uint32_t span_kinds;            /* STOOK_ROOT_SPAN_KINDS */
        struct stook_cache *const *caches;
        const uint32_t *caches_used;
        struct stook_sheaf_run *const *sheaf_runs;
        const struct stook_sheaf *sheaf_zero;
        struct stook_link *const *span_blocks;
        const struct stook_meta_range *meta;
        const struct stook_regions *regions;
        const struct stook_slots_filled *filled;
        struct stook_group *const *groups;
        const uint32_t *groups_used;
        const uint16_t *group_of_process;
        struct stook_heap *const *heaps;
        const uint32_t *maintenance_process;
        const uint32_t *huge_dear;      /* see pages/purge.h */
        const uint64_t *large_debug;    /* debug modes of large objects: watch/watch.h */
        uint32_t *const *gate_heap;     /* see gate/gate.h */
        const struct stook_option_state *options;       /* [STOOK_OPTIONS] */
        const struct stook_profile_state *profile;
        struct stook_profile_bucket *const *profile_buckets;    /* [STOOK_PROFILE_CHAINS] */
        struct stook_profile_pair *const *profile_pairs;        /* likewise */
        char *const *stack_blocks;      /* [STOOK_STACK_BLOCKS] */
        const struct stook_stack_module *stack_modules;         /* [STOOK_STACK_MODULES] */
        const uint32_t *stack_modules_made;
        struct stook_request request;
        uint16_t layout[STOOK_ROOT_LAYOUT_COUNT];
};

extern struct stook_root stook_root STOOK_HIDDEN;

/* The library is up: readers find what they need. By the thread that starts it. */
void stook_root_start(void);

#endif
