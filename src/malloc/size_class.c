/*
 * Purpose: which sizes malloc knows, and how many objects of each a slot keeps.
 * Invariants:
 *  I1 the bytes of a class are a multiple of 16, and of every power of two up to the page size that
 *     the size asked for is a multiple of: aligned requests need no classes of their own
 *     (malloc_miss.c). STOOK_CLASS_PAGE_AND_MORE is the exception.
 *  I2 main and spare of a slot hold at most STOOK_CLASS_SLOT_BYTES of a class and, all classes
 *     together, at most 2.1 MiB, as long as nothing has grown (barn/barn_room.c): what CPUs keep
 *     is bounded, whatever the program's mix of sizes.
 */
#include <string.h>
#include "barn/barn.h"
#include "cache/cache_watch.h"
#include "group/group.h"
#include "malloc/malloc.h"
#include "os/os.h"

/*
 * Multiples of 16 up to 128, then eight a doubling up to 1 KiB, and four beyond (Doug Lea's spacing
 * is four; eight saves half of what rounding costs, where most objects are); from 1 KiB on also 9/8
 * of the power of two, and from 8 KiB on 17/16: programs ask for a power of two and a header of
 * their own, which would cost a quarter more. Of these a page and a header is what databases ask
 * for most: it has a class of its own, of which 12 fill 13 pages (slab_birth.c).
 */
#define FOUR(n)  (n) / 4 * 5, (n) / 4 * 6, (n) / 4 * 7, (n) * 2
#define FIVE(n)  (n) / 8 * 9, FOUR(n)
#define SIX(n)   (n) / 16 * 17, FIVE(n)
#define EIGHT(n) (n) / 8 * 9, (n) / 8 * 10, (n) / 8 * 11, (n) / 8 * 12, \
                 (n) / 8 * 13, (n) / 8 * 14, (n) / 8 * 15, (n) * 2

const uint32_t stook_class_bytes[STOOK_CLASSES] = {
        16, 32, 48, 64, 80, 96, 112, 128,
        EIGHT(128), EIGHT(256), EIGHT(512), FIVE(1024), FIVE(2048),
        STOOK_CLASS_PAGE_AND_MORE, FIVE(4096),
        SIX(8192), SIX(16384), SIX(32768), SIX(65536),
};

/*
 * Sizes above @above up to @bytes, both multiples of 16, are of this class.
 * tests/unit/malloc/size_class.c computes both tables again.
 */
#define UP16(above, bytes, class) [(above) / 16 + 1 ... (bytes) / 16] = (class)

/* By 16 bytes; size 0 is of the first class. */
const uint8_t stook_class_of[STOOK_CLASS_TABLE_MAX / 16 + 1] = {
        UP16(0, 16, 0), UP16(16, 32, 1), UP16(32, 48, 2), UP16(48, 64, 3), UP16(64, 80, 4),
        UP16(80, 96, 5), UP16(96, 112, 6), UP16(112, 128, 7), UP16(128, 144, 8), UP16(144, 160, 9),
        UP16(160, 176, 10), UP16(176, 192, 11), UP16(192, 208, 12), UP16(208, 224, 13),
        UP16(224, 240, 14), UP16(240, 256, 15), UP16(256, 288, 16), UP16(288, 320, 17),
        UP16(320, 352, 18), UP16(352, 384, 19), UP16(384, 416, 20), UP16(416, 448, 21),
        UP16(448, 480, 22), UP16(480, 512, 23), UP16(512, 576, 24), UP16(576, 640, 25),
        UP16(640, 704, 26), UP16(704, 768, 27), UP16(768, 832, 28), UP16(832, 896, 29),
        UP16(896, 960, 30), UP16(960, 1024, 31), UP16(1024, 1152, 32), UP16(1152, 1280, 33),
        UP16(1280, 1536, 34), UP16(1536, 1792, 35), UP16(1792, 2048, 36), UP16(2048, 2304, 37),
        UP16(2304, 2560, 38), UP16(2560, 3072, 39), UP16(3072, 3584, 40), UP16(3584, 4096, 41),
        UP16(4096, 4416, 42), UP16(4416, 4608, 43), UP16(4608, 5120, 44), UP16(5120, 6144, 45),
        UP16(6144, 7168, 46), UP16(7168, 8192, 47), UP16(8192, 8704, 48), UP16(8704, 9216, 49),
        UP16(9216, 10240, 50), UP16(10240, 12288, 51), UP16(12288, 14336, 52),
        UP16(14336, 16384, 53),
};

/* Sizes above @above up to @bytes, both multiples of 64. */
#define UP(above, bytes, class) [(above) / 64 + 1 ... (bytes) / 64] = (class)

/* By 64 bytes; sizes up to STOOK_CLASS_TABLE_MAX are not looked up here. */
const uint8_t stook_class_of_large[STOOK_CLASS_MAX / 64 + 1] = {
        UP(16384, 17408, 54), UP(17408, 18432, 55), UP(18432, 20480, 56), UP(20480, 24576, 57),
        UP(24576, 28672, 58), UP(28672, 32768, 59), UP(32768, 34816, 60), UP(34816, 36864, 61),
        UP(36864, 40960, 62), UP(40960, 49152, 63), UP(49152, 57344, 64), UP(57344, 65536, 65),
        UP(65536, 69632, 66), UP(69632, 73728, 67), UP(73728, 81920, 68), UP(81920, 98304, 69),
        UP(98304, 114688, 70), UP(114688, 131072, 71),
};

/* Weak: the drop-in has its own, beside the descriptors of its sections (dropin/hot_*.S). */
__attribute__((weak)) STOOK_MOSTLY_UNUSED
uintptr_t stook_class_line[STOOK_CLASS_LINE_LARGE + STOOK_CLASSES];

/*
 * Twice the default of caches for sizes up to 512 bytes, of which programs use most: a batch of 64
 * then stays in the slot. To make room for that, four above 2.5 KiB, two above 4 KiB, and one above
 * 8 KiB: more of them pin slabs. The default by size in between, or as many as I2 allows. None
 * above 32 KiB, where one would be much memory on a machine of many CPUs. The sum over all classes,
 * main and spare, is below 2.1 MiB. Classes that swing get more, those that have none, too:
 * barn/barn_room.c.
 */
unsigned stook_class_capacity(unsigned class)
{
        size_t bytes = stook_class_bytes[class], most = STOOK_CLASS_SLOT_BYTES / 2 / bytes;
        size_t usual = bytes > 8192 ? 1 : bytes > 4096 ? 2 : bytes > 2560 ? 4 : bytes >= 1024 ? 12 :
                       bytes > 512 ? 28 : bytes > 128 ? 64 : 128;

        return (unsigned)(usual < most ? usual : most);
}

_Static_assert(STOOK_PRECHARGE_LINE == STOOK_CLASSES + 1, "the line behind the classes'");

static void append(char *name, const char *text)
{
        strcpy(name + strlen(name), text);
}

/* "malloc-64", "malloc-group-64" */
static void make_name(char name[STOOK_CLASS_NAME_BYTES], unsigned class, bool charged)
{
        char digits[12];
        size_t n = sizeof(digits) - 1;

        digits[n] = '\0';
        for (size_t left = stook_class_bytes[class]; left; left /= 10)
                digits[--n] = (char)('0' + left % 10);
        name[0] = '\0';
        append(name, charged ? "malloc-group-" : "malloc-");
        append(name, digits + n);
}

/*
 * What aligned requests count on (I1). A stride without anything behind the object has it anyway.
 */
size_t stook_class_align(unsigned class)
{
        size_t bytes = stook_class_bytes[class], page = stook_os_page_bytes();
        size_t align = bytes & -bytes;

        return align < page ? align : page;
}

struct stook_cache *stook_class_create(unsigned class, enum stook_class_kind kind)
{
        size_t   bytes = stook_class_bytes[class];
        unsigned capacity = stook_class_capacity(class);
        unsigned full = STOOK_CLASS_BARN_FULL;
        bool     charged = kind == STOOK_CLASS_CHARGED;
        uint32_t watch = 0;
        uint64_t debug = 0;
        char     name[STOOK_CLASS_NAME_BYTES];

        make_name(name, class, charged);
        if (kind != STOOK_CLASS_PLAIN)
                watch = stook_watch_duties.wanted(name, 0, &debug);
        if (kind == STOOK_CLASS_WATCHED && !watch)
                return NULL;
        if (kind == STOOK_CLASS_WATCHED && (watch & STOOK_WATCH_HARDEN) && stook_malloc_seal_bytes)
                watch |= STOOK_WATCH_SEAL;
        if (capacity && full > STOOK_BARN_CACHE_BYTES / (capacity * bytes))
                full = (unsigned)(STOOK_BARN_CACHE_BYTES / (capacity * bytes));
        return stook_cache_create_at(&(struct stook_class_args){
                .index = kind == STOOK_CLASS_PLAIN ? class + 1 : 0,
                .name = name,
                .size = charged ? bytes - STOOK_ACCOUNT_BYTES : bytes,
                .align = watch ? stook_class_align(class) : 16,
                .capacity = capacity,
                .full_limit = full,
                .flags = charged ? STOOK_CACHE_ACCOUNT : 0,
                .watch = watch,
                .debug = debug,
        });
}

STOOK_COLD struct stook_cache *stook_class_first(unsigned class)
{
        return stook_class_create(class, STOOK_CLASS_PLAIN);
}

void stook_malloc_start(void)
{
        stook_shapes[0].starts = 1;     /* every offset passes: cache.h */
        stook_group_set_prepare(stook_malloc_charge);
        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(stook_class_of); i++)
                stook_class_line[i] = stook_slots_first_line(stook_class_of[i] + 1u);
        for (unsigned c = 0; c < STOOK_CLASSES; c++)
                stook_class_line[STOOK_CLASS_LINE_LARGE + c] = stook_slots_first_line(c + 1);
}
