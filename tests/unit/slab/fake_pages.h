/*
 * Purpose: a page layer, metadata and an os layer for tests of the slab layer alone. Spans are cut
 * first-fit from one arena, and every one must come back. The pages of a span that is given back
 * keep their content, as real ones may. What its descriptor held for the slab is overwritten.
 */
#ifndef FAKE_PAGES_H
#define FAKE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "inspect/validate.h"
#include "pages/purge.h"
#include "pages/span.h"
#include "slab/slab.h"

#define FAKE_PAGE  4096u
#define FAKE_PAGES 16384u               /* 64 MiB of address space */

extern char *fake_arena;
extern long fake_fail_from; /* the n-th take from now fails, and all after it; 0: none */
extern size_t fake_take_max;            /* takes of more bytes fail; 0: none */
extern unsigned fake_walks;             /* over all descriptors */
extern void (*fake_unmake)(void);       /* called while a slab ends; NULL: nothing is */
extern void (*fake_pause)(void);        /* called where the layer pauses; NULL: nothing is */

void   fake_start(void);                /* once for each process; installs sleeping on locks */
size_t fake_spans_taken(void);
/* A report of the layer below test: text of the last one, and how many since the last call. */
const char *fake_report(unsigned *count);

struct stook_slabs *fake_source(unsigned cache_index, size_t size, size_t align, bool random,
                                void (*ctor)(void *, void *), void *ctor_data);
/* All is empty: every slab goes back. Fails the test if one does not. */
void fake_source_end(struct stook_slabs *slabs);

#endif
