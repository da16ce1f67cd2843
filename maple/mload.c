/*
 * Purpose: stook_maple_load(), from a key to its entry, without its range. It is the call whose
 * speed matters most.
 *
 * Place: on mnode.h. The walk is that of mplace.c, whose argument holds here, too. In a node the
 * entry is the number of pivots below the key. With AVX-512 that is two compares and a count, for
 * all 15 pivots at once. The walk then has half of the instructions. So the processor gets to the
 * next lookups while this one waits for memory: random lookups take 0.7 of the time among 1,000
 * ranges, and 0.5 among 100,000. The form is chosen when the library is loaded. The wide one is for
 * processors whose clock does not slow down for such instructions: those that have VBMI2, too.
 */
#include "mtree.h"

/* TSan would take the wide compare for a plain read of the head. */
#if defined(__x86_64__) && !MNODE_TSAN
#define HAVE_WIDE 1
#endif

typedef unsigned finder(const struct mnode *node, uint64_t key);

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS struct mnode *step(struct mnode *node, enum mnode_kind kind, unsigned index)
{
        struct mnode *child = mnode_entry(node, kind, index);

        mnode_prefetch(child);
        return child;
}

/* The leaf was perhaps appended to (M5 of mnode.h). The next search sees that. */
static __attribute__((noinline)) void *look_again(struct mnode *leaf, uint64_t key)
{
        unsigned index;
        void *entry;

        do {
                index = mnode_find_wide(leaf, key);
                entry = mnode_entry(leaf, MNODE_LEAF, index);
        } while (index + 1 < MNODE_ENTRIES && mnode_passed(leaf, index, key));
        return entry;
}

ALWAYS void *walk(const struct stook_maple *tree, uint64_t key, finder *find, finder *find_gaps)
{
        uintptr_t root = mtree_root(tree);
        struct mnode *node;
        unsigned height, index;
        void *entry;

        if (MTREE_UNLIKELY(!mroot_is_node(root)))
                return key == 0 ? (void *)root : NULL;
        node = mroot_node(root);
        height = mroot_height(root);
        if (mtree_gaps(tree))
                while (--height)
                        node = step(node, MNODE_INNER_GAPS, find_gaps(node, key));
        else
                while (--height)
                        node = step(node, MNODE_INNER, find(node, key));
        index = find(node, key);
        entry = mnode_entry(node, MNODE_LEAF, index);
        if (MTREE_UNLIKELY(mnode_passed(node, index, key)))
                entry = look_again(node, key);
        return mtree_seen(entry) ? entry : NULL;
}

static void *load_anywhere(const struct stook_maple *tree, uint64_t key)
{
        return walk(tree, key, mnode_find_wide, mnode_find_gaps);
}

#ifdef HAVE_WIDE
#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512bw,avx512dq,popcnt")))

/*
 * The first line has the head, which is no pivot, and pivots 0 to 6. The second line has pivots 7
 * to 14, or, with gaps, pivots 7 and 8 and then entries.
 */
static inline WIDE unsigned below(const struct mnode *node, uint64_t key, unsigned second_line)
{
        const __m512i *line = (const __m512i *)node;
        __m512i keys = _mm512_set1_epi64((long long)key);
        unsigned low = _cvtmask8_u32(_mm512_cmplt_epu64_mask(line[0], keys));
        unsigned high = _cvtmask8_u32(_mm512_cmplt_epu64_mask(line[1], keys));

        return (unsigned)__builtin_popcount(low >> 1 | (high & second_line) << 7);
}

static inline WIDE unsigned find_wide(const struct mnode *node, uint64_t key)
{
        return below(node, key, 0xff);
}

static inline WIDE unsigned find_gaps_wide(const struct mnode *node, uint64_t key)
{
        return below(node, key, 3);
}

static WIDE void *load_wide(const struct stook_maple *tree, uint64_t key)
{
        return walk(tree, key, find_wide, find_gaps_wide);
}

static bool is_wide;                    /* const after the library was loaded */

bool stook_mload_choose(bool wide)
{
        __builtin_cpu_init();
        is_wide = wide && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi2");
        return is_wide;
}

static __attribute__((constructor)) void choose(void)
{
        stook_mload_choose(true);
}

static inline void *load(const struct stook_maple *tree, uint64_t key)
{
        return MTREE_LIKELY(is_wide) ? load_wide(tree, key) : load_anywhere(tree, key);
}
#else
bool stook_mload_choose(bool wide)
{
        (void)wide;
        return false;
}

static inline void *load(const struct stook_maple *tree, uint64_t key)
{
        return load_anywhere(tree, key);
}
#endif

STOOK_PUBLIC void *stook_maple_load(struct stook_maple *tree, uint64_t key)
{
        bool entered;
        void *entry;

        if (MTREE_LIKELY(mtree_flags(tree) & (STOOK_MAPLE_RCU | STOOK_MAPLE_EXTERNAL_LOCK)))
                return load(tree, key);
        entered = stook_mtree_enter(tree);
        entry = load(tree, key);
        stook_mtree_leave(tree, entered);
        return entry;
}
