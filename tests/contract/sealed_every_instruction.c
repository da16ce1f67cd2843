/*
 * Proves that malloc and free of the drop-in may be interrupted at each of their instructions where
 * malloc's objects have seals (dropin/hot_sealed_x86_64.h): by a handler that allocates, frees,
 * moves to another CPU or takes the sheaves away, and by another thread. Then every object has one
 * holder and its bytes as they were, every seal is good, and nothing is reported. Of two frees of
 * one object, the second of them at each instruction of the first, one is reported, and the object
 * is handed out once.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stook/stook.h>
#include "cache/cache.h"
#include "direct/direct.h"
#include "evacuate/evacuate.h"
#include "pages/pagemap.h"
#include "race/beside.h"
#include "race/breakpoint.h"
#include "slot/slot_regions.h"
#include "watch/watch.h"

#if !defined(__x86_64__)
int main(void)
{
        puts("breakpoints are set on x86-64 only");
        return 77;
}
#else

#define SIZE  296
#define HELD  64
#define LEAST 60                        /* instructions of a call that has not missed */
#define MOST  160
#define TRIES 40
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

void *_Znwm(size_t bytes);
void _ZdlPv(void *object);
void _ZdaPv(void *object);
void _ZdlPvm(void *object, size_t bytes);
void _ZdaPvm(void *object, size_t bytes);
void *_Znam(size_t bytes);
void free_sized(void *object, size_t bytes);

static struct stook_cache *cache;
static size_t cases, faults, others;    /* objects of libc */
static unsigned reports;                /* atomic */
static const char *at_call = "", *at_act = "";
static unsigned at_instruction;

static void fault(const char *what)
{
        if (faults++ < 20)
                printf("fault: %s: %s, instruction %u, then %s\n", what, at_call, at_instruction,
                       at_act);
}

static void note(const struct stook_report *report, void *data)
{
        (void)report, (void)data;
        __atomic_fetch_add(&reports, 1, __ATOMIC_RELAXED);
}

/* ---- objects in our hands ---- */

static char *held[HELD];
static unsigned holding;

static int stamp_of(const void *object)
{
        return 1 + (int)((uintptr_t)object >> 4 & 63);
}

static void hold(void *object)
{
        if (!object) {
                fault("no object");
                return;
        }
        for (unsigned i = 0; i < holding; i++)
                if (held[i] == object)
                        fault("an object was handed out twice");
        memset(object, stamp_of(object), SIZE);
        held[holding++] = object;
}

static void *let_go(void)
{
        char *object = held[--holding];
        int stamp = stamp_of(object);

        if (object[0] != stamp || memcmp(object, object + 1, SIZE - 1))
                fault("an object was written to");
        return object;
}

static void more(void) { hold(malloc(SIZE)); }
static void less(void) { if (holding) free(let_go()); }

/* ---- the calls ---- */

static void *object;

static void take_malloc(void) { object = IN_LIBRARY(malloc(SIZE)); }
static void take_new(void) { object = IN_LIBRARY(_Znwm(SIZE)); }

static void take_calloc(void)
{
        object = IN_LIBRARY(calloc(1, SIZE));
        if (object && (*(char *)object || memcmp(object, (char *)object + 1, SIZE - 1)))
                fault("calloc gave what is not zero");
}

static void put_free(void) { (void)IN_LIBRARY((free(object), 0)); }
static void put_free_sized(void) { (void)IN_LIBRARY((free_sized(object, SIZE), 0)); }
static void put_delete(void) { (void)IN_LIBRARY((_ZdlPv(object), 0)); }
static void put_delete_array(void) { (void)IN_LIBRARY((_ZdaPv(object), 0)); }
static void put_delete_sized(void) { (void)IN_LIBRARY((_ZdlPvm(object, SIZE), 0)); }
static void put_array_sized(void) { (void)IN_LIBRARY((_ZdaPvm(object, SIZE), 0)); }

/* The free of what @make has made, or an allocation, of what @end frees. */
static const struct call {
        const char *name;
        void (*run)(void);
        void *(*make)(size_t bytes);
        void (*end)(void *object);
} calls[] = {
        { "malloc", take_malloc, NULL, free },
        { "calloc", take_calloc, NULL, free },
        { "new", take_new, NULL, _ZdlPv },
        { "free", put_free, malloc, NULL },
        { "free_sized", put_free_sized, malloc, NULL },
        { "delete", put_delete, _Znwm, NULL },
        { "delete[]", put_delete_array, _Znam, NULL },
        { "delete, sized", put_delete_sized, _Znwm, NULL },
        { "delete[], sized", put_array_sized, _Znam, NULL },
};

/* ---- what interrupts them ---- */

static const struct call *call;
static int home_cpu, other_cpu = -1;

static void move_to(int cpu)
{
        cpu_set_t set;

        if (cpu < 0)
                return;
        CPU_ZERO(&set);
        CPU_SET((size_t)cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
}

static void act_both(void) { more(); less(); }
static void act_free_first(void) { less(); more(); }
static void act_three(void) { more(); more(); more(); }
static void act_free_three(void) { less(); less(); less(); }
static void act_evacuate(void) { stook_evacuate_cache(&cache->front); }
static void act_undelay(void) { stook_watch_give_delayed(); }
static void act_migrate(void) { move_to(other_cpu); more(); less(); }
static void act_beside(void) { beside_run(act_both); }
static void act_free_beside(void) { beside_run(less); }

/* As if another thread did. */
static void act_vfork(void)
{
        stook_direct_begin_vfork();
        more();
        stook_direct_end_vfork();
}

/* The same call with the same object. */
static void act_same(void)
{
        if (call->make)
                call->run();
}

static const struct { const char *name; void (*run)(void);
} acts[] = {
        { "malloc", more },
        { "free", less },
        { "malloc and free", act_both },
        { "free and malloc", act_free_first },
        { "three mallocs", act_three },
        { "three frees", act_free_three },
        { "an evacuation", act_evacuate },
        { "a trim", act_undelay },
        { "migration, malloc and free", act_migrate },
        { "malloc and free beside it", act_beside },
        { "free beside it", act_free_beside },
        { "a vfork, and malloc", act_vfork },
        { "the same free", act_same },
};

/* ---- cases ---- */

/* 8 objects are held; so many are free in main that no call misses, as a rule. */
static unsigned pairs = 4;

static void set_up(void)
{
        move_to(home_cpu);
        while (holding > 8)
                less();
        while (holding < 8)
                more();
        for (unsigned i = 0; i < pairs; i++)
                more();
        for (unsigned i = 0; i < pairs; i++)
                less();
        object = call->make ? call->make(SIZE) : NULL;
        if (call->make)
                memset(object, 0xa5, SIZE);
}

static size_t live(void)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };

        return stook_cache_get_stats(cache, &s) ? ~(size_t)0 : (size_t)s.objects_live;
}

static void check(bool twice)
{
        unsigned count = __atomic_exchange_n(&reports, 0, __ATOMIC_RELAXED);

        cases++;
        if (count != twice)
                fault(twice ? "not one of two frees was reported" : "a report");
        if (call->end) {
                hold(object);
                call->end(let_go());
        }
        stook_watch_give_delayed();
        if (live() != others + holding)
                fault(live() > others + holding ? "an object is lost"
                                                : "more is free than there is");
        if (stook_watch_validate_sealed(cache))
                fault("a seal, a canary or a free object was written to");
}

static bool run_case(uint8_t *at, unsigned act)
{
        bool reached;

        set_up();
        at_act = acts[act].name;
        breakpoint_set(at, acts[act].run);
        call->run();
        reached = breakpoint_clear();
        if (reached)
                beside_join();
        check(reached && call->make && acts[act].run == act_same);
        return reached;
}

static void run_call(void)
{
        static struct steps steps;
        unsigned aborted = 0, reached = 0, tries = 0;

        at_call = call->name;
        at_instruction = 0;
        at_act = "nothing";
        do {                            /* it misses where the last free of set_up filled main */
                pairs = 4 + tries % 4;
                set_up();
                breakpoints_find(call->run, &steps);
                check(false);
        } while (steps.count > MOST && ++tries < TRIES);
        for (at_instruction = 0; at_instruction < steps.count; at_instruction++)
                for (unsigned act = 0; act < COUNT(acts); act++) {
                        reached += run_case(steps.at[at_instruction], act);
                        aborted += breakpoint_aborted();
                }
        printf("  %-16s %3u instructions, %u breakpoints reached, %u aborts\n", call->name,
               steps.count, reached, aborted);
        if (steps.count < LEAST || steps.count > MOST || !aborted ||
            reached < steps.count * COUNT(acts) / 2)
                fault("the call has missed");
}

int main(void)
{
        cpu_set_t set;

        stook_on_report(note, NULL);
        call = &calls[0];
        more();
        cache = stook_cache_at(stook_entry_cache(stook_pagemap_get((uintptr_t)held[0])));
        less();
        if (!stook_sealed_most || !stook_regions.rseq_slots || !stook_self->ready ||
            !breakpoints_start() || !beside_start()) {
                puts("no sealed sections here, or text that cannot be written to");
                return 77;
        }
        stook_watch_give_delayed();
        others = live();
        sched_getaffinity(0, sizeof(set), &set);
        home_cpu = sched_getcpu();
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET((size_t)cpu, &set) && cpu != home_cpu)
                        other_cpu = cpu;
        for (unsigned i = 0; i < COUNT(calls); i++) {
                call = &calls[i];
                run_call();
        }
        printf("%zu cases, %zu faults\n", cases, faults);
        return faults != 0;
}
#endif
