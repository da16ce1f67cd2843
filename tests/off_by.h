/*
 * For tests of alignment: the compiler may take it from a declaration (alloc_align), and leave an
 * assertion out that says the same. What goes through here it does not know.
 */
#ifndef TEST_OFF_BY_H
#define TEST_OFF_BY_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes @object lies behind a multiple of @align. */
static inline size_t off_by(const void *object, size_t align)
{
        __asm__("" : "+r"(object));
        return (uintptr_t)object % align;
}

#endif
