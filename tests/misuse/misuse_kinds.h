/*
 * Purpose: the misuses of misuse.c that C and C++ have: overflows, uses after free, double and
 * invalid frees, sizes of zero, old content.
 */
#ifndef STOOK_MISUSE_KINDS_H
#define STOOK_MISUSE_KINDS_H

#include "misuse_victim.h"

/* ---------------------------------------------------------------------------- linear overflows */

static void overflow_byte(void) { store(p + n, 1, 1); }
static void overflow_nul(void) { store(p + n, 1, 0); }
static void overflow_copy(void) { memcpy(hidden(p + n), "a copy of thirty-two bytes is it", 32); }
static void overflow_long(void) { store(p + n, 256, 'A'); }
static void overflow_jump(void) { store(p + n + 64, 8, 'A'); }
static void overflow_read(void) { load(p + n, 8); }
static void overflow_read_page(void) { load(p + n, 4096); }
static void underflow_byte(void) { store(p - 1, 1, 1); }
static void underflow_word(void) { store(p - 8, 8, 'A'); }
static void underflow_long(void) { store(p - 64, 64, 'A'); }
static void underflow_read(void) { load(p - 8, 8); }

/* ------------------------------------------------------------------------------ use after free */

static void read_first(void) { stopped = !has(p, 8, VICTIM); }
static void read_middle(void) { stopped = !has(p + n / 2, 8, VICTIM); }
static void read_last(void) { stopped = !has(p + n - 8, 8, VICTIM); }

static void read_later(void)
{
        churn();
        stopped = !has(p + n / 2, 8, VICTIM) && !has(p + n / 2, 8, OTHER);
}

static void read_reused(void)
{
        stopped = !same_address();
        load(p, 8);
}

static void write_first(void) { store(p, 8, 'A'); }
static void write_middle(void) { store(p + n / 2, 1, 'A'); }
static void write_last(void) { store(p + n - 1, 1, 'A'); }
static void write_all(void) { store(p, n, 'A'); }

static void write_later(void)
{
        churn();
        store(p + n / 2, 8, 'A');
}

static void write_reused(void)
{
        char *other = same_address();

        store(p + n / 2, 8, 'A');
        stopped = !other || !has(other + n / 2, 8, 'A');
}

/* --------------------------------------------------------------------------------- double free */

static void double_once(void) { FREE(p); }

static void double_one_between(void)
{
        char *other = ALLOC(n);

        FREE(behind);
        FREE(p);
        behind = other;
}

static void double_many_between(void)
{
        churn();
        FREE(p);
}

static void double_thrice(void)
{
        FREE(p);
        FREE(p);
}

static void double_reused(void)
{
        char *other = same_address();

        FREE(p);
        if (other)
                FREE(other);
}

/* ------------------------------------------------------------------------------- invalid frees */

static void invalid_interior(void) { FREE(p + 16); }
static void invalid_odd(void) { FREE(p + 1); }
static void invalid_middle(void) { FREE(p + n / 32 * 16); }
static void invalid_before(void) { FREE(p - 16); }
static void invalid_end(void) { FREE(p + n); }

static void invalid_stack(void)
{
        char object[256];

        FREE(object + 64);
}

static void invalid_static(void)
{
        static char object[256] __attribute__((aligned(64)));

        FREE(object);
}

static void invalid_text(void) { FREE("a string of the program's text"); }

static void invalid_mapping(void)
{
        FREE(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void invalid_low(void) { FREE((void *)64); }
static void invalid_wild(void) { FREE((void *)0x4141414141414140); }

/* ------------------------------------------------------------------------------- sizes of zero */

static void zero_read(void) { load(ALLOC(0), 1); }
static void zero_write(void) { store(ALLOC(0), 1, 'A'); }
static void zero_write_word(void) { store(ALLOC(0), 8, 'A'); }

static void zero_write_freed(void)
{
        char *object = ALLOC(0);

        store(object, 1, 'A');
        FREE(object);
}

/* --------------------------------------------------------------------------------- old content */

static void content_again(void)
{
        char *objects[TRIES];
        bool seen = false;

        for (int i = 0; i < TRIES; i++) {
                objects[i] = ALLOC(n);
                seen |= has(objects[i], n, VICTIM);
        }
        for (int i = 0; i < TRIES; i++)
                FREE(objects[i]);
        stopped = !seen;
}

/* Many secrets, of many objects. */
static void content_many(void)
{
        for (int i = 0; i < many; i++) {
                before = filled(n, VICTIM);
                FREE(before);
        }
        before = ALLOC(n);
        content_again();
}

/* Addresses of the heap, in what was never written. */
static void content_address(void)
{
        bool seen = false;
        uintptr_t word;

        for (int i = 0; i < TRIES && !seen; i++) {
                char *object = ALLOC(n);

                for (size_t k = 0; k + 8 <= n && !seen; k += 8) {
                        memcpy(&word, object + k, 8);
                        seen = word - (uintptr_t)object + (1 << 30) < (2u << 30);
                }
        }
        stopped = !seen;
}

#endif
