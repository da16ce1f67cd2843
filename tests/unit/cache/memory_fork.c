/*
 * What this proves: a cache's runs in a child of a fork. Its memory is its own, and a run that a
 * thread of the parent was giving back goes back whole, or stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "cache/cache.h"
#include "pages/pagemap.h"
#include "slab/slab_inside.h"
#include "unit/cache/runs_seen.h"

static void a_child_has_private_memory(void **state)
{
        struct stook_cache_args args = asking(0);
        struct stook_cache *cache;
        size_t n;
        int status;
        pid_t child;

        (void)state;
        forget();
        cache = create(1000, &args);
        n = take(cache, 0, RUN / 4);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
                size_t more = take(cache, n, RUN);

                give(cache, 0, more);
                _exit(stook_cache_destroy(cache) || seen.in != seen.out ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(seen.out, 0);
        give(cache, 0, n);
        destroy(cache);
}

/* As where a vanished thread was burying the run at @run: its upper half leaves, lowest first. */
static void bury_upper_half(struct stook_slabs *slabs, uintptr_t run)
{
        for (uintptr_t at = run + RUN / 2; at < run + RUN; at += slabs->slab_bytes) {
                struct stook_span *span = stook_entry_span(stook_pagemap_get(at));
                struct stook_slab_hold hold;

                assert_true(stook_slab_hold_long(&hold, slabs, &slabs->node[span->node]));
                assert_true(stook_slab_retire(stook_slab_of(span)));
                stook_slab_bury(&hold, stook_slab_of(span));
                stook_slab_unhold(&hold);
        }
}

static bool maps_have(const char *name)
{
        FILE *maps = fopen("/proc/self/maps", "r");
        char line[512];
        bool found = false;

        assert_non_null(maps);
        while (fgets(line, sizeof(line), maps))
                found |= strstr(line, name) != NULL;
        fclose(maps);
        return found;
}

/* What the child of a fork finds; *state: the slabs that had left are lost. */
static void half_of_a_run_goes(void **state)
{
        struct stook_cache_args args = asking(STOOK_CACHE_NO_SHEAVES);
        struct stook_cache *cache;
        bool lost = *state;
        void *object;

        forget();
        seen.fd = memfd_create("half_of_a_run", 0);
        assert_true(seen.fd >= 0);
        assert_int_equal(ftruncate(seen.fd, (off_t)RUN), 0);
        cache = create(1000, &args);
        object = stook_cache_alloc(cache);
        assert_non_null(object);
        stook_cache_free(cache, object);
        assert_int_equal(seen.in, 1);
        bury_upper_half(&cache->slabs, (uintptr_t)object & ~(RUN - 1));
        if (lost)
                stook_pending_stack_take_all(&stook_special_of(&cache->slabs)->memory.gone);
        assert_true(stook_slabs_count(&cache->slabs) > 0);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(seen.out, lost ? 0 : 1);
        assert_int_equal(maps_have("half_of_a_run"), lost);     /* all of it is renewed */
        assert_int_equal(stook_cache_destroy(cache), 0);
        close(seen.fd);
        seen.fd = -1;
}

#define SAYS(lost) ((void *)(uintptr_t)(lost))

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_child_has_private_memory),
                cmocka_unit_test_prestate(half_of_a_run_goes, SAYS(false)),
                cmocka_unit_test_prestate(half_of_a_run_goes, SAYS(true)),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
