/*
 * Purpose: which sizes malloc knows, and how many objects of each a slot keeps.
 * Invariants:
 *  I1 the bytes of a class are a multiple of 16, and of every power of two up to the page size that the size asked
 *     for is a multiple of: aligned requests need no classes of their own (malloc_aligned.c).
 *  I2 main and spare of a slot hold at most STOOK_CLASS_SLOT_BYTES of a class and, all classes together, at most
 *     1.5 MiB: what CPUs keep is bounded, whatever the program's mix of sizes.
 */
#include <string.h>
#include "barn/barn.h"
#include "cache/cache_account.h"
#include "malloc/malloc.h"

#define DOUBLING(n) (n) / 4 * 5, (n) / 4 * 6, (n) / 4 * 7, (n) * 2

const uint32_t stook_class_bytes[STOOK_CLASSES] = {
        16, 32, 48, 64, 80, 96, 112, 128,
        DOUBLING(128), DOUBLING(256), DOUBLING(512), DOUBLING(1024), DOUBLING(2048), DOUBLING(4096),
        DOUBLING(8192), DOUBLING(16384), DOUBLING(32768), DOUBLING(65536),
};

/* O1(c): class c, once; O2 and so on: for as many entries of 16 bytes. */
#define O1(c) c
#define O2(c) O1(c), O1(c)
#define O4(c) O2(c), O2(c)
#define O8(c) O4(c), O4(c)
#define O16(c) O8(c), O8(c)
#define O32(c) O16(c), O16(c)

const uint8_t stook_class_of[STOOK_CLASS_TABLE_MAX / 16 + 1] = {
        O1(0),                                                          /* size 0 */
        O1(0), O1(1), O1(2), O1(3), O1(4), O1(5), O1(6), O1(7),         /* up to 128 by 16 */
        O2(8), O2(9), O2(10), O2(11),                                   /* up to 256 by 32 */
        O4(12), O4(13), O4(14), O4(15),                                 /* up to 512 by 64 */
        O8(16), O8(17), O8(18), O8(19),                                 /* up to 1024 by 128 */
        O16(20), O16(21), O16(22), O16(23),                             /* up to 2048 by 256 */
        O32(24), O32(25), O32(26), O32(27),                             /* up to 4096 by 512 */
};

uintptr_t stook_class_line[STOOK_CLASS_TABLE_MAX / 16 + 1];

/*
 * Twice the default of caches for sizes up to 512 bytes, of which programs use most: a batch of 64 then stays in the
 * slot. To make room for that, few above 2.5 KiB; the default by size in between, or as many as I2 allows. None above
 * 32 KiB: there the first touch of an object costs more than the way to its slab. The sum over all classes, main and
 * spare, is 1.49 MiB.
 */
unsigned stook_class_capacity(unsigned class)
{
        size_t bytes = stook_class_bytes[class], most = STOOK_CLASS_SLOT_BYTES / 2 / bytes;
        size_t usual = bytes > 2560 ? 4 : bytes >= 1024 ? 12 : bytes > 512 ? 28 : bytes > 128 ? 60 : 124;

        return (unsigned)(usual < most ? usual : most);
}

_Static_assert(STOOK_STOCK_LINE == STOOK_CLASSES + 1, "the line behind the classes'");

struct stook_cache *stook_class_create(unsigned class, bool charged)
{
        size_t   bytes = stook_class_bytes[class];
        unsigned capacity = stook_class_capacity(class);
        unsigned full = STOOK_CLASS_BARN_FULL;
        static const char prefix[] = "malloc-", charged_prefix[] = "malloc-group-";
        char     name[32], digits[12];
        size_t   n = sizeof(digits), at;

        memcpy(name, charged ? charged_prefix : prefix, charged ? sizeof(charged_prefix) : sizeof(prefix));
        at = (charged ? sizeof(charged_prefix) : sizeof(prefix)) - 1;
        for (size_t left = bytes; left; left /= 10)
                digits[--n] = (char)('0' + left % 10);
        memcpy(name + at, digits + n, sizeof(digits) - n);
        name[at + sizeof(digits) - n] = '\0';

        if (capacity && full > STOOK_BARN_CACHE_BYTES / (capacity * bytes))
                full = (unsigned)(STOOK_BARN_CACHE_BYTES / (capacity * bytes));
        if (charged)
                return stook_cache_create_at(0, name, bytes - STOOK_ACCOUNT_BYTES, 16, capacity, full, STOOK_ACCOUNT);
        return stook_cache_create_at(class + 1, name, bytes, 16, capacity, full, 0);
}

STOOK_COLD struct stook_cache *stook_class_first(unsigned class)
{
        return stook_class_create(class, false);
}

void stook_malloc_start(void)
{
        stook_group_set_prepare(stook_malloc_charge);
        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(stook_class_line); i++)
                stook_class_line[i] = stook_slots_first_line(stook_class_of[i] + 1u);
}
