/*
 * What this proves: a cache's runs. Its slabs lie in pieces of 2 MiB, which go back whole, and only
 * by calls that shrink. The program's functions see each piece once before its first object and
 * once after its last one, never where the caller forbids it, and may map there what they like.
 * What a child of a fork has of them is in memory_fork.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "pages/pages_node.h"
#include "unit/cache/runs_seen.h"

enum { THREADS = 4 };

/* ---- runs ---- */

static void slabs_fill_runs(void **state)
{
        static const size_t sizes[] = { 8, 24, 64, 1000, 3000, 20000, 90000, STOOK_OBJECT_MAX };
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_HUGE_PAGES |
                                         (uint64_t)(uintptr_t)*state };

        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                struct stook_cache *cache = create(sizes[i], &args);
                struct stook_cache_stats stats = stats_of(cache);
                char *object = stook_cache_alloc(cache);

                assert_non_null(object);
                memset(object, 1, sizes[i]);
                assert_int_equal(RUN % stats.slab_bytes, 0);
                assert_true(stats.objects_per_slab >= 2);
                assert_int_equal(bytes_kept(cache), RUN);
                stook_cache_free(cache, object);
                assert_int_equal(stook_cache_shrink(cache), 0);
                assert_int_equal(bytes_kept(cache), 0);
                assert_int_equal(stook_cache_destroy(cache), 0);
        }
}

static void a_run_goes_whole_and_by_a_shrink(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_HUGE_PAGES };
        struct stook_cache *cache = create(1000, &args);
        size_t n = take(cache, 0, RUN + RUN / 2), last = n / 2;

        (void)state;
        assert_int_equal(bytes_kept(cache), 2 * RUN);
        for (size_t i = 0; i < n; i++)
                if (i != last)
                        stook_cache_free(cache, objects[i]);
        assert_int_equal(bytes_kept(cache), 2 * RUN);
        assert_true(stook_cache_shrink(cache) > 0);
        assert_int_equal(bytes_kept(cache), RUN);       /* what the last object lies in */
        assert_int_equal(*(size_t *)objects[last], last);
        stook_cache_free(cache, objects[last]);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void reserved_runs_stay(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_HUGE_PAGES };
        struct stook_cache *cache = create(1000, &args);
        size_t each = stats_of(cache).objects_per_slab, run = RUN / stats_of(cache).slab_bytes;
        struct stook_cache_stats stats;

        (void)state;
        assert_int_equal(stook_cache_reserve(cache, each * run + 1), 0);
        stats = stats_of(cache);
        assert_int_equal(stats.slabs % (2 * run), 0);   /* on each node with memory */
        assert_int_equal(stook_cache_shrink(cache), stats.slabs);
        assert_int_equal(stook_cache_reserve(cache, 0), 0);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static unsigned made;

static void construct(void *object, void *data)
{
        *(size_t *)object = SIZE_MAX;
        assert_ptr_equal(data, &made);
        made++;
}

static void destruct(void *object, void *data)
{
        (void)object;
        assert_ptr_equal(data, &made);
        assert_true(made-- > 0);
        assert_int_equal(seen.out, 0);                  /* before the memory goes */
}

static void destructors_run_before_the_memory_goes(void **state)
{
        struct stook_cache_args args = asking((uint64_t)(uintptr_t)*state);
        struct stook_cache *cache;
        size_t n;

        forget();
        args.ctor = construct;
        args.dtor = destruct;
        args.ctor_data = &made;
        cache = create(1000, &args);
        n = take(cache, 0, RUN / 4);
        assert_true(made >= n);
        assert_int_equal(seen.in, 1);
        give(cache, 0, n);
        destroy(cache);
        assert_int_equal(made, 0);
        assert_int_equal(seen.in, 1);
}

/* ---- the program's functions ---- */

static void each_run_is_seen_once(void **state)
{
        struct stook_cache_args args = asking((uint64_t)(uintptr_t)*state);
        struct stook_cache *cache;
        size_t n;

        forget();
        cache = create(1000, &args);
        assert_int_equal(seen.in, 0);
        errno = 0;
        n = take(cache, 0, RUN + RUN / 2);
        assert_int_equal(errno, 0);
        assert_true(seen.in >= 2);
        assert_int_equal(seen.in, bytes_kept(cache) / RUN);
        for (size_t i = 0; i < n; i++)
                assert_true(find((uintptr_t)objects[i] / RUN * RUN) >= 0);
        give(cache, 0, n);
        assert_int_equal(seen.out, 0);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(seen.in, seen.out);
        assert_int_equal(errno, 0);             /* both functions set it */
        n = take(cache, 0, RUN / 2);
        give(cache, 0, n);
        stook_trim(SIZE_MAX);
        assert_int_equal(seen.in, seen.out);
        n = take(cache, 0, RUN / 2);
        give(cache, 0, n);
        destroy(cache);
}

/* Objects are in the file that is mapped; afterwards the library has memory of its own there. */
static void a_file_may_be_mapped(void **state)
{
        struct stook_cache_args args = asking(STOOK_CACHE_HUGE_PAGES);
        struct stook_cache *cache;
        uintptr_t run;
        size_t n, found = 0;

        (void)state;
        forget();
        seen.fd = memfd_create("runs", 0);
        assert_true(seen.fd >= 0);
        assert_int_equal(ftruncate(seen.fd, (off_t)(4 * RUN)), 0);
        cache = create(1000, &args);
        n = take(cache, 0, RUN / 2);
        run = (uintptr_t)objects[0] / RUN * RUN;
        for (size_t i = 0; i < n; i++) {
                size_t number;

                if ((uintptr_t)objects[i] / RUN * RUN != run)
                        continue;
                assert_int_equal(pread(seen.fd, &number, sizeof(number),
                                       (off_t)((uintptr_t)objects[i] - run)), sizeof(number));
                assert_int_equal(number, i);
                found++;
        }
        assert_true(found > 0);
        give(cache, 0, n);
        destroy(cache);
        for (size_t at = 0; at < RUN; at += 4096)
                assert_int_equal(*(volatile size_t *)(run + at), 0);
        close(seen.fd);
}

/* The mapping that @at is in has a flag of /proc/self/smaps. */
static bool mapping_has(uintptr_t at, const char *flag)
{
        FILE *maps = fopen("/proc/self/smaps", "r");
        bool inside = false, has = false;
        uintptr_t from, to;
        char line[512];

        assert_non_null(maps);
        while (fgets(line, sizeof(line), maps))
                if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
                        inside = from <= at && at < to;
                else if (inside && !strncmp(line, "VmFlags:", 8))
                        has = strstr(line, flag) != NULL;
        fclose(maps);
        return has;
}

/* A system without huge pages knows no such advice. */
static bool advice_is_known(void)
{
        void *page = mmap(NULL, RUN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        bool known;

        assert_ptr_not_equal(page, MAP_FAILED);
        known = !madvise(page, RUN, MADV_NOHUGEPAGE) && mapping_has((uintptr_t)page, " nh");
        munmap(page, RUN);
        return known;
}

/* Fresh memory over a run has the advice that all of the heap has. */
static void renewed_runs_refuse_huge_pages(void **state)
{
        struct stook_cache_args args = asking(0);
        enum stook_thp before = stook_pages_thp;
        struct stook_cache *cache;
        uintptr_t run;
        void *object;

        (void)state;
        if (!advice_is_known())
                skip();
        forget();
        seen.fd = memfd_create("runs", 0);
        assert_true(seen.fd >= 0);
        assert_int_equal(ftruncate(seen.fd, (off_t)(4 * RUN)), 0);
        stook_pages_thp = STOOK_THP_NEVER;
        cache = create(1000, &args);
        object = stook_cache_alloc(cache);
        assert_non_null(object);
        run = (uintptr_t)object / RUN * RUN;
        assert_false(mapping_has(run, " nh"));          /* the file */
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(seen.out, 1);
        assert_true(mapping_has(run, " nh"));
        destroy(cache);
        stook_pages_thp = before;
        close(seen.fd);
        seen.fd = -1;
}

static void never_where_callbacks_are_forbidden(void **state)
{
        struct stook_cache_args args = asking(0);
        struct stook_cache *cache;
        struct stook_sheaf *sheaf;

        (void)state;
        forget();
        cache = create(1000, &args);
        errno = 0;
        assert_null(stook_cache_alloc_flags(cache, STOOK_ALLOC_NOWAIT));
        assert_int_equal(errno, ENOMEM);
        assert_null(stook_cache_alloc_nolock(cache));
        assert_int_equal(stook_cache_alloc_bulk(cache, STOOK_ALLOC_NOWAIT, 10, objects), -ENOMEM);
        assert_null(stook_sheaf_prefill(cache, STOOK_ALLOC_NOWAIT, 10));
        assert_int_equal(seen.in, 0);
        assert_int_equal(stook_cache_reserve(cache, 20), 0);
        assert_true(seen.in >= 1);
        objects[0] = stook_cache_alloc_flags(cache, STOOK_ALLOC_NOWAIT);
        objects[1] = stook_cache_alloc_nolock(cache);
        assert_non_null(objects[0]);
        assert_non_null(objects[1]);
        sheaf = stook_sheaf_prefill(cache, STOOK_ALLOC_NOWAIT, 10);
        assert_non_null(sheaf);
        stook_sheaf_return(cache, sheaf);
        stook_cache_free(cache, objects[0]);
        stook_cache_free_nolock(cache, objects[1]);
        destroy(cache);
}

static void every_call_may_ask(void **state)
{
        struct stook_cache_args args = asking((uint64_t)(uintptr_t)*state);
        const size_t many = 300;

        for (unsigned call = 0; call < 5; call++) {
                struct stook_cache *cache;
                struct stook_sheaf *sheaf = NULL;
                size_t n = 1;

                forget();
                cache = create(1000, &args);
                switch (call) {
                case 0:
                        objects[0] = stook_cache_zalloc(cache);
                        assert_non_null(objects[0]);
                        assert_int_equal(*(char *)objects[0], 0);
                        break;
                case 1:
                        objects[0] = stook_cache_alloc_node(cache, STOOK_ALLOC_THISNODE, 0);
                        assert_non_null(objects[0]);
                        break;
                case 2:
                        n = many;
                        assert_int_equal(stook_cache_alloc_bulk(cache, 0, n, objects), 0);
                        break;
                case 3:
                        sheaf = stook_sheaf_prefill(cache, 0, many);
                        break;
                default:
                        sheaf = stook_sheaf_prefill(cache, STOOK_ALLOC_THISNODE, 10);
                        break;
                }
                assert_true(seen.in > 0);
                assert_true(call < 3 || sheaf);
                stook_sheaf_return(cache, sheaf);
                if (!sheaf)
                        stook_cache_free_bulk(cache, n, objects);
                destroy(cache);
        }
}

static void what_is_refused_is_no_memory(void **state)
{
        struct stook_cache_args args = asking(0);
        struct stook_cache *cache;

        (void)state;
        forget();
        seen.fd = memfd_create("refused", 0);
        assert_int_equal(ftruncate(seen.fd, (off_t)RUN), 0);
        cache = create(1000, &args);
        seen.refuse = true;
        errno = 0;
        assert_null(stook_cache_alloc(cache));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(stook_cache_alloc_bulk(cache, 0, 100, objects), -ENOMEM);
        assert_null(stook_sheaf_prefill(cache, 0, 10));
        assert_int_equal(stook_cache_reserve(cache, 1), -ENOMEM);
        assert_true(seen.refused >= 4);
        assert_int_equal(bytes_kept(cache), 0);
        seen.refuse = false;
        close(seen.fd);
        seen.fd = -1;
        assert_int_equal(stook_cache_reserve(cache, 0), 0);
        objects[0] = stook_cache_alloc(cache);
        assert_non_null(objects[0]);
        stook_cache_free(cache, objects[0]);
        destroy(cache);
}

static void without_memory_nothing_changes(void **state)
{
        struct stook_cache_args args = asking(STOOK_CACHE_HUGE_PAGES);
        struct stook_cache *cache;

        (void)state;
        forget();
        cache = create(1000, &args);
        stook_inject.span_fail_from = 1;
        assert_null(stook_cache_alloc(cache));
        stook_inject.span_fail_from = 0;
        assert_int_equal(seen.in, 0);
        assert_int_equal(bytes_kept(cache), 0);
        objects[0] = stook_cache_alloc(cache);
        assert_non_null(objects[0]);
        stook_cache_free(cache, objects[0]);
        /* The pages of the run are not to be had again: it stays with the cache's user for ever. */
        stook_inject.commit_fail_from = 1;
        destroy(cache);
        stook_inject.commit_fail_from = 0;
}

static void *work(void *shared)
{
        void *mine[200];

        for (unsigned round = 0; round < 20; round++) {
                for (unsigned i = 0; i < 200; i++) {
                        mine[i] = stook_cache_alloc(shared);
                        if (!mine[i])
                                return shared;
                        *(void **)mine[i] = mine;
                }
                for (unsigned i = 0; i < 200; i++) {
                        if (*(void **)mine[i] != mine)
                                return shared;
                        stook_cache_free(shared, mine[i]);
                }
                if (stook_cache_shrink(shared) < 0)
                        return shared;
        }
        return NULL;
}

static void beside_other_threads(void **state)
{
        struct stook_cache_args args = asking((uint64_t)(uintptr_t)*state);
        struct stook_cache *cache;
        pthread_t threads[THREADS];

        forget();
        cache = create(1000, &args);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, cache), 0);
        for (unsigned i = 0; i < THREADS; i++) {
                void *fault;

                assert_int_equal(pthread_join(threads[i], &fault), 0);
                assert_null(fault);
        }
        assert_true(seen.in > 0);
        destroy(cache);
}

static void wrong_arguments(void **state)
{
        struct stook_cache_args args = asking(0);

        (void)state;
        args.memory_in = NULL;
        errno = 0;
        assert_null(stook_cache_create("wrong", 64, &args));
        assert_int_equal(errno, EINVAL);
        args = asking(STOOK_CACHE_TYPESAFE_BY_RCU);
        assert_null(stook_cache_create("wrong", 64, &args));
        assert_int_equal(errno, ENOTSUP);
        args = asking(0);
        args.memory_out = NULL;
        assert_int_equal(stook_cache_destroy(create(64, &args)), 0);
}

#define FLAGS(flags) ((void *)(uintptr_t)(flags))

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_prestate(slabs_fill_runs, FLAGS(0)),
                cmocka_unit_test_prestate(slabs_fill_runs, FLAGS(STOOK_CACHE_RANDOM_ORDER)),
                cmocka_unit_test_prestate(slabs_fill_runs,
                                          FLAGS(STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE)),
                cmocka_unit_test_prestate(slabs_fill_runs, FLAGS(STOOK_CACHE_TYPESAFE_BY_RCU)),
                cmocka_unit_test(a_run_goes_whole_and_by_a_shrink),
                cmocka_unit_test(reserved_runs_stay),
                cmocka_unit_test_prestate(destructors_run_before_the_memory_goes, FLAGS(0)),
                cmocka_unit_test_prestate(destructors_run_before_the_memory_goes,
                                          FLAGS(STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE)),
                cmocka_unit_test_prestate(each_run_is_seen_once, FLAGS(0)),
                cmocka_unit_test_prestate(each_run_is_seen_once, FLAGS(STOOK_CACHE_NO_SHEAVES)),
                cmocka_unit_test_prestate(each_run_is_seen_once, FLAGS(STOOK_CACHE_ACCOUNT)),
                cmocka_unit_test(a_file_may_be_mapped),
                cmocka_unit_test(renewed_runs_refuse_huge_pages),
                cmocka_unit_test(never_where_callbacks_are_forbidden),
                cmocka_unit_test_prestate(every_call_may_ask, FLAGS(0)),
                cmocka_unit_test_prestate(every_call_may_ask, FLAGS(STOOK_CACHE_ACCOUNT)),
                cmocka_unit_test_prestate(every_call_may_ask, FLAGS(STOOK_CACHE_CHECK)),
                cmocka_unit_test(what_is_refused_is_no_memory),
                cmocka_unit_test(without_memory_nothing_changes),
                cmocka_unit_test_prestate(beside_other_threads, FLAGS(0)),
                cmocka_unit_test_prestate(beside_other_threads, FLAGS(STOOK_CACHE_HUGE_PAGES)),
                cmocka_unit_test(wrong_arguments),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
