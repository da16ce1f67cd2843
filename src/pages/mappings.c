/*
 * Purpose: the bound of mappings, see mappings.h.
 */
#include <stdint.h>

#include "pages/mappings.h"

static uint32_t booked;                 /* atomic, relaxed: I1 */

bool stook_mappings_book(unsigned mappings)
{
        if (__atomic_add_fetch(&booked, mappings, __ATOMIC_RELAXED) <= STOOK_MAPPINGS_MOST)
                return true;
        stook_mappings_unbook(mappings);
        return false;
}

void stook_mappings_unbook(unsigned mappings)
{
        __atomic_fetch_sub(&booked, mappings, __ATOMIC_RELAXED);
}
