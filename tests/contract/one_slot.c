/*
 * See one_slot.h.
 */
#include <sched.h>
#include <string.h>
#include "one_slot.h"
#include "base/inject.h"
#include "evacuate/evacuate.h"
#include "pages/meta.h"

#define OBJECTS  400
#define INDEX    3

struct stook_slabs    slabs = { .cache_index = INDEX, .stride = 64, .object_size = 64 };
struct stook_counters counters;
struct stook_barns    barns;
struct stook_front    front = { .offset = INDEX << STOOK_LINE_SHIFT, .below = &barns };
const struct stook_section_ops *ops;

struct stook_sheaf *main_now(void)  { return (struct stook_sheaf *)ops->look(front.offset).lo; }
struct stook_sheaf *spare_now(void) { return (struct stook_sheaf *)ops->look(front.offset).hi; }

void on_double(struct stook_front *f, void *object)
{
        (void)f;
        fail_msg("%p is no double free", object);
}

uint64_t counted(enum stook_counter which)
{
        return stook_counted(&counters, which);
}

unsigned fulls(void)   { return stook_tagged_stack_count_racy(&barns.node[0].full); }
unsigned empties(void) { return stook_tagged_stack_count_racy(&barns.node[0].empty); }

struct stook_sheaf *sheaf_of(unsigned size)
{
        struct stook_sheaf *s = stook_sheaf_new(INDEX, CAPACITY, 0, &counters);

        assert_non_null(s);
        assert_int_equal(stook_slab_fill(&slabs, 0, size, s->objects, 0), size);
        stook_sheaf_set_size(s, size);
        return s;
}

static void throw_away(struct stook_sheaf *s)
{
        if (!s || s == ZERO)
                return;
        stook_barn_flush(&barns, s);
        stook_sheaf_delete(s, &counters);
}

/* A test may be preempted inside a section: that is a refusal, too. */
void set(struct stook_sheaf *main, struct stook_sheaf *spare)
{
        struct stook_pair was, to = { (uintptr_t)main, (uintptr_t)spare };

        do
                was = ops->look(front.offset);
        while (!ops->exchange(front.offset, was, to, stook_sheaf_size((void *)was.lo), NULL, 0));
        throw_away((void *)was.lo);
        throw_away((void *)was.hi);
}

void begin(unsigned limit)
{
        fake_slab_start(OBJECTS);
        memset(&counters, 0, sizeof(counters));
        memset(&stook_inject, 0, sizeof(stook_inject));
        stook_inject.sheaf_fail_every = 0;
        front.config = 0;
        assert_int_equal(stook_barns_init(&barns, &slabs, &counters, CAPACITY, limit, limit), 0);
}

void check_nothing_lost(void)
{
        struct stook_sheaf_sums sums;

        memset(&stook_inject, 0, sizeof(stook_inject));
        fake_slab_fail_after = -1;
        stook_inject.sheaf_fail_every = 0;
        front.config = 0;
        barns.capacity = CAPACITY;
        assert_true(stook_evacuate_cache(&front));
        stook_barn_empty_all(&barns);
        assert_int_equal(fake_slab_out(), 0);
        assert_int_equal(fake_slab_faults, 0);
        stook_sheaf_sum(INDEX, &sums);
        assert_int_equal(sums.sheaves, 0);
}

/* An object that a user has. */
void *users(void)
{
        void *object;

        assert_int_equal(stook_slab_fill(&slabs, 0, 1, &object, 0), 1);
        return object;
}

int start(void **state)
{
        (void)state;
        begin(3);
        return 0;
}

int start_slots(void **state)
{
        cpu_set_t one;

        (void)state;
        CPU_ZERO(&one);
        CPU_SET((unsigned)sched_getcpu(), &one);        /* one slot */
        if (sched_setaffinity(0, sizeof(one), &one))
                return -1;
        if (!stook_meta_start() || !stook_slots_start())
                return -1;
        ops = stook_slot_ops();
        return stook_slots_add_cache(INDEX) ? 0 : -1;
}
