/*
 * Purpose: clang's allocation tokens (-fsanitize=alloc-token, clang 22): a compiler gives each
 * allocation a number that goes by the type. Objects whose types hold pointers and objects that are
 * data never share a slab here, so that an overrun or a use after free of the one does not reach
 * the other.
 * Place: called by code that is compiled so, in place of entry.c and new_delete.c. Each partition
 *  is a heap (src/heap), which frees and reallocs know by the pagemap. What other code allocates is
 *  in none.
 * Invariants:
 *  I1 tokens with and without pointers are in different partitions. Without -falloc-token-max they
 *     are numbers of 64 bits, the upper half for types with pointers: an even number of partitions
 *     divides them. With it, at most 16, each token has a partition of its own.
 *  I2 a partition that cannot be had (no memory, a callback that holds the list of caches) is
 *     malloc, for that call: allocations do not fail for it.
 * Concurrency: M1: the release of a heap into its place pairs with the acquire of who uses it.
 */
#include <errno.h>
#include <stdlib.h>
#include <stook/heap.h>

#include "base/compiler.h"
#include "cache/cache.h"
#include "foreign.h"
#include "gate/gate.h"
#include "group/group.h"
#include "os/os.h"
#include "report/report.h"

#define MOST    16
#define DEFAULT 2

/* By token, of tokens below MOST; by the token's upper bits. Atomic, M1; NULL: not made. */
static struct stook_heap *by_token[MOST], *by_bits[MOST];
static uint32_t partitions;             /* atomic; 0: not read yet */

static uint32_t read_partitions(void)
{
        const char *value = stook_os_env("STOOK_TOKENS");
        uint32_t n = 0;

        if (!value)
                return DEFAULT;
        for (const char *c = value; *c; c++)
                n = *c < '0' || *c > '9' || n > MOST ? MOST + 1 : n * 10 + (uint32_t)(*c - '0');
        if (n >= 2 && n <= MOST && n % 2 == 0)
                return n;
        stook_os_env_refuse("STOOK_TOKENS", value, "an even number, 2 to 16");
        return DEFAULT;
}

static STOOK_COLD struct stook_heap *make(struct stook_heap **place, const char *kind, unsigned n)
{
        struct stook_heap_args args = { .args_size = sizeof(args) };
        struct stook_heap *heap, *other = NULL;
        char name[STOOK_HEAP_NAME_BYTES];

        if (!stook_gate_is_open() || stook_registry_is_mine())                  /* I2 */
                return NULL;
        if (stook_group_of_process)
                args.group = stook_group_at(stook_group_of_process);
        stook_report_format(name, sizeof(name), "%s-%u", kind, (uint64_t)n);
        heap = stook_heap_create(name, &args);
        if (heap && !__atomic_compare_exchange_n(place, &other, heap, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE)) {          /* M1 */
                stook_heap_destroy(heap);
                return other;
        }
        return heap;
}

/* NULL: malloc's. */
static struct stook_heap *heap_of(uint64_t token)
{
        uint32_t n = __atomic_load_n(&partitions, __ATOMIC_RELAXED);
        struct stook_heap **place, *heap;
        unsigned at;

        if (STOOK_UNLIKELY(!n)) {
                /* The library starts, and with it what it knows of the environment. */
                free(malloc(1));
                n = read_partitions();
                __atomic_store_n(&partitions, n, __ATOMIC_RELAXED);
        }
        at = token < MOST ? (unsigned)token : (unsigned)(((unsigned __int128)token * n) >> 64);
        place = token < MOST ? &by_token[at] : &by_bits[at];
        heap = __atomic_load_n(place, __ATOMIC_ACQUIRE);                        /* M1 */
        return STOOK_LIKELY(heap != NULL) ? heap
                                          : make(place, token < MOST ? "token" : "tokens", at);
}

/* ---- C ---- */

void *__alloc_token_malloc(size_t size, uint64_t token);
void *__alloc_token_calloc(size_t n, size_t size, uint64_t token);
void *__alloc_token_realloc(void *object, size_t size, uint64_t token);
void *__alloc_token_reallocarray(void *object, size_t n, size_t size, uint64_t token);
void *__alloc_token_aligned_alloc(size_t align, size_t size, uint64_t token);
void *__alloc_token_memalign(size_t align, size_t size, uint64_t token);
int __alloc_token_posix_memalign(void **out, size_t align, size_t size, uint64_t token);
void *__alloc_token_valloc(size_t size, uint64_t token);
void *__alloc_token_pvalloc(size_t size, uint64_t token);

STOOK_API void *__alloc_token_malloc(size_t size, uint64_t token)
{
        struct stook_heap *heap = heap_of(token);

        return STOOK_LIKELY(heap != NULL) ? stook_heap_alloc(heap, size) : malloc(size);
}

STOOK_API void *__alloc_token_calloc(size_t n, size_t size, uint64_t token)
{
        struct stook_heap *heap = heap_of(token);

        return STOOK_LIKELY(heap != NULL) ? stook_heap_calloc(heap, n, size) : calloc(n, size);
}

/* An object stays in its partition, whatever the token. */
STOOK_API void *__alloc_token_realloc(void *object, size_t size, uint64_t token)
{
        return object ? realloc(object, size) : __alloc_token_malloc(size, token);
}

STOOK_API void *__alloc_token_reallocarray(void *object, size_t n, size_t size, uint64_t token)
{
        size_t bytes;

        if (STOOK_UNLIKELY(__builtin_mul_overflow(n, size, &bytes))) {
                errno = ENOMEM;
                return NULL;
        }
        return __alloc_token_realloc(object, bytes, token);
}

STOOK_API void *__alloc_token_aligned_alloc(size_t align, size_t size, uint64_t token)
{
        struct stook_heap *heap = heap_of(token);

        return STOOK_LIKELY(heap != NULL) ? stook_heap_aligned_alloc(heap, align, size)
                                          : aligned_alloc(align, size);
}

/* Rounds up, as memalign does. */
STOOK_API void *__alloc_token_memalign(size_t align, size_t size, uint64_t token)
{
        size_t up = 16;

        while (up < align && up <= SIZE_MAX / 4)
                up *= 2;
        return __alloc_token_aligned_alloc(up < align ? align : up, size, token);
}

STOOK_API int __alloc_token_posix_memalign(void **out, size_t align, size_t size, uint64_t token)
{
        int before = errno;
        void *object;

        if (STOOK_UNLIKELY(!align || (align & (align - 1)) || align % sizeof(void *)))
                return EINVAL;
        object = __alloc_token_aligned_alloc(align, size, token);
        errno = before;
        if (STOOK_UNLIKELY(!object))
                return ENOMEM;
        *out = object;
        return 0;
}

STOOK_API void *__alloc_token_valloc(size_t size, uint64_t token)
{
        return __alloc_token_aligned_alloc(stook_os_page_bytes(), size, token);
}

STOOK_API void *__alloc_token_pvalloc(size_t size, uint64_t token)
{
        size_t page = stook_os_page_bytes();

        if (STOOK_LIKELY(size <= PTRDIFF_MAX))
                size = size ? (size + page - 1) & -page : page;
        return __alloc_token_aligned_alloc(page, size, token);
}

/* ---- C++: as new_delete.c ---- */

#define NEW(name, label, ...) void *name(__VA_ARGS__) __asm__("__alloc_token_" label)

NEW(token_new, "_Znwm", size_t size, uint64_t token);
NEW(token_new_array, "_Znam", size_t size, uint64_t token);
NEW(token_new_nothrow, "_ZnwmRKSt9nothrow_t", size_t size, const void *nothrow, uint64_t token);
NEW(token_new_array_nothrow, "_ZnamRKSt9nothrow_t", size_t size, const void *nothrow,
    uint64_t token);
NEW(token_new_aligned, "_ZnwmSt11align_val_t", size_t size, size_t align, uint64_t token);
NEW(token_new_array_aligned, "_ZnamSt11align_val_t", size_t size, size_t align, uint64_t token);
NEW(token_new_aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", size_t size, size_t align,
    const void *nothrow, uint64_t token);
NEW(token_new_array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t", size_t size,
    size_t align, const void *nothrow, uint64_t token);

STOOK_API void *token_new(size_t size, uint64_t token)
{
        void *object;

        while (STOOK_UNLIKELY(!(object = __alloc_token_malloc(size, token))))
                stook_foreign_no_memory();
        return object;
}

STOOK_API void *token_new_array(size_t size, uint64_t token)
{
        return token_new(size, token);
}

STOOK_API void *token_new_aligned(size_t size, size_t align, uint64_t token)
{
        void *object;

        while (STOOK_UNLIKELY(!(object = __alloc_token_aligned_alloc(align, size, token))))
                stook_foreign_no_memory();
        return object;
}

STOOK_API void *token_new_array_aligned(size_t size, size_t align, uint64_t token)
{
        return token_new_aligned(size, align, token);
}

STOOK_API void *token_new_nothrow(size_t size, const void *nothrow, uint64_t token)
{
        void *object = __alloc_token_malloc(size, token);

        return STOOK_LIKELY(object != NULL) ? object : stook_foreign_new_nothrow(size, nothrow);
}

STOOK_API void *token_new_array_nothrow(size_t size, const void *nothrow, uint64_t token)
{
        return token_new_nothrow(size, nothrow, token);
}

STOOK_API void *token_new_aligned_nothrow(size_t size, size_t align, const void *nothrow,
                                          uint64_t token)
{
        void *object = __alloc_token_aligned_alloc(align, size, token);

        return STOOK_LIKELY(object != NULL) ? object
                : stook_foreign_new_aligned_nothrow(size, align, nothrow);
}

STOOK_API void *token_new_array_aligned_nothrow(size_t size, size_t align, const void *nothrow,
                                                uint64_t token)
{
        return token_new_aligned_nothrow(size, align, nothrow, token);
}
