/*
 * A process's address space, as a kernel keeps it: the areas that are mapped, in a maple tree; a
 * call for each of mmap, munmap, brk and the page fault. A model to measure on and to learn the
 * tree's calls from.
 *
 * Areas come from vma_new(), so that a benchmark can bring its own allocator: vma_cache.c is the
 * one on an object cache. Writers hold the tree's lock; faults take none, only the read section of
 * RCU, and then the area's own count, as the kernel's lock of each area does.
 */
#ifndef ADDRESS_SPACE_H
#define ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stook/maple.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAGE UINT64_C(4096)

struct area {
        uint64_t first, last;           /* bytes, both inside; written with the tree's lock held */
        uint64_t offset;                /* of `first` in the file, bytes */
        unsigned char *pages; /* a byte for each page of the file, set by a fault; may be NULL */
        uint32_t faulting;              /* atomic: faults inside; 1 << 31: unmapped */
        uint32_t flags;
        uint64_t room[19];              /* as large as the kernel's, 192 bytes */
};

struct address_space {
        struct stook_maple areas;
        uint64_t low, high;             /* where areas may be */
        uint64_t brk_first, brk_last;   /* the heap; brk_last < brk_first: empty */
};

/* Implemented by vma_cache.c, or by a benchmark of other allocators. NULL: no memory. */
struct area *vma_new(void);
/* Faults may still look at it until their read section ends: it is free after that. */
void vma_delete(struct area *area);

/* 0 or -errno. @flags: of the tree, STOOK_MAPLE_GAPS is added. */
int  address_space_init(struct address_space *space, unsigned flags);
void address_space_end(struct address_space *space);

/* Maps @bytes at the highest address that is free, @pages behind it. Return: 0, *at set; -ENOMEM.
 */
int address_space_map(struct address_space *space, uint64_t bytes, unsigned char *pages,
                      uint64_t *at);
/* The same where the caller says; what was there is unmapped first. -EINVAL, -ENOMEM. */
int address_space_map_fixed(struct address_space *space, uint64_t at, uint64_t bytes,
                            unsigned char *pages);
/* Areas that lie only partly in the range are cut. -EINVAL, -ENOMEM. */
int address_space_unmap(struct address_space *space, uint64_t at, uint64_t bytes);
/* The heap ends at @end. -EINVAL, -ENOMEM. */
int address_space_brk(struct address_space *space, uint64_t end);

/* A page is touched. In a read section. False: nothing is mapped there. */
bool address_space_fault(struct address_space *space, uint64_t at);

/* Every area, in order, must not meet the next; returns how many, -1: they do, or the tree is
 * wrong. */
long address_space_check(struct address_space *space);

#ifdef __cplusplus
}
#endif
#endif
