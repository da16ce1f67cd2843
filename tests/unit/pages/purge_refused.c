/*
 * What this proves: pages that the system refuses to purge, as it does for locked memory, keep what
 * was written to them, so they are not handed out as zeros, not counted as purged, and not lost:
 * they serve again. The same holds for a span that is a mapping of its own.
 */
#include <sys/mman.h>

#include "pages_env.h"

#define BYTES ((size_t)1 << 20)
#define OWN   (STOOK_SPAN_OWN_MAPPING + ((size_t)1 << 20))
#define SPANS 4

static struct stook_span *take_locked(size_t bytes)
{
        struct stook_span *span = stook_span_take(0, bytes, 0);

        assert_non_null(span);
        memset((void *)span->start, 0xee, bytes);
        if (mlock((void *)span->start, bytes)) {
                stook_span_give(span);
                return NULL;
        }
        return span;
}

static void assert_zeros_are_zeros(size_t bytes)
{
        struct stook_span *span = stook_span_take(0, bytes, 0);
        const char *at;

        assert_non_null(span);
        at = (const char *)span->start;
        for (size_t i = 0; stook_span_is_zero(span) && i < bytes; i += 512)
                assert_int_equal(at[i], 0);
        stook_span_give(span);
}

static void what_the_system_keeps_is_not_zero(void **state)
{
        struct stook_span *spans[SPANS];
        uintptr_t last = 0;
        bool again = false;

        (void)state;
        for (unsigned i = 0; i < SPANS; i++) {
                spans[i] = take_locked(BYTES);
                if (!spans[i])
                        skip();
                last = spans[i]->start;
        }
        for (unsigned i = 0; i < SPANS; i++)
                stook_span_give(spans[i]);
        assert_int_equal(stook_pages_taken(0), 0);
        assert_int_equal(stook_pages_purge(0), 0);
        assert_sound();
        for (unsigned i = 0; i < SPANS; i++)
                assert_zeros_are_zeros(BYTES);
        for (unsigned i = 0; i < SPANS; i++) {
                spans[i] = stook_span_take(0, BYTES, 0);
                again |= spans[i]->start == last;
        }
        assert_true(again);                             /* none is lost */
        for (unsigned i = 0; i < SPANS; i++)
                stook_span_give(spans[i]);
        munlockall();
        assert_true(stook_pages_purge(0) >= SPANS * BYTES);
        assert_sound();
}

static void what_the_system_keeps_of_a_mapping_is_not_zero(void **state)
{
        struct stook_span *span = take_locked(OWN);

        (void)state;
        if (!span)
                skip();
        stook_span_give(span);
        assert_int_equal(stook_pages_taken(0), 0);
        assert_zeros_are_zeros(OWN / 2);
        assert_zeros_are_zeros(OWN);
        assert_sound();
        munlockall();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_the_system_keeps_is_not_zero),
                cmocka_unit_test(what_the_system_keeps_of_a_mapping_is_not_zero),
        };

        if (!stook_pages_start())
                return 77;
        stook_pages_set_decay_ms(UINT32_MAX / 4);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
