/*
 * What this proves: the whole heap can be checked while threads work: no false fault then, a real
 * one is found, also in large objects, which have debug modes here, and the process that asked is
 * not harmed. Without a child it says so.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "debug/debug_inside.h"
#include "os/os.h"
#include "slot/slot_regions.h"

#define THREADS 3
#define ROUNDS  20
#define LARGE   ((size_t)200000)

static uint32_t ended;                  /* atomic */
static struct stook_cache *shared;

static void *work(void *unused)
{
        void *kept[200] = { 0 };
        unsigned seed = (unsigned)(uintptr_t)&kept;

        while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
                unsigned at = (unsigned)rand_r(&seed) % 200;

                if (at % 2) {
                        stook_free(kept[at]);
                        kept[at] = stook_malloc(at < 10 ? LARGE : (size_t)rand_r(&seed) % 3000 + 1);
                } else if (kept[at]) {
                        stook_cache_free(shared, kept[at]);
                        kept[at] = NULL;
                } else {
                        kept[at] = stook_cache_alloc(shared);
                }
        }
        for (unsigned i = 0; i < 200; i++)
                if (i % 2)
                        stook_free(kept[i]);
                else if (kept[i])
                        stook_cache_free(shared, kept[i]);
        return unused;
}

static void is_sound_while_threads_work(void **state)
{
        pthread_t thread[THREADS];

        (void)state;
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&thread[i], NULL, work, NULL), 0);
        for (unsigned i = 0; i < ROUNDS; i++) {
                errno = 77;
                assert_int_equal(stook_validate_all(), 0);
                assert_int_equal(errno, 77);
        }
        __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < THREADS; i++)
                pthread_join(thread[i], NULL);
        assert_int_equal(stook_validate_all(), 0);
}

/* No RCU is there, so the memory of type-stable slabs waits for readers as long as the process. */
static void is_sound_while_slabs_wait_for_readers(void **state)
{
        struct stook_cache_args args = {
                .args_size = sizeof(args), .flags = STOOK_CACHE_TYPESAFE_BY_RCU,
        };
        struct stook_cache *cache = stook_cache_create("stable", 320, &args);
        static void *objects[2000];

        (void)state;
        assert_non_null(cache);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 2000, objects), 0);
        stook_cache_free_bulk(cache, 2000, objects);
        stook_cache_shrink(cache);
        assert_int_equal(stook_validate_all(), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_validate_all(), 0);
}

static unsigned reports;

static void on_report(const struct stook_report *report, void *data)
{
        (void)report, (void)data;
        reports++;
}

/* Frees some objects: then a slot has a sheaf with at least two, main or spare. */
static struct stook_sheaf *a_sheaf_with_objects(struct stook_cache *cache)
{
        void *objects[20];

        for (unsigned i = 0; i < 20; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (unsigned i = 0; i < 20; i++)
                stook_cache_free(cache, objects[i]);
        for (unsigned slot = 0; slot < stook_slots_bound(); slot++) {
                struct stook_line *line = stook_slots_line(slot, cache->index);
                struct stook_sheaf *main = line ? (struct stook_sheaf *)line->pair.lo : NULL;
                struct stook_sheaf *spare = line ? (struct stook_sheaf *)line->pair.hi : NULL;

                if (main && stook_sheaf_size(main) >= 2)
                        return main;
                if (spare && stook_sheaf_size(spare) >= 2)
                        return spare;
        }
        return NULL;
}

static void finds_a_fault(void **state)
{
        struct stook_sheaf *sheaf = a_sheaf_with_objects(shared);
        void *object;

        (void)state;
        assert_non_null(sheaf);
        stook_on_report(on_report, NULL);
        object = sheaf->objects[0];
        sheaf->objects[0] = (char *)object + 1;
        assert_int_equal(stook_validate_all(), 1);
        sheaf->objects[0] = object;
        assert_int_equal(reports, 0);           /* the child's call is the child's alone */
        assert_int_equal(stook_validate_all(), 0);
        stook_on_report(NULL, NULL);
}

static void finds_a_fault_of_a_large_object(void **state)
{
        volatile char *object = stook_malloc(LARGE), *state_behind;
        char was = object[LARGE];

        (void)state;
        object[LARGE] = 1;
        assert_int_equal(stook_validate_all(), 1);
        object[LARGE] = was;
        assert_int_equal(stook_validate_all(), 0);
        state_behind = object + stook_os_whole_pages(LARGE) - STOOK_TAIL_BYTES;
        was = *state_behind;
        *state_behind = 1;
        assert_int_equal(stook_validate_all(), 1);
        *state_behind = was;
        assert_int_equal(stook_validate_all(), 0);
        stook_free((void *)object);
        was = object[0];
        object[0] = 1;                          /* in the quarantine */
        assert_int_equal(stook_validate_all(), 1);
        object[0] = was;
        assert_int_equal(stook_validate_all(), 0);
}

static char said[256];
static const void *slab_said;

static void note(const struct stook_report *report, void *data)
{
        (void)data;
        snprintf(said, sizeof(said), "%s", report->text);
        slab_said = report->slab;
}

/* A double free that no call notices: the object lies below another one in its sheaf. */
static void names_an_object_that_is_in_sheaves_twice(void **state)
{
        char *kept = stook_cache_alloc(shared), pointer[32];    /* so that no count is wrong */
        struct stook_sheaf *sheaf = a_sheaf_with_objects(shared);
        void *last;

        (void)state;
        assert_non_null(kept);
        assert_non_null(sheaf);
        last = sheaf->objects[0];
        sheaf->objects[0] = sheaf->objects[1];
        stook_on_report(note, NULL);
        assert_int_equal(stook_cache_validate(shared), 1);
        snprintf(pointer, sizeof(pointer), "%p", sheaf->objects[1]);
        assert_non_null(strstr(said, pointer));
        assert_non_null(strstr(said, "V7"));
        assert_non_null(slab_said);
        sheaf->objects[0] = last;
        assert_int_equal(stook_cache_validate(shared), 0);
        stook_on_report(NULL, NULL);
        stook_cache_free(shared, kept);
}

static void says_that_there_is_no_child(void **state)
{
        struct rlimit before, none;

        (void)state;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = (struct rlimit){ 0, before.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        assert_int_equal(stook_validate_all(), -EMFILE);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        signal(SIGCHLD, SIG_IGN);               /* no status is to be had then */
        assert_int_equal(stook_validate_all(), 0);
        signal(SIGCHLD, SIG_DFL);
}

static int ask_again(struct stook_cache *cache, void *data)
{
        (void)cache;
        *(int *)data = stook_validate_all();
        return 1;
}

static void is_refused_in_a_walk(void **state)
{
        int answer = 0;

        (void)state;
        assert_int_equal(stook_cache_for_each(ask_again, &answer), 1);
        assert_int_equal(answer, -EDEADLK);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(is_sound_while_threads_work),
                cmocka_unit_test(is_sound_while_slabs_wait_for_readers),
                cmocka_unit_test(finds_a_fault),
                cmocka_unit_test(finds_a_fault_of_a_large_object),
                cmocka_unit_test(names_an_object_that_is_in_sheaves_twice),
                cmocka_unit_test(says_that_there_is_no_child),
                cmocka_unit_test(is_refused_in_a_walk),
        };

        shared = stook_cache_create("shared", 100, NULL);
        return shared ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
