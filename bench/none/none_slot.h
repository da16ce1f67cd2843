/*
 * bench/none/none_slot.h - a CPU's part of a cache of the older kind, and the sections on it
 *
 * Purpose: what the fast paths touch, and nothing else. The pieces of a section are the library's
 * (<stook/section.h>): slots are counted by the same index, and lie as far apart.
 * Place: none_fast.c (pop, push), none_miss.c (exchange).
 *
 * Invariants:
 *  I1 `first` changes in a section on this slot. The holder of `lock` changes it, too, while
 *     `first` is NONE and `span` is NULL: then no pop and no push gets as far as a store.
 *  I2 base and key are those of the slab whose objects the list holds; `span` is that slab's, or
 *     NULL.
 *  I3 `partial` and `partials` are the lock holder's.
 */
#ifndef NONE_SLOT_H
#define NONE_SLOT_H

#include "none.h"
#include "none_slab.h"
#include "section/section_hot.h"

#if !defined(STOOK_SECTION_V1) || !defined(__x86_64__)
#error "the sections of bench/none are written for x86-64"
#endif

struct none_slot {
        uint64_t first;                 /* place of the CPU's first object (none_slab.h), or NONE */
        uint64_t transaction;           /* CAS form: counts its changes */
        char    *base;
        uint64_t key;
        struct stook_span *span;        /* whose objects may be pushed here */
        uint32_t lock;                  /* atomic: slow calls; only tried */
        uint32_t partials;
        struct stook_link *partial;     /* slabs with free objects, by their spans' link */
        int64_t precharge
                __attribute__((aligned(64))); /* atomic: bytes charged in advance (none_charge.c) */
} __attribute__((aligned(64)));

#define NONE_FIRST       "0"
#define NONE_TRANSACTION "8"
#define NONE_BASE        "16"
#define NONE_KEY         "24"
#define NONE_SPAN        "32"

_Static_assert(offsetof(struct none_slot, transaction) == 8, "used in assembly");
_Static_assert(offsetof(struct none_slot, base) == 16, "used in assembly");
_Static_assert(offsetof(struct none_slot, key) == 24, "used in assembly");
_Static_assert(offsetof(struct none_slot, span) == 32, "used in assembly");

struct none_cache {
        uintptr_t slots; /* address of slot 0; the others are 1 << STOOK_SLOT_SHIFT apart */
        uint64_t  index;                /* the cache's, in the pagemap */
        uint64_t  link_offset;          /* as slabs.link_offset */
        unsigned  partials_max;         /* slabs kept for each CPU besides the one in use */
        struct stook_cache *cache;      /* lends index and geometry; it has no slab */
        size_t    bytes;                /* of the slots */
        struct none_slab *bulk;         /* none_bulk.c: the slab to take from, and its list */
        uint64_t  bulk_first;
        /* Atomic: bytes charged to the one group there is, precharges among them. */
        int64_t charged;
        size_t    object_bytes;
        struct none_slabs slabs;
};

/* Both sections begin so: r9 becomes the slot. */
#define NONE_SECTION_BEGIN \
        STOOK_SECTION_ARM \
        "1:\n\t" \
        STOOK_SECTION_SLOT \
        "leaq (%%r10,%[slots]), %%r9\n\t"

/*
 * next = place behind %[object], decoded; r11 is clobbered. Offset of the link in a register, as in
 * the kernel.
 */
#define NONE_SECTION_NEXT(next) \
        "leaq (%[object],%[link]), %%r11\n\t" \
        "movq (%%r11), " next "\n\t" \
        "bswapq %%r11\n\t" \
        "xorq " NONE_KEY "(%%r9), " next "\n\t" \
        "xorq %%r11, " next "\n\t"

/* %[object]'s link becomes `next`, which is lost. */
#define NONE_SECTION_LINK(next) \
        "leaq (%[object],%[link]), %%r11\n\t" \
        "movq %%r11, %%r10\n\t" \
        "bswapq %%r10\n\t" \
        "xorq " NONE_KEY "(%%r9), %%r10\n\t" \
        "xorq " next ", %%r10\n\t" \
        "movq %%r10, (%%r11)\n\t"

#define NONE_SECTION_CLOBBERS "r9", "r10", "r11", "memory", "cc"

/* Answers of a push. */
enum none_push { NONE_PUSH_MISS, NONE_PUSHED, NONE_PUSH_DOUBLE };

/* NULL: the list is empty, or the section was cut short. */
STOOK_INLINE void *none_section_pop(const struct none_cache *cache)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        void *object;

        if (STOOK_UNLIKELY(!area))
                return NULL;
        __asm__ volatile(STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("object") STOOK_SECTION_GO("5f"))
                                 NONE_SECTION_BEGIN
                         "movq " NONE_FIRST "(%%r9), %%r10\n\t"
                         "cmpq $0xffff, %%r10\n\t"
                         "jae 4b\n\t"
                         "movq " NONE_BASE "(%%r9), %[object]\n\t"
                         "leaq (%[object],%%r10,8), %[object]\n\t" NONE_SECTION_NEXT(
                                 "%%r10") "movq %%r10, " NONE_FIRST "(%%r9)\n\t"
                                          "2:\n\t"
                                          "5:\n\t"
                         : [object] "=&r"(object)
                         : STOOK_SECTION_INPUTS(self, area), [slots] "r"(cache->slots),
                           [link] "r"(cache->link_offset)
                         : NONE_SECTION_CLOBBERS);
        return object;
}

/*
 * The commit is the compare-and-swap, which cannot fail here: the kernel tests it all the same, and
 * so do we.
 */
STOOK_INLINE void *none_section_pop_cas(const struct none_cache *cache)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        void *object;

        if (STOOK_UNLIKELY(!area))
                return NULL;
        __asm__ volatile(STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("object") STOOK_SECTION_GO("5f"))
                                 NONE_SECTION_BEGIN
                         "movq " NONE_TRANSACTION "(%%r9), %%rdx\n\t"
                         "movq " NONE_FIRST "(%%r9), %%rax\n\t"
                         "cmpq $0xffff, %%rax\n\t"
                         "jae 4b\n\t"
                         "movq " NONE_BASE "(%%r9), %[object]\n\t"
                         "leaq (%[object],%%rax,8), %[object]\n\t" NONE_SECTION_NEXT(
                                 "%%rbx") "leaq 1(%%rdx), %%rcx\n\t"
                                          "cmpxchg16b " NONE_FIRST "(%%r9)\n\t"
                                          "2:\n\t"
                                          "jne 4b\n\t"
                                          "5:\n\t"
                         : [object] "=&r"(object)
                         : STOOK_SECTION_INPUTS(self, area), [slots] "r"(cache->slots),
                           [link] "r"(cache->link_offset)
                         : NONE_SECTION_CLOBBERS, "rax", "rbx", "rcx", "rdx");
        return object;
}

/* The kernel's one check: the object is not on top of the list already. */
STOOK_INLINE enum none_push none_section_push(const struct none_cache *cache,
                                              struct stook_span *span, uint64_t place, void *object)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t head;

        if (STOOK_UNLIKELY(!area))
                return NONE_PUSH_MISS;
        __asm__ volatile(STOOK_SECTION_DESCRIBE("movl $-1, %k[head]\n\t" STOOK_SECTION_GO("5f"))
                                 NONE_SECTION_BEGIN
                         "cmpq %[span], " NONE_SPAN "(%%r9)\n\t"
                         "jne 4b\n\t"
                         "movq " NONE_FIRST "(%%r9), %[head]\n\t"
                         "cmpq %[place], %[head]\n\t"
                         "je 5f\n\t" NONE_SECTION_LINK("%[head]") "movq %[place], " NONE_FIRST
                                                                  "(%%r9)\n\t"
                                                                  "2:\n\t"
                                                                  "5:\n\t"
                         : [head] "=&r"(head)
                         : STOOK_SECTION_INPUTS(self, area), [slots] "r"(cache->slots),
                           [link] "r"(cache->link_offset), [span] "r"(span), [place] "r"(place),
                           [object] "r"(object)
                         : NONE_SECTION_CLOBBERS);
        if (STOOK_UNLIKELY(head == UINT32_MAX))
                return NONE_PUSH_MISS;
        return STOOK_LIKELY(head != place) ? NONE_PUSHED : NONE_PUSH_DOUBLE;
}

STOOK_INLINE enum none_push none_section_push_cas(const struct none_cache *cache,
                                                  struct stook_span *span, uint64_t place,
                                                  void *object)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t head, next = place;

        if (STOOK_UNLIKELY(!area))
                return NONE_PUSH_MISS;
        __asm__ volatile(STOOK_SECTION_DESCRIBE("movl $-1, %%eax\n\t" STOOK_SECTION_GO("5f"))
                                 NONE_SECTION_BEGIN
                         "movq " NONE_TRANSACTION "(%%r9), %%rdx\n\t"
                         "cmpq %[span], " NONE_SPAN "(%%r9)\n\t"
                         "jne 4b\n\t"
                         "movq " NONE_FIRST "(%%r9), %%rax\n\t"
                         "cmpq %%rbx, %%rax\n\t"
                         "je 5f\n\t" NONE_SECTION_LINK("%%rax") "leaq 1(%%rdx), %%rcx\n\t"
                                                                "cmpxchg16b " NONE_FIRST
                                                                "(%%r9)\n\t"
                                                                "2:\n\t"
                                                                "jne 4b\n\t"
                                                                "5:\n\t"
                         : "=&a"(head), "+b"(next)
                         : STOOK_SECTION_INPUTS(self, area), [slots] "r"(cache->slots),
                           [link] "r"(cache->link_offset), [span] "r"(span), [object] "r"(object)
                         : NONE_SECTION_CLOBBERS, "rcx", "rdx");
        if (STOOK_UNLIKELY(head == UINT32_MAX))
                return NONE_PUSH_MISS;
        return STOOK_LIKELY(head != place) ? NONE_PUSHED : NONE_PUSH_DOUBLE;
}

/* @field of @slot becomes @value, if this thread is on that slot. False: nothing was done. */
STOOK_INLINE bool none_section_exchange(const struct none_cache *cache, struct none_slot *slot,
                                        uint64_t *field, uint64_t value, uint64_t *old)
{
        struct stook_thread_v1 *self = stook_section_self();
        char *area = self->rseq;
        uint64_t seen, there = 1;

        if (STOOK_UNLIKELY(!area))
                return false;
        __asm__ volatile(STOOK_SECTION_DESCRIBE(STOOK_SECTION_ZERO("there") STOOK_SECTION_GO("5f"))
                                 NONE_SECTION_BEGIN "cmpq %[slot], %%r9\n\t"
                                                    "jne 4b\n\t"
                                                    "movq (%[field]), %[seen]\n\t"
                                                    "movq %[value], (%[field])\n\t"
                                                    "2:\n\t"
                                                    "5:\n\t"
                         : [there] "+&r"(there), [seen] "=&r"(seen)
                         : STOOK_SECTION_INPUTS(self, area), [slots] "r"(cache->slots),
                           [slot] "r"(slot), [field] "r"(field), [value] "r"(value)
                         : NONE_SECTION_CLOBBERS);
        *old = seen;
        return there;
}

/* ---- none_bulk.c ---- */

/* What is left of the list of bulk allocations goes back. */
void none_bulk_end(struct none_cache *cache);

/* ---- none_miss.c ---- */

void *none_alloc_miss(struct none_cache *cache, void *(*pop)(const struct none_cache *cache));
void  none_free_miss(struct none_cache *cache, struct stook_span *span, uint64_t place,
                     void *object);
/* Everything the slot has goes back to its slabs. No other thread may be inside. */
void  none_slot_empty(struct none_cache *cache, struct none_slot *slot);
/* An object that is none of the cache's, or free already. */
_Noreturn void none_misuse(const void *object);

#endif
