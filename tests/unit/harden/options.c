/*
 * What this proves: STOOK_HARDEN asks for what it names, and a text with a name that is none asks
 * for nothing. Run once for each text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache_watch.h"
#include "harden/harden.h"
#include "malloc/malloc.h"

#define USUAL (STOOK_HARDEN_DOUBLE | STOOK_HARDEN_RANDOM | STOOK_HARDEN_GUARD | \
               STOOK_HARDEN_CANARY | STOOK_HARDEN_PAIRS | STOOK_HARDEN_ZERO_SIZE)
#define ZEROS (STOOK_HARDEN_ZERO_FREE | STOOK_HARDEN_ZERO_ALLOC)

static const struct {
        const char *text;
        int by;
} texts[] = {
        { "0", 0 },
        { "1", USUAL },
        { "all", USUAL | ZEROS | STOOK_HARDEN_CHECK_FREE | STOOK_HARDEN_QUARANTINE },
        { "canary", STOOK_HARDEN_CANARY },
        { "pairs", STOOK_HARDEN_PAIRS },
        { "zero-size", STOOK_HARDEN_ZERO_SIZE },
        { "check-free", STOOK_HARDEN_CHECK_FREE | STOOK_HARDEN_ZERO_FREE },
        { "quarantine=100", STOOK_HARDEN_QUARANTINE },
        { "1,quarantine=64K", USUAL | STOOK_HARDEN_QUARANTINE },
        { "quarantine", -1 },
        { "quarantine=", -1 },
        { "quarantine=M", -1 },
        { "quarantine=4T", -1 },
        { "quarantine=4MM", -1 },
        { "quarantine=99999999999999", -1 },
        { "double", STOOK_HARDEN_DOUBLE },
        { "random", STOOK_HARDEN_RANDOM },
        { "guard", STOOK_HARDEN_GUARD },
        { "zero-free", STOOK_HARDEN_ZERO_FREE },
        { "zero-alloc", STOOK_HARDEN_ZERO_ALLOC },
        { "double,zero-free", STOOK_HARDEN_DOUBLE | STOOK_HARDEN_ZERO_FREE },
        { "1,zero-alloc", USUAL | STOOK_HARDEN_ZERO_ALLOC },
        { "", -1 },
        { ",", -1 },
        { "double,", -1 },
        { ",double", -1 },
        { "doubl", -1 },
        { "doubles", -1 },
        { "Double", -1 },
        { "double random", -1 },
        { "double,trouble", -1 },
        { "2", -1 },
};

static int parsed(const char *text)
{
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
                if (!strcmp(texts[i].text, text))
                        return texts[i].by;
        fail_msg("no such text: %s", text);
        return -1;
}

static void texts_mean_what_they_name(void **state)
{
        uint64_t bytes = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
                assert_int_equal(stook_harden_parse(texts[i].text, &bytes), texts[i].by);
        assert_int_equal(stook_harden_parse("double,quarantine=3M", &bytes),
                         STOOK_HARDEN_DOUBLE | STOOK_HARDEN_QUARANTINE);
        assert_int_equal(bytes, 3 << 20);
}

static void the_variable_is_read_at_start(void **state)
{
        int by = parsed(getenv("STOOK_HARDEN"));
        void *object = stook_malloc(100);

        (void)state;
        assert_int_equal(stook_hardened, by < 0 ? 0 : by);
        assert_int_equal(stook_object_cache(object)->watch,
                         by <= 0 || !(by & (STOOK_HARDEN_DOUBLE | ZEROS | STOOK_HARDEN_SEALS))
                                 ? 0 : STOOK_WATCH_HARDEN |
                                   (by & STOOK_HARDEN_SEALS ? STOOK_WATCH_SEAL : 0));
        stook_free(object);
}

static void caches_have_random_order_if_asked(void **state)
{
        struct stook_cache *cache = stook_cache_create("any", 48, NULL);

        (void)state;
        assert_int_equal((cache->flags & STOOK_CACHE_RANDOM_ORDER) != 0,
                         stook_is_hardened(STOOK_HARDEN_RANDOM));
        assert_int_equal(cache->slabs.in_random_order, stook_is_hardened(STOOK_HARDEN_RANDOM));
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Debug modes find what hardening does, and more. */
static void a_cache_with_debug_modes_is_not_hardened(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_CHECK };
        struct stook_cache *cache = stook_cache_create("debugged", 48, &args);

        (void)state;
        assert_int_equal(cache->watch, STOOK_WATCH_DEBUG);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts_mean_what_they_name),
                cmocka_unit_test(the_variable_is_read_at_start),
                cmocka_unit_test(caches_have_random_order_if_asked),
                cmocka_unit_test(a_cache_with_debug_modes_is_not_hardened),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
