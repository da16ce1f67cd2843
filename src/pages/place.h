/*
 * Purpose: memory behind address space, and from which node it comes. On one node fresh pages are
 * mapped over it. On several a mapping carries the policy of its node, so it stays, and only its
 * access changes.
 * Place: within the page layer.
 */
#ifndef STOOK_PLACE_H
#define STOOK_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After the topology is known: finds out whether pages can be placed. */
void stook_place_start(void);

/*
 * Asks the system to take the pages of this part, of which none was touched yet, from @node. On a
 * machine with one node it does nothing.
 */
void stook_place(uintptr_t start, size_t bytes, unsigned node);

/* Pages that read as zeros. False: no memory. */
bool stook_place_commit(uintptr_t start, size_t bytes);
/* PROT_NONE again, and no memory. False: it is committed still, with any content. */
bool stook_place_decommit(uintptr_t start, size_t bytes, unsigned node);
/*
 * Fresh pages for what mremap emptied: its old mapping never merges with its neighbours. False: no
 * memory, and it may have no access.
 */
bool stook_place_renew(uintptr_t start, size_t bytes, unsigned node);

#endif
