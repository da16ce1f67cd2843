/*
 * Purpose: STOOK_HARDEN: names with commas between them; or 1, which chooses for the user; or all;
 * or 0. And the bits that say which objects have users: harden.h. A tree of three steps leads to
 * them, because ranges of address space may lie anywhere.
 *
 *      address bits    47..37          36..24          23..3
 *                      top             middle          leaf: 256 KiB for 16 MiB of heap
 *
 * Both lower steps are made when an object first lies there, of metadata, and stay for ever. A page
 * of a leaf is touched when one of 256 KiB of heap is used.
 * Concurrency: M1: the release of a pointer in a step pairs with the acquire of the next walk: the
 *  memory behind it reads as zeros. A thread that loses the race for a pointer leaves its memory
 *  unused.
 *  A bit is changed by one atomic instruction, so of two frees of one object at once one finds it.
 *  The release of a free pairs with the acquire of the next allocation of the object, and that of
 *  an allocation with the next free's.
 * Place: the option is read by life at start. `stook run --harden` takes the same
 *  (cli/run/run_debug.c).
 * Failure: without memory a pointer becomes NONE for ever (I2). A text with a name that is none is
 *  refused by one line, and means nothing.
 */
#include <stddef.h>
#include <string.h>

#include "harden/harden.h"
#include "os/os.h"
#include "pages/meta.h"

/* ---- the option ---- */

#define VARIABLE "STOOK_HARDEN"
#define TAKES "0, 1, all, or with commas between them: double, random, guard, canary, pairs, " \
              "zero-size, zero-free, zero-alloc, check-free, quarantine=BYTES"

/* What finds or stops faults. Zeros hide what a program left behind, and cost with the size. */
#define USUAL (STOOK_HARDEN_DOUBLE | STOOK_HARDEN_RANDOM | STOOK_HARDEN_GUARD | \
               STOOK_HARDEN_CANARY | STOOK_HARDEN_PAIRS | STOOK_HARDEN_ZERO_SIZE)
#define ALL   (USUAL | STOOK_HARDEN_ZERO_FREE | STOOK_HARDEN_ZERO_ALLOC | \
               STOOK_HARDEN_CHECK_FREE | STOOK_HARDEN_QUARANTINE)
#define QUARANTINE_BYTES ((uint64_t)256 << 10)  /* unless said. Arbitrary */

uint32_t stook_hardened;
uint64_t stook_harden_quarantine_bytes = QUARANTINE_BYTES;

static const struct {
        const char *name;
        int by;
} names[] = {
        { "double", STOOK_HARDEN_DOUBLE },
        { "random", STOOK_HARDEN_RANDOM },
        { "guard", STOOK_HARDEN_GUARD },
        { "zero-free", STOOK_HARDEN_ZERO_FREE },
        { "zero-alloc", STOOK_HARDEN_ZERO_ALLOC },
        { "canary", STOOK_HARDEN_CANARY },
        { "pairs", STOOK_HARDEN_PAIRS },
        { "zero-size", STOOK_HARDEN_ZERO_SIZE },
        { "check-free", STOOK_HARDEN_CHECK_FREE | STOOK_HARDEN_ZERO_FREE },
        { "all", ALL },
        { "1", USUAL },
        { "0", 0 },
};

/* -1: the first @n bytes are no name. */
static int of_name(const char *text, size_t n)
{
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(names); i++)
                if (strlen(names[i].name) == n && !memcmp(names[i].name, text, n))
                        return names[i].by;
        return -1;
}

/* "quarantine=BYTES", with K, M or G; false: it is something else. */
static bool is_quarantine(const char *text, size_t n, uint64_t *bytes)
{
        static const char name[] = "quarantine=";
        const char *c = text + sizeof(name) - 1, *end = text + n;
        uint64_t value = 0;

        if (n < sizeof(name) || memcmp(text, name, sizeof(name) - 1) || *c < '0' || *c > '9')
                return false;
        for (; c < end && *c >= '0' && *c <= '9' && value < (uint64_t)1 << 32; c++)
                value = value * 10 + (uint64_t)(*c - '0');
        if (c < end && (*c == 'K' || *c == 'M' || *c == 'G'))
                value <<= *c == 'K' ? 10 : *c == 'M' ? 20 : 30, c++;
        if (c < end || value >= (uint64_t)1 << 40)
                return false;
        *bytes = value;
        return true;
}

int stook_harden_parse(const char *text, uint64_t *quarantine)
{
        int all = 0;

        for (;; text++) {
                size_t n = strcspn(text, ",");
                int by = is_quarantine(text, n, quarantine) ? STOOK_HARDEN_QUARANTINE
                                                            : of_name(text, n);

                if (by < 0)
                        return -1;
                all |= by;
                text += n;
                if (!*text)
                        return all;
        }
}

void stook_harden_read_options(void)
{
        const char *value = stook_os_env(VARIABLE);
        uint64_t bytes = QUARANTINE_BYTES;
        int by = value && *value ? stook_harden_parse(value, &bytes) : 0;

        if (by < 0)
                stook_os_env_refuse(VARIABLE, value, TAKES);
        else
                stook_hardened = (uint32_t)by;
        stook_harden_quarantine_bytes = bytes;
}

/* ---- users ---- */

#define GRANULE_LOG 3                   /* an object begins in 8 bytes of its own */
#define LEAF_LOG    24                  /* bytes of heap that a leaf stands for */
#define MIDDLE_LOG  37
#define TOP_LOG     48                  /* where the addresses of programs end */

#define LEAF_BYTES   ((size_t)1 << (LEAF_LOG - GRANULE_LOG) >> 3)
#define MIDDLE_BYTES (((size_t)1 << (MIDDLE_LOG - LEAF_LOG)) * sizeof(void *))

static char no_bits;
#define NONE ((void *)&no_bits)

static void *top[(size_t)1 << (TOP_LOG - MIDDLE_LOG)] STOOK_MOSTLY_UNUSED;     /* atomic: M1 */

/* What the pointer at @step leads to, which is made if there is nothing and @make. */
static void *follow(void **step, size_t bytes, bool make)
{
        void *next = __atomic_load_n(step, __ATOMIC_ACQUIRE), *made;           /* M1 */

        if (next || !make)
                return next;
        made = stook_meta_bump(bytes, 0);
        if (!made)
                made = NONE;
        return __atomic_compare_exchange_n(step, &next, made, false, __ATOMIC_ACQ_REL,
                                           __ATOMIC_ACQUIRE) ? made : next;
}

/* The leaf for an address. NULL: no object ever lay there. NONE: I2. */
static void *leaf_of(uintptr_t addr, bool make)
{
        void **middle;

        if (addr >> TOP_LOG)
                return NONE;
        middle = follow(&top[addr >> MIDDLE_LOG], MIDDLE_BYTES, make);
        if (!middle || middle == NONE)
                return middle;
        addr &= ((uintptr_t)1 << MIDDLE_LOG) - 1;
        return follow(&middle[addr >> LEAF_LOG], LEAF_BYTES, make);
}

/* The word with the bit of @object. NULL: there is none, and *@believed says what the bit is. */
static uint64_t *word_of(const void *object, bool make, uint64_t *bit, bool *believed)
{
        uintptr_t addr = (uintptr_t)object;
        uint64_t *leaf = leaf_of(addr, make);
        size_t at = (addr & (((uintptr_t)1 << LEAF_LOG) - 1)) >> GRANULE_LOG;

        *believed = leaf == NONE;
        *bit = UINT64_C(1) << at % 64;
        return leaf && leaf != NONE ? leaf + at / 64 : NULL;
}

bool stook_harden_user_begins(const void *object)
{
        uint64_t bit, *word;
        bool believed;

        word = word_of(object, true, &bit, &believed);
        return !word || !(__atomic_fetch_or(word, bit, __ATOMIC_ACQ_REL) & bit);
}

bool stook_harden_user_ends(const void *object)
{
        uint64_t bit, *word;
        bool believed;

        word = word_of(object, false, &bit, &believed);
        return word ? __atomic_fetch_and(word, ~bit, __ATOMIC_ACQ_REL) & bit : believed;
}

bool stook_harden_has_user(const void *object)
{
        uint64_t bit, *word;
        bool believed;

        word = word_of(object, false, &bit, &believed);
        return word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) & bit : believed;
}
