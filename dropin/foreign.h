/*
 * Purpose: pointers that are not ours: the allocator that would be here without us gets them.
 */
#ifndef STOOK_FOREIGN_H
#define STOOK_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include "base/compiler.h"

/* Asks the loader for the functions below, once. Any thread. */
void stook_foreign_look_up(void);
/* None of these needs to be fast, and none returns before the pointer is dealt with. */
STOOK_COLD void   stook_foreign_free(void *object);
/* NULL with errno: as the next realloc says. */
STOOK_COLD void  *stook_foreign_realloc(void *object, size_t size);
STOOK_COLD size_t stook_foreign_usable(void *object);

/*
 * operator new found no memory. Returns if the new handler did: then new tries again. Without one
 * it throws bad_alloc.
 */
STOOK_COLD void stook_foreign_no_memory(void);
/*
 * The same of the forms that do not throw. NULL; but where there is a new handler, what the next
 * definition of the operator returns, which tries again and catches what the handler throws.
 */
STOOK_COLD void *stook_foreign_new_nothrow(size_t size, const void *nothrow);
STOOK_COLD void *stook_foreign_new_aligned_nothrow(size_t size, size_t align, const void *nothrow);

/*
 * What fork and the registration of its handlers ask of the loader (fork.c): before the first of
 * them, and before the first dlopen. A fork beside that asks nothing of the loader, which is busy.
 */
void stook_fork_look_up(void) __attribute__((weak, visibility("hidden")));

/* The next dlopen, to which the drop-in's jumps (dlopen_x86_64.S). NULL until found; relaxed. */
extern void *stook_next_dlopen STOOK_HIDDEN;
STOOK_COLD void *stook_find_next_dlopen(void);

#endif
