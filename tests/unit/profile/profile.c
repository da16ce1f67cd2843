/*
 * What this proves: with a point in each byte, every allocation is sampled and stands for itself:
 * sums are exact, by call stack, and those in use too, after frees in any order and in several
 * threads at once. A free of what was not sampled changes nothing. A file is written whole, or not.
 * What larger intervals estimate is in tests/cli/profile.py.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "pages/span.h"
#include "profile/profile.h"
#include "stack/stack.h"

#define SIZE    100                     /* so large that each has a point for sure */
#define OBJECTS 500
#define THREADS 4
#define ADDRESS(thread, i) \
        ((void *)(0x100000000 * (uintptr_t)((thread) + 1) + 128 * (uintptr_t)(i)))

struct sums {
        uint64_t objects, bytes, objects_in_use, bytes_in_use, stacks;
};

static void add(const struct stook_profile_bucket *bucket, void *data)
{
        struct sums *sums = data;

        sums->objects += bucket->allocated.objects;
        sums->bytes += bucket->allocated.bytes;
        sums->objects_in_use += bucket->allocated.objects - bucket->freed.objects;
        sums->bytes_in_use += bucket->allocated.bytes - bucket->freed.bytes;
        sums->stacks++;
}

static struct sums sums_now(void)
{
        struct sums sums = { 0 };

        stook_profile_for_each(add, &sums);
        sums.objects >>= STOOK_PROFILE_PART_BITS;
        sums.bytes >>= STOOK_PROFILE_PART_BITS;
        sums.objects_in_use >>= STOOK_PROFILE_PART_BITS;
        sums.bytes_in_use >>= STOOK_PROFILE_PART_BITS;
        return sums;
}

static void assert_added(struct sums before, uint64_t objects, uint64_t in_use)
{
        struct sums now = sums_now();

        assert_int_equal(now.objects - before.objects, objects);
        assert_int_equal(now.bytes - before.bytes, objects * SIZE);
        assert_int_equal(now.objects_in_use - before.objects_in_use, in_use);
        assert_int_equal(now.bytes_in_use - before.bytes_in_use, in_use * SIZE);
        assert_int_equal(stook_profile_lost(), 0);
}

static void test_before_the_start(void **unused)
{
        (void)unused;
        assert_int_equal(stook_profile_interval(), 0);
        assert_true(stook_pages_start());
        assert_true(stook_stack_start());
        assert_true(stook_profile_start(1, false));
        assert_int_equal(stook_profile_interval(), 1);
        assert_int_equal(sums_now().objects, 0);
}

static void allocate(unsigned thread, unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                stook_profile_alloc(ADDRESS(thread, i), SIZE);
}

static void test_exact_sums(void **unused)
{
        struct sums before = sums_now();

        (void)unused;
        allocate(0, OBJECTS);
        assert_added(before, OBJECTS, OBJECTS);
        for (unsigned i = 0; i < OBJECTS; i += 2)
                stook_profile_free(ADDRESS(0, i));
        assert_added(before, OBJECTS, OBJECTS / 2);
        /* Not in use any more, and never allocated. */
        stook_profile_free(ADDRESS(0, 0));
        stook_profile_free(ADDRESS(7, 3));
        assert_added(before, OBJECTS, OBJECTS / 2);
        for (unsigned i = OBJECTS - 1; i < OBJECTS; i -= 2)
                stook_profile_free(ADDRESS(0, i));
        assert_added(before, OBJECTS, 0);
}

/* Frames that stay: what follows the call keeps it from being a jump. */
static __attribute__((noinline)) void inner(unsigned i)
{
        stook_profile_alloc(ADDRESS(0, i), SIZE);
        __asm__ volatile("");
}

static __attribute__((noinline)) void one_way(unsigned i)
{
        inner(i);
        __asm__ volatile("");
}

static __attribute__((noinline)) void other_way(unsigned i)
{
        inner(i);
        __asm__ volatile("# another function");
}

static void test_stacks(void **unused)
{
        struct sums before = sums_now();

        (void)unused;
        for (unsigned i = 0; i < 20; i++) {
                if (i % 2)
                        one_way(i);
                else
                        other_way(i);
        }
        assert_int_equal(sums_now().stacks - before.stacks, 2);
        for (unsigned i = 0; i < 20; i++)
                stook_profile_free(ADDRESS(0, i));
        assert_added(before, 20, 0);
}

static void *allocate_and_free(void *thread)
{
        unsigned which = (unsigned)(uintptr_t)thread;

        for (unsigned round = 0; round < 20; round++) {
                allocate(which, OBJECTS);
                for (unsigned i = 0; i < OBJECTS; i++)
                        stook_profile_free(ADDRESS(which, i));
        }
        allocate(which, OBJECTS);
        return NULL;
}

static void test_threads(void **unused)
{
        struct sums before = sums_now();
        pthread_t threads[THREADS];

        (void)unused;
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, (void *)i),
                                 0);
        for (unsigned i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        assert_added(before, THREADS * OBJECTS * 21, THREADS * OBJECTS);
        for (unsigned t = 0; t < THREADS; t++)
                for (unsigned i = 0; i < OBJECTS; i++)
                        stook_profile_free(ADDRESS(t, i));
        assert_added(before, THREADS * OBJECTS * 21, 0);
}

static void test_file(void **unused)
{
        char path[] = "/tmp/stook-profile-XXXXXX";
        int fd = mkstemp(path), tag;
        FILE *file;

        (void)unused;
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(stook_profile_write_to("/no/such/folder/file"), -ENOENT);
        assert_int_equal(stook_profile_write_to(path), 0);
        file = fopen(path, "r");
        assert_non_null(file);
        tag = fgetc(file);
        fseek(file, 0, SEEK_END);
        assert_int_equal(tag & 7, 2);           /* a field of bytes */
        assert_true(ftell(file) > 100);
        fclose(file);
        unlink(path);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_before_the_start), cmocka_unit_test(test_exact_sums),
                cmocka_unit_test(test_stacks), cmocka_unit_test(test_threads),
                cmocka_unit_test(test_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
