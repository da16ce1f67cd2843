/*
 * What this proves: validation finds each fault that it names (validate_slabs.c C1-C4), one at a
 * time. A walk over the objects that are out finds these, and no other. An object may be asked for
 * while its slab is released. None counts as constructed before its constructor ran.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_pages.h"
#include "pages/pagemap.h"
#include "report/report.h"
#include "slab/slab_state.h"

static void *base_of(const void *object)
{
        return stook_slab_base(
                stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)object))));
}

/* Each fault that validation knows, one at a time. */
static void test_validate_finds(void **unused)
{
        struct stook_slabs *victim = fake_source(8, 320, 8, false, NULL,
                                                 NULL); /* two parts and more */
        struct stook_slab *slab;
        struct stook_pair part;
        void *o[20], *copy[20];

        (void)unused;
        stook_slab_fill(victim, 0, 20, o, 0);
        slab = stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)o[0])));
        stook_slab_drain(victim, 10, memcpy(copy, o, sizeof(o)));
        assert_int_equal(stook_slabs_validate(victim), 0);
        for (unsigned p = 0; p < slab->part_count; p++) {
                part = *stook_slab_part(slab, p);
                stook_slab_part(slab, p)->lo |= STOOK_PART_CLAIM;          /* C2 */
                assert_int_equal(stook_slabs_validate(victim), 1);
                slab->pending = UINT64_C(1) << p;
                assert_int_equal(stook_slabs_validate(victim), 0);
                *stook_slab_part(slab, p) = part;
                assert_int_equal(stook_slabs_validate(victim), 1);
                slab->pending = 0;
                stook_slab_part(slab, p)->lo |= STOOK_PART_RELEASED;
                assert_int_equal(stook_slabs_validate(victim), 1);
                *stook_slab_part(slab, p) = part;
                stook_slab_part(slab, p)->hi = ~stook_part_objects(slab, p);
                assert_int_equal(stook_slabs_validate(victim), 1);
                *stook_slab_part(slab, p) = part;
                stook_slab_part(slab, p)->lo ^= STOOK_PART_LISTED;         /* C2 and C3 */
                assert_int_equal(stook_slabs_validate(victim), 2);
                *stook_slab_part(slab, p) = part;
                slab->listed ^= UINT64_C(1) << p;               /* C3 */
                assert_int_equal(stook_slabs_validate(victim), 1);
                slab->listed ^= UINT64_C(1) << p;
        }
        part = *stook_slab_part(slab, slab->part_count - 1);
        stook_slab_part(slab, slab->part_count - 1)->hi &= ~(UINT64_C(1) << 63);      /* C1 */
        assert_int_equal(stook_slabs_validate(victim), 1);
        *stook_slab_part(slab, slab->part_count - 1) = part;
        victim->node[0].partial++;                              /* C4 */
        assert_int_equal(stook_slabs_validate(victim), 1);
        victim->node[0].partial--;
        stook_list_remove(&stook_slab_span(slab)->list);        /* C3 and C4 */
        assert_int_equal(stook_slabs_validate(victim), 2);
        stook_list_add_head(&victim->node[0].list, &stook_slab_span(slab)->list);
        assert_int_equal(stook_slabs_validate(victim), 0);
        stook_slab_drain(victim, 10, o + 10);
        fake_source_end(victim);
}

struct seen {
        void *object[64];
        size_t n;
};

static void see(void *object, void *slab, void *data)
{
        struct seen *seen = data;

        assert_ptr_equal(slab, base_of(object));
        seen->object[seen->n++] = object;
}

static void test_for_each_out(void **unused)
{
        struct stook_slabs *tiny = fake_source(9, 8, 8, false, NULL, NULL);     /* all 64 parts */
        static void *o[4096];
        struct seen seen = { .n = 0 };

        (void)unused;
        assert_int_equal(tiny->objects, 4096);
        stook_slab_fill(tiny, 0, 4096, o, 0);
        stook_slab_drain(tiny, 4095, o + 1);
        stook_slabs_for_each_out(tiny, see, &seen);
        assert_int_equal(seen.n, 1);
        assert_ptr_equal(seen.object[0], o[0]);
        stook_slab_drain(tiny, 1, o);
        seen.n = 0;
        stook_slab_fill(tiny, 0, 40, o, 0);
        stook_slab_drain(tiny, 10, o + 5);
        stook_slabs_for_each_out(tiny, see, &seen);
        assert_int_equal(seen.n, 30);
        stook_slab_drain(tiny, 5, o);
        stook_slab_drain(tiny, 25, o + 15);
        fake_source_end(tiny);
}

static void construct(void *object, void *data) { (void)object, (void)data; }

/* What is asked of an object while its slab is being released. Then the slab has no parts. */
static void test_questions_beside_a_release(void **unused)
{
        struct stook_slabs *made = fake_source(10, 320, 8, false, construct, NULL);
        struct stook_slab *slab;
        uintptr_t parts;
        void *o[2];

        (void)unused;
        stook_slab_fill(made, 0, 1, o, 0);
        o[1] = (char *)o[0] + 320;
        slab = stook_slab_of(stook_entry_span(stook_pagemap_get((uintptr_t)o[0])));
        assert_true(stook_slab_object_out(made, o[0]) && stook_slab_object_made(made, o[0]));
        assert_false(stook_slab_object_out(made, o[1]) || stook_slab_object_made(made, o[1]));
        parts = slab->parts;
        slab->parts = 0;
        assert_false(stook_slab_object_out(made, o[0]) || stook_slab_object_made(made, o[0]));
        slab->parts = parts;
        stook_slab_drain(made, 1, o);
        assert_true(!stook_slab_object_out(made, o[0]) && stook_slab_object_made(made, o[0]));
        fake_source_end(made);
}

static struct stook_slabs *making;
static unsigned made_early;

static void make(void *object, void *data)
{
        const char *next = (const char *)object + 320;

        (void)data;
        made_early += stook_slab_object_made(making, object) +
                      (stook_slab_object_out(making, next) && stook_slab_object_made(making, next));
}

/*
 * A walk that meets a constructor, as in the child of a fork by another thread, finds neither its
 * object nor those that are to be constructed after it (slab_fill.c F3).
 */
static void test_no_mark_before_the_constructor(void **unused)
{
        void *o[8];

        (void)unused;
        making = fake_source(11, 320, 8, false, make, NULL);
        assert_int_equal(stook_slab_fill(making, 0, 8, o, 0), 8);
        assert_int_equal(made_early, 0);
        for (unsigned i = 0; i < 8; i++)
                assert_true(stook_slab_object_made(making, o[i]));
        stook_slab_drain(making, 8, o);
        fake_source_end(making);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_for_each_out),
                cmocka_unit_test(test_validate_finds),
                cmocka_unit_test(test_questions_beside_a_release),
                cmocka_unit_test(test_no_mark_before_the_constructor),
        };

        fake_start();
        stook_report_set_policy(STOOK_ON_FAULT_LOG);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
