/*
 * Proves large.c: large objects keep their content while they grow, move and shrink; zeroed ones
 * that are fresh are not touched; memory given back is really gone; a second free is noticed (I1).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <cmocka.h>
#include <stook/malloc.h>

#define MIB ((size_t)1 << 20)

/* From /proc, without stdio. */
static size_t resident_bytes(void)
{
        char text[128] = "";
        int  fd = open("/proc/self/statm", O_RDONLY);
        unsigned long total, resident = 0;

        assert_true(fd >= 0);
        assert_true(read(fd, text, sizeof(text) - 1) > 0);
        close(fd);
        assert_int_equal(sscanf(text, "%lu %lu", &total, &resident), 2);
        return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_fresh_zeroed_memory_is_not_touched(void **state)
{
        size_t before = resident_bytes();
        char  *object = stook_calloc(1024, MIB);

        (void)state;
        if (!object)
                skip();                                 /* a machine that does not overcommit */
        assert_true(resident_bytes() < before + MIB);
        assert_int_equal(object[0], 0);
        assert_int_equal(object[1023 * MIB], 0);
        stook_free(object);
}

static void test_memory_given_back_is_gone(void **state)
{
        size_t before, peak;
        char  *object;

        (void)state;
        stook_free(stook_malloc(300 * MIB));
        before = resident_bytes();
        object = stook_malloc(200 * MIB);
        memset(object, 1, 200 * MIB);
        peak = resident_bytes();
        assert_true(peak >= before + 190 * MIB);
        stook_free(object);
        assert_true(resident_bytes() < before + 40 * MIB);
}

static void test_shrinking_gives_the_rest_back(void **state)
{
        char  *object = stook_malloc(200 * MIB);
        size_t before;

        (void)state;
        memset(object, 7, 200 * MIB);
        before = resident_bytes();
        object = stook_realloc(object, MIB);
        assert_non_null(object);
        assert_true(resident_bytes() < before - 150 * MIB);
        for (size_t i = 0; i < MIB; i += 512)
                assert_int_equal(object[i], 7);
        object = stook_realloc(object, 100);            /* back to a class */
        assert_true(stook_usable_size(object) < 1000);
        assert_int_equal(object[99], 7);
        stook_free(object);
}

static void test_growing_keeps_every_page(void **state)
{
        size_t    size = 200000;
        uint64_t *object = stook_malloc(size);

        (void)state;
        for (size_t i = 0; i < size / 8; i++)
                object[i] = i;
        while (size < 300 * MIB) {
                void *obstacle = stook_malloc(size); /* so that growth cannot always be in place */
                size_t more = size * 5 / 4 / 8 * 8;

                object = stook_realloc(object, more);
                assert_non_null(object);
                for (size_t i = 0; i < size / 8; i += i < 40000 ? 1 : 509)
                        assert_int_equal(object[i], i);
                for (size_t i = size / 8; i < more / 8; i++)
                        object[i] = i;
                size = more;
                stook_free(obstacle);
        }
        for (size_t i = 0; i < size / 8; i += 511)
                assert_int_equal(object[i], i);
        stook_free(object);
}

static void test_sizes_waste_a_32nd_and_fit_again(void **state)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);

        (void)state;
        for (size_t size = (128 << 10) + 1; size < 32 * MIB; size += size / 7 * 2 + 1000) {
                char  *object = stook_malloc(size), *other;
                size_t usable = stook_usable_size(object);

                assert_true(usable >= size && usable - size < size / 32 + page);
                stook_free(object);
                other = stook_malloc(usable - usable / 80);
                assert_int_equal(stook_usable_size(other), usable);
                stook_free(other);
        }
}

static void grow_and_ask_again(size_t size, size_t share)
{
        char *object = stook_malloc(140000);

        for (; size < 100 * MIB; size += size / share) {
                void  *obstacle = stook_malloc(size);
                size_t usable;

                object = stook_realloc(object, size);
                assert_non_null(object);
                usable = stook_usable_size(object);
                assert_true(usable >= size && usable - size < MIB);
                for (size_t more = 0; more < 3 && size + more <= usable; more++) {
                        assert_ptr_equal(stook_realloc(object, size + more), object);
                        assert_int_equal(stook_usable_size(object), usable);
                }
                stook_free(obstacle);
        }
        stook_free(object);
}

static void test_what_growth_got_ahead_is_kept(void **state)
{
        (void)state;
        grow_and_ask_again(150000, 5);
        grow_and_ask_again(160 << 10, 1);
}

static void test_a_second_free_is_reported(void **state)
{
        pid_t child = fork();
        int   status;

        (void)state;
        if (!child) {
                void *object = stook_malloc(5 * MIB);

                setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
                close(STDERR_FILENO);
                stook_free(object);
                stook_free(object);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fresh_zeroed_memory_is_not_touched),
                cmocka_unit_test(test_memory_given_back_is_gone),
                cmocka_unit_test(test_shrinking_gives_the_rest_back),
                cmocka_unit_test(test_growing_keeps_every_page),
                cmocka_unit_test(test_sizes_waste_a_32nd_and_fit_again),
                cmocka_unit_test(test_what_growth_got_ahead_is_kept),
                cmocka_unit_test(test_a_second_free_is_reported),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
