/*
 * Proves realloc against a naive model: after any sequence of sizes across classes and spans each
 * object holds the bytes it should, no two overlap, and in place means in place. Prints its seed;
 * STEPS and SEED as arguments replay it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <stook/malloc.h>

#define OBJECTS 64
#define STEPS 12000                     /* without arguments */

static uint64_t seed, random_state;
static unsigned long steps;

static uint64_t next_random(void)
{
        random_state += 0x9e3779b97f4a7c15u;            /* splitmix64 */
        uint64_t z = random_state;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

/*
 * Sizes of every magnitude up to 4 MiB, and often those around the edges of classes and of the
 * largest class.
 */
static size_t random_size(void)
{
        size_t size = next_random() >> (42 + next_random() % 22);

        if (next_random() % 8 == 0)
                size = ((size_t)128 << 10) - 8 + next_random() % 16;
        return size;
}

static unsigned char expected(unsigned tag, size_t at)
{
        return (unsigned char)(tag * 31 + at * 7 + (at >> 8));
}

static void fill(unsigned char *object, unsigned tag, size_t from, size_t to)
{
        for (size_t i = from; i < to; i++)
                object[i] = expected(tag, i);
}

static void check(const unsigned char *object, unsigned tag, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if (object[i] != expected(tag, i))
                        fail_msg("seed %llu: byte %zu of %zu is wrong", (unsigned long long)seed, i,
                                 bytes);
}

static void test_model(void **state)
{
        static struct { unsigned char *object; size_t size; unsigned tag; } held[OBJECTS];

        (void)state;
        for (unsigned long step = 0; step < steps; step++) {
                unsigned i = (unsigned)(next_random() % OBJECTS);
                size_t   size = random_size();

                if (!held[i].object || next_random() % 4 == 0) {
                        if (held[i].object)
                                check(held[i].object, held[i].tag, held[i].size);
                        stook_free(held[i].object);
                        held[i].object = stook_malloc(size);
                        held[i].tag = (unsigned)step;
                        held[i].size = 0;
                } else {
                        held[i].object = stook_realloc(held[i].object, size);
                        if (held[i].size > size)
                                held[i].size = size;
                }
                assert_non_null(held[i].object);
                check(held[i].object, held[i].tag, held[i].size);
                fill(held[i].object, held[i].tag, held[i].size, size);
                held[i].size = size;
        }
        for (unsigned i = 0; i < OBJECTS; i++) {
                check(held[i].object, held[i].tag, held[i].size);
                stook_free(held[i].object);
        }
}

static void test_in_place_where_the_slot_does(void **state)
{
        void *object = stook_malloc(1000), *same;

        (void)state;
        for (size_t size = stook_usable_size(object); size > 520; size -= 16) {
                same = stook_realloc(object, size);
                assert_ptr_equal(same, object);
        }
        same = stook_realloc(object, 20);               /* wasting more than half is not kept */
        assert_true(stook_usable_size(same) < 100);
        stook_free(same);
}

/* Growth in small steps is paid for by the steps, not by copies of all that is there. */
static void test_growing_moves_seldom(void **state)
{
        char    *object = stook_malloc(1);
        unsigned moves = 0;

        (void)state;
        for (size_t size = 1; size < (size_t)16 << 20; size += size < 65536 ? 16 : 4096) {
                char *other = stook_realloc(object, size);

                assert_non_null(other);
                moves += other != object;
                object = other;
                object[size - 1] = 1;
        }
        assert_in_range(moves, 1, 160);                 /* 72 classes, then an eighth at a time */
        stook_free(object);
}

/* A size that doubles, again and again: from 64 KiB on it stays where it is. */
static void test_doubling_stays_in_place(void **state)
{
        unsigned moves = 0;

        (void)state;
        for (unsigned round = 0; round < 3; round++) {
                char *object = stook_malloc(32768);

                moves = 0;
                for (size_t size = 65536; size <= (size_t)1 << 20; size *= 2) {
                        char *other = stook_realloc(object, size);

                        assert_non_null(other);
                        moves += other != object;
                        object = other;
                        object[size - 1] = 1;
                }
                stook_free(object);
        }
        assert_in_range(moves, 1, 2);                   /* to the span, and into a larger hole */
}

/* What shrinks from a span to the size of a class is a span while it needs more than half of it. */
static void test_shrinking_a_span_in_place(void **state)
{
        char *object = stook_realloc(stook_malloc(30000), 128 << 10), *same;

        (void)state;
        object[70000] = 7;
        same = stook_realloc(object, 72000);
        assert_ptr_equal(same, object);
        assert_int_equal(same[70000], 7);
        assert_in_range(stook_usable_size(same), 72000, 80000);
        same = stook_realloc(object, 100);
        assert_in_range(stook_usable_size(same), 100, 256);
        stook_free(same);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                /* The first: nothing lies between the free pages. */
                cmocka_unit_test(test_doubling_stays_in_place),
                cmocka_unit_test(test_model),
                cmocka_unit_test(test_in_place_where_the_slot_does),
                cmocka_unit_test(test_growing_moves_seldom),
                cmocka_unit_test(test_shrinking_a_span_in_place),
        };

        steps = argc > 1 ? strtoul(argv[1], NULL, 0) : STEPS;
        seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
        random_state = seed;
        fprintf(stderr, "SEED %llu\n", (unsigned long long)seed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
