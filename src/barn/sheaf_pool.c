/*
 * Purpose: memory of sheaves, by power-of-two size, shared by all caches. Sheaves are carved from
 * runs of metadata memory, one size in a run. A run is never given back and never changes its size,
 * so a stale pointer to a sheaf reads a sheaf for ever. The list of runs is what statistics and a
 * fork's child walk: it finds every sheaf, wherever it is.
 *
 * Place: called by barn, and by home, prefill and rcu, which make sheaves of their own; takes
 * memory from pages/meta.h.
 * Invariants:
 *  I1 a sheaf on a free stack has size 0, counts 0 and cache_index 0.
 *  I2 runs are only ever added, at the head of the list.
 *  I3 a sheaf serves one node for ever, the one for which its run was carved, by a thread that was
 *     there as a rule: it touched the pages first, so that the system took them from that node.
 * Concurrency: any thread, any instruction. Free stacks are tagged stacks; M1: the release that
 *  lists a run pairs with the acquire of a walk, so that a walker sees initialised sheaves.
 * Failure: NULL.
 */
#include "barn/sheaf.h"
#include "base/inject.h"
#include "os/os.h"
#include "pages/meta.h"

/* Pointers: 32 bytes (4 objects) to 512 KiB (the largest capacity). */
#define SIZE_SHIFT_MIN 5
#define SIZE_SHIFT_MAX 19
#define RUN_BYTES 4032                  /* 63 lines: see carve */
/* Of sheaves of many caches: the RCU implementation may overwrite the word with their node. */
#define MIXED_NODE 0
#define SIZES (SIZE_SHIFT_MAX - SIZE_SHIFT_MIN + 1)

/*
 * See carve. With a sheaf's header no more than what lies between two sheaves.
 * Not 32: the inlined pair then costs half as much again, and it is not known
 * why.
 */
#define WORD_OFFSET ((size_t)16)

_Static_assert(WORD_OFFSET + sizeof(struct stook_sheaf) <= STOOK_CACHELINE,
               "the header lies between two sheaves");

/* I3. Those of nodes that the machine has not are never touched. */
static struct {
        struct stook_tagged_stack stack STOOK_ALIGNED(STOOK_CACHELINE);
} idle[STOOK_NODES_MAX][SIZES] STOOK_MOSTLY_UNUSED;

struct stook_sheaf_run *stook_sheaf_runs;

const struct stook_sheaf stook_sheaf_zero STOOK_ALIGNED(STOOK_CACHELINE) = { 0 };

static unsigned size_of_capacity(unsigned capacity)
{
        size_t   bytes = (size_t)capacity * sizeof(void *);
        unsigned shift = SIZE_SHIFT_MIN;

        while ((size_t)1 << shift < bytes)
                shift++;
        return shift - SIZE_SHIFT_MIN;
}

unsigned stook_sheaf_round_capacity(unsigned wanted)
{
        unsigned bytes = 1u << (size_of_capacity(wanted) + SIZE_SHIFT_MIN);
        unsigned fits = bytes / (unsigned)sizeof(void *);

        return fits < STOOK_SHEAF_CAPACITY_MAX ? fits : STOOK_SHEAF_CAPACITY_MAX;
}

/*
 * A new run. Its first sheaf is the caller's, the others go to the free stack.
 *
 * Sheaves stand a cache line further apart than what their pointers take, and runs are a little
 * smaller than a page, so that they do not begin at page starts. Otherwise the words of sheaves
 * would all have the same low twelve address bits. Processors that compare only those bits take a
 * load of one sheaf's word for a load of another's that was just stored (malloc and free of two
 * sizes in turn: 7.0 ns a pair instead of 3.9 on a Zen 5).
 * Slots' lines are at multiples of 64 in each of their pages, and begin with the pointer to main.
 * So no sheaf's word is at such an address. It would share its twelve bits with some cache's
 * pointer, perhaps its own cache's (one such size: 15.3 cycles instead of 13.3). Headers lie in the
 * line between two sheaves, so a capacity is a power of two.
 */
static struct stook_sheaf *carve(unsigned size, unsigned node)
{
        size_t stride = ((size_t)1 << (size + SIZE_SHIFT_MIN)) + STOOK_CACHELINE;
        size_t bytes = stride < RUN_BYTES ? RUN_BYTES / stride * stride : stride;
        struct stook_sheaf_run *run = stook_meta_bump(sizeof(*run), 0);
        char *memory;

        if (!run)
                return NULL;
        memory = stook_meta_bump(bytes, 0);
        if (!memory)
                return NULL;
        run->memory = memory + WORD_OFFSET;
        run->stride = (uint32_t)stride;
        run->sheaves = (uint32_t)(bytes / stride);
        /* Listed before any of its sheaves can be used: a walk finds all that are. */
        run->next = __atomic_load_n(&stook_sheaf_runs, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&stook_sheaf_runs, &run->next, run, true,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                ;
        for (uint32_t i = run->sheaves - 1; i > 0; i--) {
                struct stook_sheaf *s = (struct stook_sheaf *)(run->memory + i * stride);

                stook_tagged_stack_push(&idle[node][size].stack, &s->owned.link);
        }
        return (struct stook_sheaf *)run->memory;
}

/*
 * Of no cache yet. NULL: no memory; or @capacity is 0, because a tuner ended the cache's sheaves
 * since the caller asked whether it has any.
 */
static struct stook_sheaf *take(unsigned capacity, unsigned node)
{
        unsigned size = size_of_capacity(capacity);
        struct stook_link *link;
        struct stook_sheaf *s;

        if (STOOK_UNLIKELY(!capacity) || STOOK_INJECT_EVERY(sheaf_fail_every))
                return NULL;
        link = stook_tagged_stack_pop(&idle[node][size].stack);
        s = link ? stook_container_of(link, struct stook_sheaf, owned.link) : carve(size, node);
        if (!s)
                return NULL;
        __atomic_store_n(&s->capacity, (uint16_t)capacity, __ATOMIC_RELAXED);
        __atomic_store_n(&s->bound, capacity, __ATOMIC_RELAXED);
        stook_sheaf_set_moved(s, 0, node);
        return s;
}

struct stook_sheaf *stook_sheaf_new(unsigned cache_index, unsigned capacity, unsigned node,
                                    struct stook_counters *counters)
{
        struct stook_sheaf *s = take(capacity, node);

        if (!s)
                return NULL;
        /* Last: a walk that sees the index sees zero counts (I1), or those of uses after this. */
        __atomic_store_n(&s->cache_index, (uint16_t)cache_index, __ATOMIC_RELEASE);
        stook_count(counters, STOOK_STAT_sheaf_alloc, 1);
        return s;
}

struct stook_sheaf *stook_sheaf_new_mixed(unsigned capacity)
{
        return take(capacity, MIXED_NODE);
}

/* An empty sheaf's counts go to the cache's. */
static void fold(struct stook_sheaf *s, struct stook_counters *counters)
{
        uint64_t pops = stook_word_pops(s->word), pushes = pops - (uint64_t)stook_sheaf_moved(s);

        stook_count(counters, STOOK_STAT_alloc_fastpath, pops);
        if (pushes)                     /* or a far counter is touched for nothing */
                stook_count(counters, STOOK_STAT_free_fastpath, pushes);
        __atomic_store_n(&s->word, 0, __ATOMIC_RELAXED);
        stook_sheaf_set_moved(s, 0, stook_sheaf_node(s));
}

static void give(struct stook_sheaf *s, unsigned node)
{
        stook_tagged_stack_push(&idle[node][size_of_capacity(s->capacity)].stack, &s->owned.link);
}

void stook_sheaf_delete(struct stook_sheaf *s, struct stook_counters *counters)
{
        unsigned node = stook_sheaf_node(s);

        __atomic_store_n(&s->cache_index, 0, __ATOMIC_RELAXED);
        fold(s, counters);
        stook_count(counters, STOOK_STAT_sheaf_free, 1);
        give(s, node);
}

void stook_sheaf_begin_rcu(struct stook_sheaf *s, struct stook_counters *counters)
{
        __atomic_store_n(&s->rcu_node, STOOK_SHEAF_RCU | stook_sheaf_node(s), __ATOMIC_RELAXED);
        fold(s, counters);
}

void stook_sheaf_end_rcu(struct stook_sheaf *s, struct stook_counters *counters)
{
        unsigned size = stook_sheaf_size(s), node = s->rcu_node & ~STOOK_SHEAF_RCU;

        stook_count(counters, STOOK_STAT_free_rcu_sheaf, size);
        stook_sheaf_set_moved(s, size, node);
        __atomic_store_n(&s->bound, s->capacity, __ATOMIC_RELAXED);
}

void stook_sheaf_end_mixed(struct stook_sheaf *s)
{
        __atomic_store_n(&s->word, 0, __ATOMIC_RELAXED);
        stook_sheaf_set_moved(s, 0, MIXED_NODE);
        give(s, MIXED_NODE);
}

void stook_sheaf_walk(void (*each)(struct stook_sheaf *sheaf, unsigned cache_index, void *data),
                      void *data)
{
        struct stook_sheaf_run *run = __atomic_load_n(&stook_sheaf_runs, __ATOMIC_ACQUIRE);

        for (; run; run = run->next)
                for (uint32_t i = 0; i < run->sheaves; i++) {
                        char *memory = run->memory + (size_t)i * run->stride;
                        struct stook_sheaf *s = (struct stook_sheaf *)memory;
                        unsigned index = __atomic_load_n(&s->cache_index, __ATOMIC_ACQUIRE);

                        if (index)
                                each(s, index, data);
                }
}

void stook_sheaf_sum_in(struct stook_sheaf *s, void *data)
{
        uint64_t word = __atomic_load_n(&s->word, __ATOMIC_RELAXED);
        uint64_t size = word & 0xffff, pops = stook_word_pops(word);
        struct stook_sheaf_sums *sums = data;

        if (stook_sheaf_is_rcu(s)) {
                sums->rcu += size;
        } else {
                sums->pops += pops;
                sums->pushes += size + pops - (uint64_t)stook_sheaf_moved(s);
        }
        sums->objects += size;
        sums->sheaves++;
}

void stook_sheaf_sum(unsigned cache_index, struct stook_sheaf_sums *sums)
{
        *sums = (struct stook_sheaf_sums){ 0 };
        stook_sheaf_for_each(cache_index, stook_sheaf_sum_in, sums);
}

struct for_one {
        unsigned index;
        void   (*each)(struct stook_sheaf *sheaf, void *data);
        void    *data;
};

static void for_one(struct stook_sheaf *s, unsigned cache_index, void *data)
{
        struct for_one *one = data;

        if (cache_index == one->index)
                one->each(s, one->data);
}

void stook_sheaf_for_each(unsigned cache_index,
                          void (*each)(struct stook_sheaf *sheaf, void *data), void *data)
{
        stook_sheaf_walk(for_one, &(struct for_one){ cache_index, each, data });
}
