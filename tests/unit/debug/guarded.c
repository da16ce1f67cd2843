/*
 * What this proves: STOOK_DEBUG=Z=guard. Each object of malloc's ends where a page does, as far as
 * its alignment lets it; the page behind it cannot be read, nor can it when it was freed; its bytes
 * are those that were asked for; and what needs no access to be found is found when it is freed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/debug.h>
#include <stook/stook.h>

#include "inspect/inspect.h"
#include "os/os.h"
#include "report/report.h"

static int pipes[2];
static unsigned reports;
static struct stook_report last;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        last = *report;
}

static int setup(void **state)
{
        (void)state;
        stook_on_report(note, NULL);
        stook_report_set_policy(STOOK_ON_FAULT_ISOLATE);
        return pipe(pipes);
}

static void expect(enum stook_fault fault, const void *object)
{
        assert_int_equal(reports, 1);
        assert_int_equal(last.fault, fault);
        assert_ptr_equal(last.object, object);
        reports = 0;
}

/* The kernel reads the byte: no signal tells. */
static bool is_readable(const char *byte)
{
        char c;

        if (write(pipes[1], byte, 1) != 1)
                return false;
        assert_int_equal(read(pipes[0], &c, 1), 1);
        return true;
}

static void expect_guarded(char *object, size_t size, size_t align)
{
        size_t end = (size + align - 1) & ~(align - 1);

        assert_non_null(object);
        assert_int_equal((uintptr_t)object % align, 0);
        assert_int_equal((uintptr_t)(object + end) % stook_os_page_bytes(), 0);
        assert_int_equal(stook_usable_size(object), size);
        memset(object, 1, size);
        assert_true(is_readable(object));
        assert_false(is_readable(object + end));
        assert_true(stook_owns(object));
}

static void objects_end_at_a_guard(void **state)
{
        (void)state;
        for (size_t size = 1; size < 300000; size += size / 9 + 1) {
                char *object = stook_malloc(size);

                expect_guarded(object, size, 16);
                stook_free(object);
                assert_false(is_readable(object));
        }
        /* Where the first page of the span is not that of the object. */
        for (size_t size = 3 * 4096 - 200; size <= 3 * 4096; size++) {
                char *object = stook_malloc(size);

                expect_guarded(object, size, 16);
                stook_free_sized(object, size);
        }
        assert_int_equal(reports, 0);
        assert_int_equal(stook_validate_all(), 0);
}

/* Of one class, of a page and more, the alignment is rounded up further. */
static void aligned_objects(void **state)
{
        (void)state;
        for (size_t align = 16; align <= 4096; align *= 2)
                for (size_t size = 1; size < 20000; size += 641) {      /* none of 4097 to 4416 */
                        char *object = stook_aligned_alloc(align, size);

                        expect_guarded(object, size, align);
                        stook_free_aligned_sized(object, align, size);
                }
        for (size_t align = 64; align <= (size_t)1 << 20; align *= 4) {
                char *object = stook_aligned_alloc(align, 300000);

                assert_int_equal((uintptr_t)object % align, 0);
                assert_int_equal(stook_usable_size(object), 300000);
                memset(object, 1, 300000);
                stook_free(object);
        }
        assert_int_equal(reports, 0);
}

static void content_is_kept(void **state)
{
        unsigned char *object = NULL;
        size_t had = 0;

        (void)state;
        for (size_t i = 0; i < 200; i++) {
                size_t size = 1 + (i * 7919) % 5000;

                object = stook_realloc(object, size);
                for (size_t k = 0; k < had && k < size; k++)
                        assert_int_equal(object[k], 0x42);
                expect_guarded((char *)object, size, 16);
                memset(object, 0x42, size);
                had = size;
        }
        stook_free(object);
        object = stook_calloc(5, 1001);
        for (size_t i = 0; i < 5005; i++)
                assert_int_equal(object[i], 0);
        stook_free(object);
        assert_int_equal(reports, 0);
}

/* What alignment leaves behind an object, and what lies before it, is a red zone. */
static void writes_that_meet_no_guard(void **state)
{
        char *object = stook_malloc(21);

        (void)state;
        object[21] ^= 1;
        stook_free(object);
        expect(STOOK_FAULT_OVERRUN, object);
        object = stook_malloc(32);
        object[-1] ^= 1;
        assert_int_equal(stook_validate_all(), 1);
        stook_free(object);
        expect(STOOK_FAULT_UNDERRUN, object);
}

static void a_second_free(void **state)
{
        char *object = stook_malloc(40);

        (void)state;
        stook_free(object);
        stook_free(object);
        expect(STOOK_FAULT_DOUBLE_FREE, object);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(objects_end_at_a_guard),
                cmocka_unit_test(aligned_objects),
                cmocka_unit_test(content_is_kept),
                cmocka_unit_test(writes_that_meet_no_guard),
                cmocka_unit_test(a_second_free),
        };

        return cmocka_run_group_tests(tests, setup, NULL);
}
