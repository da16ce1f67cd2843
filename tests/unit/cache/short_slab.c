/*
 * Proves what a free behind the last object of a short slab does. Where memory is scarce a slab may
 * have fewer objects than the others of its cache. The first place behind its last object looks
 * like an object to a free, which goes by the cache's usual slabs. It is noticed when the sheaf
 * is flushed: the report names the address, and no count changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>
#include "base/inject.h"
#include "cache/cache.h"
#include "os/os.h"
#include "pages/span.h"

#define PAGES_MOST 300000
#define BYTES      1000

static struct stook_span *pages[PAGES_MOST];
static char expected[200];
static unsigned reports, named;

static void note_report(const struct stook_report *report, void *data)
{
        (void)data;
        reports++;
        named += strstr(report->text, expected) && strstr(report->text, "behind the slab's last");
}

/* What is free is single pages from now on, @keep of them. */
static unsigned leave_single_pages(unsigned keep)
{
        unsigned n = 0;

        stook_inject.commit_fail_from = 1;
        while (n < PAGES_MOST && (pages[n] = stook_span_take(0, stook_os_page_bytes(), 0)))
                n++;
        assert_in_range(n, 2 * keep, PAGES_MOST - 1);
        for (unsigned i = 0; i < keep; i++) {
                stook_span_give(pages[2 * i]);
                pages[2 * i] = NULL;
        }
        return n;
}

static void give_pages(unsigned n)
{
        stook_inject.commit_fail_from = 0;
        for (unsigned i = 0; i < n; i++)
                if (pages[i])
                        stook_span_give(pages[i]);
}

static void a_free_behind_the_last_is_found_at_the_flush(void **state)
{
        struct stook_cache *cache = stook_cache_create("short", BYTES, NULL);
        size_t slab = stook_os_page_bytes(), before;
        unsigned n;
        char *object, *behind;

        (void)state;
        assert_non_null(cache);
        if (cache->slabs.slab_bytes <= slab)
                skip();                         /* pages so large that no slab is shorter */
        stook_cache_free(cache, stook_cache_alloc(cache));      /* sheaves are there */
        assert_int_equal(stook_cache_shrink(cache), 0);
        n = leave_single_pages(16);
        object = stook_cache_alloc(cache);
        assert_non_null(object);
        assert_true(stook_counted(&cache->counters, STOOK_STAT_order_fallback) > 0);
        behind = (char *)((uintptr_t)object & -slab) + slab / BYTES * BYTES;
        assert_ptr_equal(stook_object_cache(object), cache);
        snprintf(expected, sizeof(expected), "interior pointer: pointer %p (cache short, ", behind);
        before = stook_slabs_objects_out(&cache->slabs);

        stook_cache_free(cache, behind);
        assert_int_equal(reports, 0);
        assert_int_equal(stook_cache_shrink(cache), 1);
        assert_int_equal(reports, 1);
        assert_int_equal(named, 1);
        assert_in_range(stook_slabs_objects_out(&cache->slabs), 1, before);
        assert_int_equal(stook_cache_validate(cache), 0);

        stook_cache_free(cache, object);
        give_pages(n);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(reports, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_free_behind_the_last_is_found_at_the_flush),
        };

        stook_on_report(note_report, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
