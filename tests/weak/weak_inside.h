/*
 * Purpose: accesses to memory in a run of weak.h. @bytes: 1, 2, 4 or 8; @order: of <stdatomic.h>.
 */
#ifndef STOOK_TESTS_WEAK_INSIDE_H
#define STOOK_TESTS_WEAK_INSIDE_H

#include "weak.h"

/* Not atomic. */
void weak_plain(const void *at, bool writes);

uint64_t weak_load(const volatile void *at, unsigned bytes, int order);
void weak_store(volatile void *at, unsigned bytes, uint64_t bits, int order);
/* Return: what was there. */
enum weak_how { WEAK_SET, WEAK_ADD, WEAK_SUB, WEAK_OR, WEAK_AND, WEAK_XOR };
uint64_t weak_change(volatile void *at, unsigned bytes, enum weak_how how, uint64_t by, int order);
bool weak_exchange_if(volatile void *at, unsigned bytes, uint64_t *expected, uint64_t desired,
                      int order, int failing);
void weak_fence(int order);

static inline uint64_t weak_changed(uint64_t was, enum weak_how how, uint64_t by)
{
        switch (how) {
        case WEAK_SET: return by;
        case WEAK_ADD: return was + by;
        case WEAK_SUB: return was - by;
        case WEAK_OR:  return was | by;
        case WEAK_AND: return was & by;
        default:       return was ^ by;
        }
}

#endif
