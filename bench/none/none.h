/*
 * bench/none/none.h - an object cache as the kernel had it before sheaves
 *
 * Purpose: the rival of table 1.1, "none". Each CPU has one slab whose free list it pops and pushes
 * directly, and a few partial slabs behind it; a free of an object of any other slab goes to that
 * slab by a compare-and-swap. Made from the description of SLUB as it was up to Linux 6.17, on the
 * library's pages (spans, descriptors, pagemap), with slabs of the same size. Free lists run
 * through the objects (none_slab.h); the library's slabs do without.
 *
 * Two forms of the same front end, which differ in how an object leaves and enters the CPU's list:
 *   CAS   a double-word compare-and-swap of {first object, transaction number}, unlocked, as in
 *         the kernel. There the address is relative to the CPU's segment register, so that the
 *         instruction runs on the CPU whose data it changes; here a restartable sequence around it
 *         takes the segment register's place.
 *   RSEQ  a restartable sequence whose commit is the store of the first object: no transaction
 *         number, no compare-and-swap. The stronger rival.
 * What a program would do that has no sections, a locked compare-and-swap, is slower than both.
 *
 * Left out: NUMA, debugging, and the preemption that the kernel switches off. x86-64 only.
 */
#ifndef NONE_H
#define NONE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct none_cache;

/* @slab_bytes: 0: as the library's slabs. NULL: no memory, or no restartable sequences here. */
struct none_cache *none_create(size_t object_bytes, size_t slab_bytes, bool random_order);
/* False: objects are missing, or there is a fault in the slabs. No other thread may be inside. */
bool none_destroy(struct none_cache *cache);

void *none_cas_alloc(struct none_cache *cache);
void  none_cas_free(struct none_cache *cache, void *object);
void *none_rseq_alloc(struct none_cache *cache);
void  none_rseq_free(struct none_cache *cache, void *object);

/*
 * none_charge.c: the same for objects that are charged to a group: each by an atomic instruction on
 * its CPU's precharge, and back, as the kernel charged them in front of either front end. The
 * group's address goes behind the object, for which the cache must have room: objects of
 * @object_bytes are used up to 8 bytes before their end.
 */
void *none_cas_alloc_charged(struct none_cache *cache);
void  none_cas_free_charged(struct none_cache *cache, void *object);
void *none_rseq_alloc_charged(struct none_cache *cache);
void  none_rseq_free_charged(struct none_cache *cache, void *object);

/*
 * Table 1.2, "before": n objects, by building each new slab's whole free list and walking it. One
 * thread; nothing is locked, as a batch of the kernel's benchmark is a whole slab. False: no
 * memory.
 */
bool none_bulk_alloc(struct none_cache *cache, size_t n, void **objects);
/* Everything back to the slabs, and empty slabs to the pages. */
void none_bulk_free(struct none_cache *cache, size_t n, void **objects);

#ifdef __cplusplus
}
#endif
#endif
