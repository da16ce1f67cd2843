/*
 * What this proves of pages that slab_shrink.c gives back:
 *  - the pages of a slab whose objects are all free lose their content, and no other page does
 *    (G1), also where objects lie across pages;
 *  - a slab is looked at again only when more of it is free;
 *  - constructors run again for what was dropped (G2);
 *  - left alone are type-stable slabs (G3), slabs of few pages, slabs that are half full, and all
 *    slabs while the lock cannot be had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_pages.h"
#include "base/inject.h"
#include "slab/slab_inside.h"

static struct stook_slabs *slabs;
static void *objects[STOOK_SLAB_OBJECTS_MAX];

static void fill(size_t n)
{
        assert_int_equal(stook_slab_fill(slabs, 0, n, objects, STOOK_FILL_ASCENDING), n);
}

/* A slab that is full, each object of its own pattern. Return: objects. */
static size_t one_slab(size_t size)
{
        slabs = fake_source(3, size, 8, false, NULL, NULL);
        fill(slabs->objects);
        for (size_t i = 0; i < slabs->objects; i++)
                memset(objects[i], (int)(i % 255 + 1), size);
        fake_purged_pages = 0;
        return slabs->objects;
}

/* All objects but those from @first to @last. */
static void free_but(size_t first, size_t last)
{
        stook_slab_drain(slabs, first, objects);
        stook_slab_drain(slabs, slabs->objects - last - 1, objects + last + 1);
}

static void give(void) { stook_slabs_give_pages(slabs, 0, 8); }

static void end(size_t first, size_t last)
{
        assert_int_equal(stook_slabs_validate(slabs), 0);
        assert_int_equal(stook_slabs_objects_out(slabs), last - first + 1);
        stook_slab_drain(slabs, last - first + 1, objects + first);
        fake_source_end(slabs);
}

static bool is_page_zero(size_t page)
{
        const char *at = (const char *)((uintptr_t)objects[0] & ~(uintptr_t)(FAKE_PAGE - 1));

        for (size_t i = 0; i < FAKE_PAGE; i++)
                if (at[page * FAKE_PAGE + i])
                        return false;
        return true;
}

/* The page layer decides what becomes of a whole slab. */
static void test_empty_slabs_are_left_alone(void **unused)
{
        size_t n = one_slab(256);

        (void)unused;
        stook_slab_drain(slabs, n, objects);
        assert_int_equal(stook_slabs_count(slabs), 1);
        give();
        assert_int_equal(fake_purged_pages, 0);
        assert_int_equal(stook_slabs_count(slabs), 1);
        fake_source_end(slabs);
}

static void test_free_pages_go(void **unused)
{
        size_t n = one_slab(256), pages = slabs->slab_bytes / FAKE_PAGE;

        (void)unused;
        assert_true(n == 128 && pages == 8);
        free_but(20, 20);                               /* it lies on page 1 */
        give();
        assert_int_equal(fake_purged_pages, 7);
        for (size_t page = 0; page < pages; page++)
                assert_int_equal(is_page_zero(page), page != 1);
        for (size_t i = 0; i < 256; i++)
                assert_int_equal(((uint8_t *)objects[20])[i], 21);
        give();                                         /* nothing more is free */
        assert_int_equal(fake_purged_pages, 7);
        fill(4);                                        /* another look after a take */
        stook_slab_drain(slabs, 4, objects);
        give();
        assert_int_equal(fake_purged_pages, 14);
        objects[20] = (char *)objects[0] + 20 * 256;
        end(20, 20);
}

/* The pages of object @kept of @size bytes stay, and no others. */
static void all_but_one(size_t size, size_t kept)
{
        size_t n = one_slab(size), pages = slabs->slab_bytes / FAKE_PAGE;
        size_t first = kept * size / FAKE_PAGE, last = (kept * size + size - 1) / FAKE_PAGE;

        assert_true(kept < n && n * size > (pages - 1) * FAKE_PAGE);
        free_but(kept, kept);
        give();
        assert_int_equal(fake_purged_pages, pages - (last - first + 1));
        for (size_t page = 0; page < pages; page++)
                assert_int_equal(is_page_zero(page), page < first || page > last);
        for (size_t i = 0; i < size; i++)
                assert_int_equal(((uint8_t *)objects[kept])[i], kept % 255 + 1);
        end(kept, kept);
}

/* Each object lies on one page or two: both stay. */
static void test_objects_across_pages(void **unused)
{
        (void)unused;
        for (size_t kept = 0; kept < 54; kept++)
                all_but_one(600, kept);
}

/* Objects of 48 bytes: those of a page lie in two or three parts. */
static void test_pages_across_parts(void **unused)
{
        (void)unused;
        for (size_t kept = 0; kept < 680; kept += 7)
                all_but_one(48, kept);
}

static void test_what_is_left_alone(void **unused)
{
        (void)unused;
        one_slab(256);
        free_but(30, 62);                               /* more than an eighth is in use */
        give();
        assert_int_equal(fake_purged_pages, 0);
        stook_slab_drain(slabs, 32, objects + 31);
        stook_inject.lock_refuse_every = 1;
        give();
        stook_inject.lock_refuse_every = 0;
        assert_int_equal(fake_purged_pages, 0);
        stook_lock_forbid_waits();
        give();
        stook_lock_allow_waits();
        assert_int_equal(fake_purged_pages, 0);
        slabs->give_later = (void (*)(struct stook_slabs *, struct stook_span *))abort; /* G3 */
        give();
        slabs->give_later = NULL;
        assert_int_equal(fake_purged_pages, 0);
        slabs->slab_bytes = 3 * FAKE_PAGE;              /* few pages */
        give();
        slabs->slab_bytes = 8 * FAKE_PAGE;
        assert_int_equal(fake_purged_pages, 0);
        give();
        assert_int_equal(fake_purged_pages, 7);
        end(30, 30);
}

static size_t constructed;

static void construct(void *object, void *data)
{
        (void)data;
        memset(object, 0x5a, 256);
        constructed++;
}

static size_t dropped_with_mark;

static void look_for_marks(char *addr, size_t bytes)
{
        for (size_t at = 0; at < bytes; at += 256)
                dropped_with_mark += stook_slab_object_made(slabs, addr + at);
}

static void test_constructors_run_again(void **unused)
{
        uint8_t expected[256];
        size_t n;

        (void)unused;
        slabs = fake_source(3, 256, 8, false, construct, NULL);
        n = slabs->objects;
        fill(n);
        assert_int_equal(constructed, n);
        fake_purged_pages = 0;
        free_but(20, 20);
        fake_purge = look_for_marks;
        give();
        fake_purge = NULL;
        assert_int_equal(dropped_with_mark, 0);         /* a fork in the middle finds none, too */
        assert_int_equal(fake_purged_pages, 7);
        void *kept = objects[20];
        fill(n - 1);
        assert_int_equal(constructed, n + 7 * 16);      /* not those of the page that stayed */
        memset(expected, 0x5a, sizeof(expected));
        for (size_t i = 0; i < n - 1; i++)
                assert_memory_equal(objects[i], expected, sizeof(expected));
        objects[n - 1] = kept;
        end(0, n - 1);
}

/*
 * The first objects of a dropped page are handed out again, and what is freed later is given, too.
 */
static void test_again_when_more_is_free(void **unused)
{
        size_t n = one_slab(256);

        (void)unused;
        free_but(20, 24);                               /* one page */
        give();
        assert_int_equal(fake_purged_pages, 7);
        stook_slab_drain(slabs, 4, objects + 21);
        give();
        assert_int_equal(fake_purged_pages, 14);
        assert_int_equal(n, 128);
        end(20, 20);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_empty_slabs_are_left_alone),
                cmocka_unit_test(test_free_pages_go),
                cmocka_unit_test(test_objects_across_pages),
                cmocka_unit_test(test_pages_across_parts),
                cmocka_unit_test(test_what_is_left_alone),
                cmocka_unit_test(test_constructors_run_again),
                cmocka_unit_test(test_again_when_more_is_free),
        };

        fake_start();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
