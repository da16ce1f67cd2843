/*
 * Purpose: what stands between the drop-in's hot paths (hot_x86_64.S, hot_aarch64.S) and the rest.
 */
#ifndef STOOK_DROP_IN_HOT_H
#define STOOK_DROP_IN_HOT_H

#include <stddef.h>

void *malloc(size_t size);
void  free(void *object);

/* malloc without errno: stook_malloc_object. */
void *stook_hot_object(size_t size);
/*
 * free of an object of ours that starts there; @index_by_8: 8 times the index of its cache. It
 * jumps into free, which has the index in the register of a third argument. So the second one is
 * unused.
 */
void stook_hot_free_known(void *object, size_t unused, size_t index_by_8);

/*
 * Where the common case does not hold. entry.c: a free of NULL, a large or foreign object, misuse,
 * or a slot that has no room. @by: enum stook_entry_point; the assembly sets it where it misses.
 */
void  stook_drop_in_free_miss(void *object, unsigned by);
void  stook_drop_in_free_sized_miss(void *object, size_t size, unsigned by);
void *stook_drop_in_calloc_miss(size_t n, size_t size);
void *stook_aligned_alloc_miss(size_t align, size_t size);
void *stook_memalign_miss(size_t align, size_t size);
int   stook_posix_memalign_miss(void **out, size_t align, size_t size);
/* new_delete.c: operator new and new[]. */
void *stook_new_miss(size_t size, unsigned by);
void *stook_new_nothrow_miss(size_t size, const void *nothrow, unsigned by);
void *stook_new_aligned_miss(size_t size, size_t align, unsigned by);
void *stook_new_aligned_nothrow_miss(size_t size, size_t align, const void *nothrow, unsigned by);

#endif
