/*
 * What this proves: where the parts of a debugged object lie, for all modes and many shapes: zones
 * and tail have room and do not overlap those of the neighbours; which caches are poisoned; which
 * modes the letter O takes away, and from which objects; the same for large objects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "debug/debug_inside.h"
#include "debug/debug_modes.h"
#include "os/os.h"

#define F STOOK_CACHE_CHECK
#define Z STOOK_CACHE_RED_ZONE
#define P STOOK_CACHE_POISON
#define U STOOK_CACHE_STORE_USER
#define V STOOK_DEBUG_V
#define O STOOK_DEBUG_O
#define PAGE 4096

/* ---- fakes ---- */

static size_t zone = 16;
static unsigned noted;

size_t stook_os_page_bytes(void) { return PAGE; }
size_t stook_debug_zone_bytes(void) { return zone; }
void stook_debug_note_process(void) { noted++; }
bool stook_debug_is_state(uint32_t state) { return state == STOOK_STATE_LIVE; }

/* ---- caches ---- */

static size_t round_up(size_t n, size_t to)
{
        return (n + to - 1) & ~(to - 1);
}

static struct stook_debug_args args_of(uint64_t flags, size_t bytes, size_t words, size_t align)
{
        return (struct stook_debug_args){
                .flags = flags, .name = "x", .object_bytes = bytes, .words = bytes,
                .words_end = bytes + words, .align = align,
        };
}

static void assert_has_room(uint64_t flags, size_t bytes, size_t words, size_t align)
{
        struct stook_debug_args args = args_of(flags, bytes, words, align);
        size_t tail = flags & U ? sizeof(struct stook_debug_tail) : STOOK_TAIL_BYTES;
        bool zones = flags & (Z | V);
        struct stook_debug debug;
        size_t more = stook_debug_init(&debug, &args), stride, before;

        assert_int_equal(debug.flags, flags);
        assert_int_equal(debug.object_bytes, bytes);
        assert_int_equal(more, (zones ? 2 * zone : 0) + tail);
        /* Behind an object its zone ends where what is before the next one begins. */
        stride = round_up(round_up(bytes + words, 8) + more, align);
        assert_true(debug.tail < 0 && debug.tail % 8 == 0);
        before = (size_t)-debug.tail;
        assert_int_equal(debug.zone_end + before, stride);
        assert_int_equal(debug.zone_end, round_up(bytes + words, 8) + (zones ? zone : 0));
        assert_true(debug.left + tail <= before);
        if (zones)
                assert_in_range(debug.left, zone, zone > 32 ? zone : 32);
        else
                assert_int_equal(debug.left, 0);
}

static void every_part_has_room(void **state)
{
        static const uint64_t flags[] = { F, Z, P, U, V, F | U, Z | U, F | Z | P | U, Z | V };
        static const size_t aligns[] = { 8, 16, 64, 256, 4096 }, zones[] = { 16, 48, 512 };

        (void)state;
        for (size_t z = 0; z < 3; z++)
                for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
                        for (size_t a = 0; a < 5; a++)
                                for (size_t bytes = 1; bytes < 600; bytes += 7) {
                                        zone = zones[z];
                                        assert_has_room(flags[f], bytes, 0, aligns[a]);
                                        assert_has_room(flags[f], bytes, 8, aligns[a]);
                                }
        zone = 16;
}

static struct stook_debug made(struct stook_debug_args args)
{
        struct stook_debug debug;

        stook_debug_init(&debug, &args);
        return debug;
}

static void construct(void *object, void *data)
{
        (void)object;
        (void)data;
}

static void some_are_not_poisoned_or_closed(void **state)
{
        struct stook_debug_args args = args_of(P | V, 64, 0, 16);

        (void)state;
        assert_true(made(args).poisons && made(args).closes);
        args.stable = true;
        assert_false(made(args).poisons || made(args).closes);
        args.stable = false;
        args.ctor = construct;
        assert_true(!made(args).poisons && made(args).closes);
        args = args_of(F, 64, 0, 16);
        assert_false(made(args).poisons || made(args).closes);
        noted = 0;
        made(args);
        assert_int_equal(noted, 1);
        args.flags = 0;
        made(args);
        assert_int_equal(noted, 1);
}

/* Modes that need room go where it would be a page more. Others stay. */
static void what_o_takes_away(void **state)
{
        uint64_t all = F | Z | P | U | O;

        (void)state;
        assert_int_equal(made(args_of(all, 64, 0, 16)).flags, all);
        assert_int_equal(made(args_of(all, PAGE, 0, 16)).flags, F | O);
        assert_int_equal(made(args_of(all, PAGE - 16, 0, 16)).flags, F | O);
        assert_int_equal(made(args_of(F | Z | P | U, PAGE, 0, 16)).flags, F | Z | P | U);
        /* The room that its alignment leaves is there anyway. */
        assert_int_equal(made(args_of(all, PAGE + 64, 0, 16)).flags, all);
        assert_int_equal(made(args_of(O | Z, PAGE - 32 - STOOK_TAIL_BYTES, 0, 16)).flags, O | Z);
        assert_int_equal(made(args_of(O | Z, PAGE - 24 - STOOK_TAIL_BYTES, 0, 16)).flags, O);
        /* Without zones nothing lies around it. */
        assert_int_equal(made(args_of(all, PAGE, 0, 16)).left, 0);
}

/* ---- large objects ---- */

static void large_objects(void **state)
{
        size_t tail = STOOK_TAIL_BYTES, with_user = sizeof(struct stook_debug_tail);
        struct stook_debug debug;

        (void)state;
        assert_int_equal(stook_debug_large_room(0), 0);
        assert_int_equal(stook_debug_large_room(Z), zone + tail);
        assert_int_equal(stook_debug_large_room(F | U), zone + with_user);
        /* The tail at the end. */
        stook_debug_init_large(&debug, Z | P, NULL, 5000, 3 * PAGE, 0);
        assert_int_equal(debug.tail, 3 * PAGE - tail);
        assert_int_equal(debug.zone_end, debug.tail);
        assert_int_equal(debug.left, 0);
        assert_int_equal(debug.object_bytes, 5000);
        assert_true(debug.poisons && !debug.closes);
        /* At the beginning, with the zone behind it. */
        stook_debug_init_large(&debug, Z | U | V, NULL, 5000, 3 * PAGE, PAGE);
        assert_int_equal(debug.tail, -PAGE);
        assert_int_equal(debug.left, PAGE - with_user);
        assert_int_equal(debug.zone_end, 2 * PAGE);
        assert_true(!debug.poisons && debug.closes);
        stook_debug_init_large(&debug, Z, NULL, 0, PAGE, 0);
        assert_int_equal(debug.object_bytes, 1);
        stook_debug_init_large(&debug, Z, NULL, 5 * PAGE, PAGE, 0);
        assert_int_equal(debug.object_bytes, PAGE - tail);
}

/* Of one that was made its tail says how much is the user's, if that was not overwritten. */
static void large_objects_that_were_made(void **state)
{
        static _Alignas(64) char memory[2 * PAGE];
        struct stook_debug debug;

        (void)state;
        stook_debug_init_large(&debug, Z, NULL, 100, PAGE, 0);
        stook_debug_set_bytes(&debug, memory, 777);
        stook_debug_set_state(&debug, memory, STOOK_STATE_LIVE);
        stook_debug_init_large(&debug, Z, memory, 100, PAGE, 0);
        assert_int_equal(debug.object_bytes, 777);
        stook_debug_set_state(&debug, memory, STOOK_STATE_FREE + 1);
        stook_debug_init_large(&debug, Z, memory, 100, PAGE, 0);
        assert_int_equal(debug.object_bytes, PAGE - STOOK_TAIL_BYTES);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_part_has_room),
                cmocka_unit_test(some_are_not_poisoned_or_closed),
                cmocka_unit_test(what_o_takes_away),
                cmocka_unit_test(large_objects),
                cmocka_unit_test(large_objects_that_were_made),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
