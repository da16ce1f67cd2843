/*
 * What this proves: which bytes of a debugged object must be what, in each state: each byte of each
 * zone, of poison, and of the group's word is looked at, and is told when it is wrong; those that
 * belong to others are not. By shapes made by hand, without a cache.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "debug/debug_inside.h"
#include "debug/debug_modes.h"

/* ---- 40 bytes, the group's word, the hidden word, a zone; before them a tail and a zone ---- */

#define BYTES  40
#define WORD   BYTES
#define HIDDEN (WORD + 8)
#define END    (HIDDEN + 8)
#define ZONE   (END + 16)
#define LEFT   16
#define TAIL   48

static _Alignas(16) uint8_t memory[TAIL + ZONE + 16];
static uint8_t *const object = memory + TAIL;
static struct stook_debug debug;

static struct stook_debug_tail *tail(void)
{
        return stook_tail(&debug, object);
}

static int set_up(void **state)
{
        static char a_cache;

        (void)state;
        debug = (struct stook_debug){
                .flags = STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON, .slabs = (void *)&a_cache,
                .object_bytes = BYTES, .words = WORD, .words_end = END, .hidden = HIDDEN,
                .zone_end = ZONE, .tail = -TAIL, .left = LEFT, .accounted = true, .poisons = true,
        };
        memset(memory, 0, sizeof(memory));
        memset(object + WORD, 0x77, 8);
        tail()->word = UINT64_C(0x7777777777777777);
        return 0;
}

static void live(size_t bytes)
{
        stook_debug_set_bytes(&debug, object, bytes);
        stook_debug_fill_zones(&debug, object, bytes, STOOK_BYTE_LIVE);
        stook_debug_set_state(&debug, object, STOOK_STATE_LIVE);
}

static void freed(enum stook_debug_state in)
{
        stook_debug_poison(&debug, object);
        stook_debug_fill_zones(&debug, object, BYTES, STOOK_BYTE_FREE);
        stook_debug_set_state(&debug, object, in);
}

/* With that byte changed: 0: all is well; else the fault, and it is told which byte it is. */
static void assert_fault(ptrdiff_t at, unsigned fault, bool told)
{
        struct stook_wrong wrong;
        uint8_t was = object[at];

        object[at] ^= 0x10;
        assert_int_equal(stook_debug_is_whole(&debug, object, true, &wrong), !told);
        if (told) {
                assert_int_equal(wrong.fault, fault);
                assert_ptr_equal(wrong.at, object + at);
                assert_int_equal(wrong.expected, was);
                assert_false(wrong.lost);
        }
        object[at] = was;
}

static void zones_of_a_live_object(void **state)
{
        (void)state;
        for (size_t bytes = 0; bytes <= BYTES; bytes++) {
                live(bytes);
                for (ptrdiff_t at = 0; at < (ptrdiff_t)bytes; at++)
                        assert_fault(at, 0, false);
                for (ptrdiff_t at = (ptrdiff_t)bytes; at < ZONE; at++)
                        assert_fault(at, STOOK_FAULT_OVERRUN, true);
                for (ptrdiff_t at = -LEFT; at < 0; at++)
                        assert_fault(at, STOOK_FAULT_UNDERRUN, true);
                assert_fault(-LEFT - 1, 0, false);
                assert_fault(ZONE, 0, false);
        }
}

/* RCU links waiting objects by their hidden words. */
static void a_waiting_object(void **state)
{
        (void)state;
        live(BYTES);
        stook_debug_set_state(&debug, object, STOOK_STATE_WAITING);
        for (ptrdiff_t at = HIDDEN; at < END; at++)
                assert_fault(at, 0, false);
        assert_fault(END, STOOK_FAULT_OVERRUN, true);
        assert_fault(WORD, STOOK_FAULT_OVERRUN, true);
}

static void more_bytes_than_there_are(void **state)
{
        struct stook_wrong wrong;

        (void)state;
        live(BYTES);
        stook_debug_set_bytes(&debug, object, 1000);
        assert_true(stook_debug_is_whole(&debug, object, true, &wrong));
        assert_fault(ZONE - 1, STOOK_FAULT_OVERRUN, true);
}

static void a_free_object(void **state)
{
        (void)state;
        freed(STOOK_STATE_FREE);
        for (ptrdiff_t at = 0; at < BYTES; at++)
                assert_fault(at, STOOK_FAULT_WRITE_AFTER_FREE, true);
        for (ptrdiff_t at = WORD; at < HIDDEN; at++)
                assert_fault(at, 0, false);             /* the word of no group */
        for (ptrdiff_t at = HIDDEN; at < ZONE; at++)
                assert_fault(at, STOOK_FAULT_OVERRUN, true);
        for (ptrdiff_t at = -LEFT; at < 0; at++)
                assert_fault(at, STOOK_FAULT_UNDERRUN, true);
        debug.poisons = false;
        for (ptrdiff_t at = 0; at < BYTES; at++)
                assert_fault(at, 0, false);
}

static bool is_whole(bool out)
{
        struct stook_wrong wrong;

        return stook_debug_is_whole(&debug, object, out, &wrong);
}

/* Whether it is out of its slab must go with its state. */
static void states_and_slabs(void **state)
{
        (void)state;
        live(BYTES);
        assert_true(is_whole(true) && !is_whole(false));
        stook_debug_set_state(&debug, object, STOOK_STATE_WAITING);
        assert_true(is_whole(true) && !is_whole(false));
        freed(STOOK_STATE_FREE);
        assert_true(is_whole(true) && is_whole(false));
        freed(STOOK_STATE_QUARANTINED);
        assert_true(is_whole(true) && !is_whole(false));
        object[3] = 1;
        assert_false(is_whole(true));
        stook_debug_set_state(&debug, object, STOOK_STATE_ISOLATED);
        assert_true(is_whole(true) && !is_whole(false));
}

/* Its state was overwritten: what lies around it says what it was. */
static void a_state_that_is_none(void **state)
{
        struct stook_wrong wrong;

        (void)state;
        for (unsigned was_free = 0; was_free < 2; was_free++) {
                if (was_free)
                        freed(STOOK_STATE_FREE);
                else
                        live(BYTES);
                stook_debug_set_state(&debug, object, STOOK_STATE_FREE + 1);
                assert_false(stook_debug_is_whole(&debug, object, true, &wrong));
                assert_true(wrong.lost && !wrong.at);
                assert_int_equal(wrong.fault, STOOK_FAULT_CORRUPT);
                object[-LEFT] ^= 1;
                assert_false(stook_debug_is_whole(&debug, object, true, &wrong));
                assert_true(wrong.lost);
                assert_ptr_equal(wrong.at, object - LEFT);
                assert_int_equal(wrong.fault, STOOK_FAULT_UNDERRUN);
        }
}

static void content_has_each_byte(void **state)
{
        uint64_t sum;

        (void)state;
        sum = stook_debug_content(&debug, object);
        for (unsigned at = 0; at < BYTES; at++) {
                object[at] ^= 1;
                assert_true(stook_debug_content(&debug, object) != sum);
                object[at] ^= 1;
        }
        object[WORD] ^= 1;
        assert_true(stook_debug_content(&debug, object) == sum);
}

/* Of a huge object the first MiB is poisoned. */
static void poison_has_a_bound(void **state)
{
        size_t mib = (size_t)1 << 20;
        uint8_t *huge = calloc(1, 2 * mib);
        struct stook_debug large = { .flags = STOOK_CACHE_POISON, .poisons = true,
                                     .object_bytes = 2 * mib };

        (void)state;
        assert_non_null(huge);
        stook_debug_poison(&large, huge);
        assert_int_equal(huge[mib - 2], STOOK_BYTE_POISON);
        assert_int_equal(huge[mib - 1], STOOK_BYTE_LAST);
        for (size_t at = mib; at < 2 * mib; at += 512)
                assert_int_equal(huge[at], 0);
        free(huge);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(zones_of_a_live_object, set_up),
                cmocka_unit_test_setup(a_waiting_object, set_up),
                cmocka_unit_test_setup(more_bytes_than_there_are, set_up),
                cmocka_unit_test_setup(a_free_object, set_up),
                cmocka_unit_test_setup(states_and_slabs, set_up),
                cmocka_unit_test_setup(a_state_that_is_none, set_up),
                cmocka_unit_test_setup(content_has_each_byte, set_up),
                cmocka_unit_test_setup(poison_has_a_bound, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
