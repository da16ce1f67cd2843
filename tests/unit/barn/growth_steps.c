/*
 * What this proves: barn_room.c I3 at every instruction of a growth: a shrink there leaves
 * nothing booked. Nor does a cache that ends. I5: what a tuner sets at any instruction of a growth
 * or of a shrink stays, and nothing is booked. And a cache that a growth was jumped out of at any
 * instruction gets its first sheaves later. The processor's trap flag stops after each instruction.
 */
#include "unit/barn/fixture.h"

#if defined(__x86_64__)

#include <setjmp.h>
#include <signal.h>

#include "trap_flag.h"

#define STRIDE 30000
enum { CACHES = 40 };

static struct fake_cache *grows, *others[CACHES];
static unsigned step, shrink_at;
static unsigned tuned_capacity, tuned_limit;

/* Of bytes in a slot: how much of the budget for few objects is left. */
static size_t left(void)
{
        size_t sum = 0;

        for (int round = 0; round < 4; round++)
                for (unsigned i = 0; i < CACHES; i++)
                        swing_in_slots(others[i]);
        for (unsigned i = 0; i < CACHES; i++) {
                sum += 2 * (stook_barns_capacity(&others[i]->barns) - 1) * (size_t)STRIDE;
                stook_barns_shrink(&others[i]->barns);
        }
        return sum;
}

/* The budget is 2 MiB then, of which steps of STRIDE leave less than one. */
static void make_others(void)
{
        pages_taken = 0;
        for (unsigned i = 0; i < CACHES; i++)
                others[i] = make_few(940 + i, 1, STRIDE);
}

static void at_each_instruction(int signal)
{
        (void)signal;
        if (step++ == shrink_at)
                stook_barns_shrink(&grows->barns);
}

/* The last swing of those that make the cache grow. False: it has fewer instructions. */
static bool grow_with_a_shrink_at(unsigned instruction)
{
        for (int i = 0; i < 15; i++)
                get_from_barn(grows);
        step = 0;
        shrink_at = instruction;
        TRAP_FLAG_ON();
        get_from_barn(grows);
        TRAP_FLAG_OFF();
        return step > instruction;
}

static void a_shrink_in_a_growth_leaves_nothing_booked(void **state)
{
        unsigned instruction = 0;
        size_t whole;

        (void)state;
        make_others();
        grows = make_few(939, 1, STRIDE);
        whole = left();
        assert_true(whole > 0);
        signal(SIGTRAP, at_each_instruction);
        while (grow_with_a_shrink_at(instruction++)) {
                stook_barns_shrink(&grows->barns);
                assert_int_equal(stook_barns_capacity(&grows->barns), 1);
                assert_int_equal(left(), whole);
        }
        assert_true(instruction > 40);
}

/* ---- a tuner ---- */

enum { CAPACITY = 1, WIDER = 4 };       /* as set; after a growth */

static void tune_at_each_instruction(int signal)
{
        (void)signal;
        if (step++ == shrink_at)
                stook_barns_set(&grows->barns, tuned_capacity, tuned_limit, 3);
}

static void swing_in_steps(void)
{
        for (int i = 0; i < 15; i++)
                get_from_barn(grows);
        TRAP_FLAG_ON();
        get_from_barn(grows);
        TRAP_FLAG_OFF();
}

/* Of a capacity that is fixed: the room alone grows. */
static void widen_in_steps(void)
{
        stook_barns_set(&grows->barns, CAPACITY, 10, 10);
        stook_barns_let_room_grow(&grows->barns);
        for (int i = 0; i < 16; i++)
                flush(grows);
        for (int i = 0; i < 15; i++)
                refill(grows);
        TRAP_FLAG_ON();
        refill(grows);
        TRAP_FLAG_OFF();
}

static void shrink_in_steps(void)
{
        swing_in_slots(grows);
        assert_int_equal(stook_barns_capacity(&grows->barns), WIDER);
        TRAP_FLAG_ON();
        stook_barns_shrink(&grows->barns);
        TRAP_FLAG_OFF();
}

/* The number of instructions. */
static unsigned tune_in(void (*change)(void), unsigned capacity, unsigned limit)
{
        unsigned at = 0;

        tuned_capacity = capacity;
        tuned_limit = limit;
        do {
                stook_barns_set(&grows->barns, CAPACITY, 10, 10);
                stook_barns_let_grow(&grows->barns);
                step = 0;
                shrink_at = at;
                change();
                if (step > at) {
                        assert_int_equal(stook_barns_capacity(&grows->barns), capacity);
                        assert_int_equal(grows->barns.full_limit, limit);
                }
        } while (step > at++);
        return at;
}

static void what_a_tuner_sets_in_a_change_stays(void **state)
{
        static void (*const changes[])(void) = { swing_in_steps, widen_in_steps, shrink_in_steps };
        size_t whole;

        (void)state;
        make_others();
        grows = make_few(939, CAPACITY, STRIDE);
        whole = left();
        signal(SIGTRAP, tune_at_each_instruction);
        for (unsigned i = 0; i < 3; i++)
                assert_true(tune_in(changes[i], CAPACITY, 3) > 40);     /* as it was; narrower */
        assert_true(tune_in(swing_in_steps, WIDER, 2) > 40);            /* as the growth's */
        stook_barns_set(&grows->barns, CAPACITY, 10, 10);
        assert_int_equal(left(), whole);
}

static void caches_that_end_leave_nothing_booked(void **state)
{
        size_t whole;

        (void)state;
        make_others();
        whole = left();
        for (unsigned i = 0; i < 100; i++) {
                struct fake_cache *c = make_few(939, 0, STRIDE);

                swing_in_slabs(c);
                assert_int_equal(stook_barns_capacity(&c->barns), 1);
                swing_in_slabs(c);
                assert_int_equal(stook_barns_capacity(&c->barns), 4);
                stook_barns_end(&c->barns);
        }
        assert_int_equal(left(), whole);
}

/* ---- a jump ---- */

static sigjmp_buf away;

static void jump_at_an_instruction(int signal)
{
        (void)signal;
        if (step++ == shrink_at)
                siglongjmp(away, 1);
}

/* False: the growth has fewer instructions, and took place. */
static bool jump_out_of_first_step(struct fake_cache *c, unsigned instruction)
{
        for (int i = 0; i < 16; i++)
                flush(c);
        for (int i = 0; i < 15; i++)
                refill(c);
        step = 0;
        shrink_at = instruction;
        if (sigsetjmp(away, 1))
                return true;
        TRAP_FLAG_ON();
        refill(c);
        TRAP_FLAG_OFF();
        return false;
}

/* What was booked stays so: little, of objects of 64 bytes. */
static void a_first_step_is_taken_after_a_jump(void **state)
{
        unsigned instruction = 0;
        struct fake_cache *c;
        bool jumped;

        (void)state;
        signal(SIGTRAP, jump_at_an_instruction);
        do {
                c = make_few(938, 0, 64);
                jumped = jump_out_of_first_step(c, instruction++);
                swing_in_slabs(c);
                assert_true(stook_barns_capacity(&c->barns) > 0);
                stook_barns_end(&c->barns);
        } while (jumped);
        assert_true(instruction > 40);
}

int main(void)
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test_setup(a_shrink_in_a_growth_leaves_nothing_booked, setup),
                cmocka_unit_test_setup(what_a_tuner_sets_in_a_change_stays, setup),
                cmocka_unit_test_setup(caches_that_end_leave_nothing_booked, setup),
                cmocka_unit_test_setup(a_first_step_is_taken_after_a_jump, setup),
        };

        return cmocka_run_group_tests(all, NULL, NULL);
}

#else

int main(void)
{
        print_message("single steps need x86-64's trap flag\n");
        return 77;
}

#endif
