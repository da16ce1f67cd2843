/*
 * What this proves: memory for metadata is handed out without gaps: what is larger than a page, and
 * not asked for by whole pages, ends where the next begins. Pages that are asked for are whole. All
 * of it is zero. The kernel is told to use no huge pages for it, before it could.
 */
#include <stdio.h>
#include <string.h>

#include "pages_env.h"
#include "pages/meta.h"
#include "pages/source.h"

static void what_is_larger_than_a_page_leaves_no_gap(void **state)
{
        char *first = stook_meta_bump(4160, 0), *second = stook_meta_bump(4160, 0);
        char *third = stook_meta_bump(65, 0), *last = stook_meta_bump(1, 0);

        (void)state;
        assert_non_null(first);
        assert_ptr_equal(second, first + 4160);
        assert_ptr_equal(third, second + 4160);
        assert_ptr_equal(last, third + 128);
}

/* The first range is the library's own; its last page is nobody else's. */
static void the_last_page_is_taken_once(void **state)
{
        struct stook_meta_range *own = &stook_meta_ranges[0];
        size_t page = stook_os_page_bytes(), size = own->size;
        char *last = stook_meta_last_page(), *at = stook_meta_bump(1, 0);

        (void)state;
        assert_int_equal((uintptr_t)last % page, 0);
        assert_int_equal((uintptr_t)last, own->base + size - page);
        assert_int_equal(own->size, size - page);
        assert_true((uintptr_t)at - own->base < own->size);
        for (size_t i = 0; i < page; i++)
                assert_int_equal(last[i], 0);
        memset(last, 1, page);
        while ((uintptr_t)(at = stook_meta_bump(page, page)) - own->base < own->size) {
                assert_true(at + page <= last);
                assert_int_equal(at[page - 1], 0);
        }
}

static void pages_are_whole(void **state)
{
        size_t page = stook_os_page_bytes();
        char *before = stook_meta_bump(64, 0), *pages = stook_meta_bump(page + 1, page);
        char *after = stook_meta_bump(64, 0);

        (void)state;
        assert_non_null(before);
        assert_int_equal((uintptr_t)pages % page, 0);
        assert_true(after >= pages + 2 * page);
        for (size_t i = 0; i < 2 * page; i++)
                assert_int_equal(pages[i], 0);
}

#define DESCRIPTORS 20                  /* more than a free one leads back */

static void descriptors_come_back_empty(void **state)
{
        static const char none[STOOK_SPAN_SLAB_BYTES];
        struct stook_span *span[DESCRIPTORS];

        (void)state;
        for (int round = 0; round < 2; round++) {
                for (int i = 0; i < DESCRIPTORS; i++) {
                        span[i] = stook_meta_span_new();
                        assert_non_null(span[i]);
                        assert_memory_equal(span[i]->slab, none, sizeof(none));
                        for (int before = 0; before < i; before++)
                                assert_ptr_not_equal(span[before], span[i]);
                }
                for (int i = 0; i < DESCRIPTORS; i++) {
                        memset(span[i]->slab, 0xff, sizeof(span[i]->slab));
                        stook_meta_span_free(span[i]);
                }
        }
}

static int start(void **state)
{
        (void)state;
        return stook_pages_start() ? 0 : -1;
}

/* Is the mapping that @at lies in to have no huge pages? */
static bool is_without_huge_pages(const void *at)
{
        FILE *file = fopen("/proc/self/smaps", "r");
        unsigned long from, to;
        bool inside = false, without = false;
        char line[512];

        while (file && fgets(line, sizeof line, file)) {
                if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
                        inside = (uintptr_t)at - from < to - from;
                if (inside && !strncmp(line, "VmFlags:", 8))
                        without = strstr(line, " nh");
        }
        if (file)
                fclose(file);
        return without;
}

/* False: the kernel was built without huge pages, or /proc is an emulator's, or missing. */
static bool machine_tells(void)
{
        size_t page = stook_os_page_bytes();
        void *probe = stook_os_reserve(page, page);

        return probe && stook_os_advise(probe, page, STOOK_OS_NOHUGEPAGE) &&
               is_without_huge_pages(probe);
}

static void what_is_large_has_no_huge_pages(void **state)
{
        size_t got = 0;
        char *last;

        (void)state;
        /* Where limits bind, metadata is in small pieces. */
        if (!stook_ranges_beside() || !machine_tells())
                skip();
        do {
                last = stook_meta_bump(32 << 10, 0);
                assert_non_null(last);
        } while ((got += 32 << 10) < 2 << 20);
        assert_true(is_without_huge_pages(last));
        assert_true(is_without_huge_pages((void *)stook_ranges_beside()));
}

/* Whether all of it is in one of the ranges, below its end. */
static bool is_in_a_range(const char *at, size_t bytes)
{
        for (unsigned i = 0; i < STOOK_META_RANGES; i++) {
                const struct stook_meta_range *r = &stook_meta_ranges[i];

                if ((uintptr_t)at >= r->base && (uintptr_t)at + bytes <= r->base + r->size)
                        return true;
        }
        return false;
}

/* The last: nothing is in the range in use any more. */
static void a_full_range_is_followed_by_the_next(void **state)
{
        struct stook_meta_range *used = &stook_meta_ranges[STOOK_META_RANGES - 1], *next;
        size_t large = (size_t)64 << 20, size;
        char *at;

        (void)state;
        while (!used->bump)
                used--;
        next = used + 1;
        size = (used->bump + 100000 + 65535) & ~(size_t)65535;
        if (size < used->size)
                used->size = size;
        for (unsigned i = 0; !next->bump; i++) {
                assert_true(i < 1000);
                at = stook_meta_bump(4000, 0);
                assert_non_null(at);
                assert_true(is_in_a_range(at, 4000));
                memset(at, 1, 4000);
        }
        assert_true(used->bump <= used->size);
        next->size = next->bump;
        at = stook_meta_bump(large, 0);
        assert_non_null(at);
        assert_true(is_in_a_range(at, large));
        memset(at + large - 4096, 1, 4096);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(what_is_larger_than_a_page_leaves_no_gap),
                cmocka_unit_test(the_last_page_is_taken_once),
                cmocka_unit_test(pages_are_whole),
                cmocka_unit_test(descriptors_come_back_empty),
                cmocka_unit_test(what_is_large_has_no_huge_pages),
                cmocka_unit_test(a_full_range_is_followed_by_the_next),
        };

        return cmocka_run_group_tests(all, start, NULL);
}
