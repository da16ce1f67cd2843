/*
 * What this proves: when a page request fails, and all later ones too, each call returns NULL,
 * -ENOMEM or success and does not crash. Nothing is lost or leaked. The heap works again when there
 * is memory.
 * The first request to fail is the n-th, for every n until a whole round needs fewer than n
 * requests.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "barn/sheaf.h"
#include "base/inject.h"
#include "pages/span.h"

#define OBJECTS 500

static const size_t sizes[] = { 16, 64, 200, 1000, 5000, 40000 };
#define KINDS (sizeof(sizes) / sizeof(*sizes))

/* Objects obtained, all of them freed again. */
static unsigned round_of(struct stook_cache **caches)
{
        static void *objects[KINDS][OBJECTS], *bulk[OBJECTS];
        unsigned got = 0;

        for (size_t k = 0; k < KINDS; k++)
                for (size_t i = 0; i < OBJECTS / (1 + k * k); i++) {
                        errno = 0;
                        objects[k][i] = i & 1 ? stook_cache_alloc(caches[k])
                                              : stook_malloc(sizes[k]);
                        if (objects[k][i])
                                memset(objects[k][i], 0x5a, sizes[k]), got++;
                        else
                                assert_int_equal(errno, ENOMEM);
                }
        for (size_t k = 0; k < KINDS; k++) {
                size_t n = OBJECTS / (1 + k * k);
                int answer = stook_cache_alloc_bulk(caches[k], STOOK_ALLOC_ZERO, n, bulk);

                assert_true(answer == 0 || answer == -ENOMEM);
                if (!answer) {
                        got += (unsigned)n;
                        stook_cache_free_bulk(k & 1 ? caches[k] : NULL, n, bulk);
                }
        }
        for (size_t k = 0; k < KINDS; k++)
                for (size_t i = 0; i < OBJECTS / (1 + k * k); i++) {
                        if (i & 1) {
                                stook_cache_free(caches[k], objects[k][i]);
                        } else {
                                void *larger = stook_realloc(objects[k][i], sizes[k] * 3);

                                if (larger)
                                        stook_free(larger);
                                else
                                        stook_free(objects[k][i]);
                        }
                }
        return got;
}

static void make_all(struct stook_cache **caches)
{
        for (size_t k = 0; k < KINDS; k++) {
                caches[k] = stook_cache_create("oom", sizes[k], NULL);
                assert_non_null(caches[k]);
        }
}

static void destroy_all(struct stook_cache **caches)
{
        for (size_t k = 0; k < KINDS; k++) {
                struct stook_cache_stats s = { .stats_size = sizeof(s) };

                assert_int_equal(stook_cache_validate(caches[k]), 0);
                assert_int_equal(stook_cache_get_stats(caches[k], &s), 0);
                assert_int_equal(s.objects_live, 0);
                assert_int_equal(s.objects_cached, s.sheaf_refill + s.free_fastpath -
                                                           s.alloc_fastpath - s.sheaf_flush);
                assert_int_equal(stook_cache_destroy(caches[k]), 0);
        }
}

static unsigned everything(void)
{
        struct stook_cache *caches[KINDS];
        unsigned got;

        make_all(caches);
        got = round_of(caches);
        destroy_all(caches);
        return got;
}

static void each_page_request_fails_once(void **state)
{
        struct stook_cache *caches[KINDS];
        unsigned all = everything(), got;
        long n = 0;

        (void)state;
        stook_trim(0);
        do {
                make_all(caches);
                stook_inject.span_fail_from = ++n;
                got = round_of(caches);
                stook_inject.span_fail_from = 0;
                assert_int_equal(round_of(caches), all);
                destroy_all(caches);
                stook_trim(0);
                assert_in_range(n, 1, 100000);
        } while (got < all);
        assert_true(n > 10);
        printf("%ld page requests\n", n);
}

static void sheaves_fail(void **state)
{
        unsigned all = everything();

        (void)state;
        /* Without sheaves every call falls through to the slabs: none fails. */
        for (uint32_t every = 1; every < 20; every++) {
                stook_inject.sheaf_fail_every = every;
                assert_int_equal(everything(), all);
        }
        stook_inject.sheaf_fail_every = 0;
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(each_page_request_fails_once),
                cmocka_unit_test(sheaves_fail),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}
