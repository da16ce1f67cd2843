/*
 * What this proves: with mode U it is known of an object by which calls it was allocated and freed,
 * and of the life before; of a free that waits for readers it is the free that is known, not the
 * end of the wait; a fault that is found when an object is freed is not laid to an earlier free.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "debug/debug_inside.h"
#include "debug/debug_modes.h"
#include "one_cpu.h"
#include "watch/watch.h"

#define MODES (STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE | STOOK_CACHE_STORE_USER)
#define SITE  static __attribute__((noinline))

static struct stook_cache *cache;

/* What follows each call keeps it from being a jump, and the functions from being one. */
SITE void *alloc_first(void)
{
        void *object = stook_cache_alloc(cache);

        __asm__ volatile("# first");
        return object;
}

SITE void *alloc_second(void)
{
        void *object = stook_cache_alloc(cache);

        __asm__ volatile("# second");
        return object;
}

SITE void free_first(void *object)
{
        stook_cache_free(cache, object);
        __asm__ volatile("# first free");
}

SITE void free_later(void *object)
{
        assert_int_equal(stook_cache_free_rcu(cache, object), 0);
        __asm__ volatile("# by rcu");
}

static struct stook_report_about known(const void *object, enum stook_fault fault)
{
        struct stook_report_about about = { .fault = fault };

        stook_debug_add_tracks(stook_cache_debug(cache), object, &about);
        return about;
}

static uint32_t stack_of(const struct stook_report_track *track)
{
        assert_non_null(track);
        assert_int_not_equal(track->stack, 0);
        assert_int_not_equal(track->thread, 0);
        return track->stack;
}

static void create(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = MODES | flags };

        cache = stook_cache_create("tracked", 100, &args);
        assert_non_null(cache);
}

/* The same object again. */
static void *again(void *(*alloc)(void), const void *object)
{
        void *other = alloc();

        assert_ptr_equal(other, object);
        return other;
}

static void this_life_and_the_one_before(void **state)
{
        uint32_t first, second, freed;
        struct stook_report_about about;
        void *object;

        (void)state;
        create(0);
        object = alloc_first();
        about = known(object, STOOK_FAULT_OVERRUN);
        first = stack_of(about.allocated);
        assert_null(about.freed);
        assert_int_equal(about.object_bytes, 100);
        assert_int_equal(about.requested_bytes, 100);
        free_first(object);
        about = known(object, STOOK_FAULT_WRITE_AFTER_FREE);
        assert_int_equal(stack_of(about.allocated), first);
        freed = stack_of(about.freed);
        assert_null(about.allocated_before);
        assert_null(about.freed_before);
        again(alloc_second, object);
        about = known(object, STOOK_FAULT_WRITE_AFTER_FREE);
        second = stack_of(about.allocated);
        assert_int_not_equal(second, first);
        assert_null(about.freed);
        assert_int_equal(stack_of(about.allocated_before), first);
        assert_int_equal(stack_of(about.freed_before), freed);
        about = known(object, STOOK_FAULT_DOUBLE_FREE);
        assert_int_equal(stack_of(about.allocated_before), first);
        /* Of an overrun the last life is no matter. */
        assert_null(known(object, STOOK_FAULT_OVERRUN).allocated_before);
        free_first(object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void a_fault_is_of_this_life(void **state)
{
        char *object;

        (void)state;
        assert_int_equal(stook_option_set("on_fault", "isolate"), 0);
        create(0);
        object = alloc_first();
        free_first(object);
        object = again(alloc_second, object);
        object[104] = 1;
        free_first(object);                             /* reported, and isolated */
        assert_non_null(known(object, STOOK_FAULT_OVERRUN).allocated);
        assert_null(known(object, STOOK_FAULT_OVERRUN).freed);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_option_set("on_fault", "abort"), 0);
}

static struct stook_rcu_head *waiting[16];
static void (*over[16])(struct stook_rcu_head *head);
static unsigned waits;

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        assert_true(waits < 16);
        waiting[waits] = head;
        over[waits++] = done;
}

static void grace(void)
{
        while (waits) {
                waits--;
                over[waits](waiting[waits]);
        }
}

static void a_wait_keeps_the_free(void **state)
{
        uint32_t freed;
        void *object;

        (void)state;
        create(STOOK_CACHE_RCU);
        object = alloc_first();
        free_later(object);
        freed = stack_of(known(object, STOOK_FAULT_DOUBLE_FREE).freed);
        stook_cache_rcu_barrier(cache);
        assert_int_equal(stack_of(known(object, STOOK_FAULT_WRITE_AFTER_FREE).freed), freed);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static int set_up(void **state)
{
        static const struct stook_rcu by_hand = { .ops_size = sizeof(by_hand), .call = call,
                                                  .barrier = grace };

        (void)state;
        return stook_rcu_use(&by_hand);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(this_life_and_the_one_before),
                cmocka_unit_test(a_fault_is_of_this_life),
                cmocka_unit_test(a_wait_keeps_the_free),
        };

        stay_on_one_cpu();
        return cmocka_run_group_tests(tests, set_up, NULL);
}
