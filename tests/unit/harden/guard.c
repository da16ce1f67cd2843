/*
 * What this proves: guards of large objects (harden/guard.c). The pages before and behind an object
 * cannot be read, all of it can, and after its free the pages serve again. Where the system refuses
 * guards the objects serve without.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "harden/harden.h"
#include "inspect/validate.h"
#include "malloc/malloc.h"
#include "off_by.h"
#include "os/os.h"
#include "pages/span.h"

static int pipes[2];

/* The kernel reads the byte: no signal tells. */
static bool is_readable(const char *byte)
{
        char c;

        if (write(pipes[1], byte, 1) != 1)
                return false;
        assert_int_equal(read(pipes[0], &c, 1), 1);
        return true;
}

static void expect_guarded(char *object, size_t size)
{
        size_t page = stook_os_page_bytes(), usable = stook_usable_size(object);

        assert_true(usable >= size && usable < size + page);
        memset(object, 1, usable);
        assert_false(is_readable(object + usable));
        assert_false(is_readable(object + usable + page - 1));
        assert_false(is_readable(object - 1));
        assert_false(is_readable(object - page));
}

static void pages_around_an_object_have_no_access(void **state)
{
        (void)state;
        for (size_t size = STOOK_CLASS_MAX + 1; size < (size_t)16 << 20; size += size / 2) {
                char *object = stook_malloc(size);

                assert_non_null(object);
                expect_guarded(object, size);
                stook_free(object);
        }
}

static void aligned_objects_have_guards(void **state)
{
        (void)state;
        for (size_t align = 64; align <= (size_t)4 << 20; align *= 8) {
                char *object = stook_aligned_alloc(align, 300000);

                assert_non_null(object);
                assert_int_equal(off_by(object, align), 0);
                expect_guarded(object, 300000);
                stook_free(object);
        }
}

/* A mapping of its own has reserved address space behind it. */
static void huge_objects_have_one_behind(void **state)
{
        size_t size = STOOK_SPAN_OWN_MAPPING + 12345;
        char *object = stook_malloc(size);

        (void)state;
        assert_non_null(object);
        object[0] = object[size - 1] = 1;
        assert_false(is_readable(object + stook_usable_size(object)));
        object = stook_realloc(object, size * 2);
        assert_non_null(object);
        assert_int_equal(object[size - 1], 1);
        assert_false(is_readable(object + stook_usable_size(object)));
        stook_free(object);
}

static void objects_that_change_size_have_guards(void **state)
{
        char *object = stook_malloc(200000);

        (void)state;
        for (size_t size = 200000; size < 5000000; size += size / 3) {
                memset(object, (int)(size % 251), stook_usable_size(object));
                object = stook_realloc(object, size + size / 3);
                assert_non_null(object);
                assert_int_equal((unsigned char)object[size - 1], size % 251);
                expect_guarded(object, size + size / 3);
        }
        object = stook_realloc(object, 180000);
        expect_guarded(object, 180000);
        stook_free(object);
}

/* All pages come back: the same memory serves as one piece. */
static void pages_serve_again(void **state)
{
        struct stook_pages_stats stats;
        char *objects[64];

        (void)state;
        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 64; i++)
                        assert_non_null(objects[i] = stook_malloc(150000));
                for (int i = 0; i < 64; i++)
                        stook_free(objects[i * 37 % 64]);
        }
        assert_int_equal(stook_pages_validate(NULL), 0);
        stook_pages_stats(&stats);
        stook_guards_open_all();
        for (int i = 0; i < 64; i++)
                assert_true(is_readable(objects[i] - 1));
        assert_int_equal(stook_guards_refused(), 0);
}

static void a_child_frees_what_its_parent_guarded(void **state)
{
        char *object = stook_malloc(300000);
        int status;
        pid_t pid;

        (void)state;
        pid = fork();
        assert_true(pid >= 0);
        if (!pid) {
                bool closed = !is_readable(object - 1);

                stook_free(object);
                closed &= !is_readable(object - 1) && !is_readable(object);
                stook_guards_open_all();
                _exit(closed && is_readable(object - 1) && stook_malloc(300000) ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        expect_guarded(object, 300000);
        stook_free(object);
}

/* What was freed is closed for a while, and no new object lies there. */
static void freed_objects_are_closed(void **state)
{
        enum { WAIT = 16 };
        char *objects[WAIT + 1];
        size_t page = stook_os_page_bytes();

        (void)state;
        for (size_t size = 200000; size < 4000000; size *= 4) {
                for (int i = 0; i <= WAIT; i++) {
                        assert_non_null(objects[i] = stook_malloc(size));
                        for (int k = 0; k < i; k++)
                                assert_ptr_not_equal(objects[i], objects[k]);
                        memset(objects[i], 1, size);
                        stook_free(objects[i]);
                        assert_false(is_readable(objects[i]));
                        assert_false(is_readable(objects[i] + size / 2));
                        assert_false(is_readable(objects[i] + size + page));
                        assert_ptr_equal(stook_guard_closed_at((uintptr_t)objects[i])->start,
                                         objects[i]);
                }
                assert_false(is_readable(objects[1]));
                assert_null(stook_guard_closed_at((uintptr_t)objects[0]));
        }
        stook_trim(0);
        assert_null(stook_guard_closed_at((uintptr_t)objects[WAIT]));
        assert_int_equal(stook_pages_validate(NULL), 0);
}

/* Far fewer than the mappings of a process: it needs some, and the pages do. */
static void there_are_so_many(void **state)
{
        enum { MOST = 8192, MORE = 100 };
        static char *objects[MOST + MORE];
        size_t size = STOOK_CLASS_MAX + 1;

        (void)state;
        for (int i = 0; i < MOST + MORE; i++)
                assert_non_null(objects[i] = stook_malloc(size));
        assert_false(is_readable(objects[MOST - 1] - 1));
        assert_int_equal(stook_guards_refused(), MORE);
        assert_true(is_readable(objects[MOST] + stook_usable_size(objects[MOST]) - 1));
        for (int i = MOST; i < MOST + MORE; i++)
                stook_free(objects[i]);
        /* One less makes room for one. */
        stook_free(objects[0]);
        objects[0] = stook_malloc(size);
        expect_guarded(objects[0], size);
        assert_int_equal(stook_guards_refused(), MORE);
        for (int i = 0; i < MOST; i++)
                stook_free(objects[i]);
        assert_int_equal(stook_pages_validate(NULL), 0);
}

/* Last: it counts refusals. */
static void objects_serve_without_guards(void **state)
{
        uint64_t before = stook_guards_refused();
        char *object, *other;

        (void)state;
        stook_inject.close_fail_from = 2;
        object = stook_malloc(300000);
        other = stook_malloc(300000);
        stook_inject.close_fail_from = 0;
        assert_non_null(object);
        assert_non_null(other);
        assert_int_equal(stook_guards_refused(), before + 3);
        assert_false(is_readable(object - 1));
        memset(object, 1, 300000);
        memset(other, 1, 300000);
        stook_free(object);
        stook_free(other);
        assert_int_equal(stook_pages_validate(NULL), 0);
        object = stook_malloc(300000);
        expect_guarded(object, 300000);
        stook_free(object);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pages_around_an_object_have_no_access),
                cmocka_unit_test(aligned_objects_have_guards),
                cmocka_unit_test(huge_objects_have_one_behind),
                cmocka_unit_test(objects_that_change_size_have_guards),
                cmocka_unit_test(pages_serve_again),
                cmocka_unit_test(a_child_frees_what_its_parent_guarded),
                cmocka_unit_test(freed_objects_are_closed),
                cmocka_unit_test(there_are_so_many),
                cmocka_unit_test(objects_serve_without_guards),
        };

        if (pipe(pipes))
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
