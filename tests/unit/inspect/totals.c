/*
 * Proves: stook_get_totals() is the sum of what all caches say, and counts large objects, guards,
 * purges, refaults, peaks and groups; what a destroyed cache counted stays; the approximate form
 * says the same without what it does not look at. stook_metrics_write() writes both formats with
 * each metric whole and in one piece, and the figures of the totals. Both refuse what they must.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>
#include <stook/stook.h>

#define LARGE ((size_t)3 << 20)

static struct stook_totals totals(void)
{
        struct stook_totals t = { .totals_size = sizeof(t) };

        assert_int_equal(stook_get_totals(&t), 0);
        return t;
}

static int add(struct stook_cache *cache, void *data)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };
        struct stook_totals *sum = data;

        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
#define ADD(name) sum->name += s.name;
        STOOK_COUNTERS(ADD)
#undef ADD
        sum->objects_live += s.objects_live;
        sum->objects_cached += s.objects_cached;
        sum->allocated_bytes += s.objects_live * s.object_size;
        sum->cached_bytes += s.objects_cached * s.stride;
        sum->space_bytes += s.slabs * s.slab_bytes;
        sum->slabs += s.slabs;
        sum->sheaves += s.sheaves;
        sum->caches++;
        return 0;
}

/* No cache was destroyed yet. */
static void check_sums(void)
{
        struct stook_totals t, sum = { 0 };

        assert_int_equal(stook_cache_for_each(add, &sum), 0);
        t = totals();
#define SAME(name) assert_int_equal(t.name, sum.name);
        STOOK_COUNTERS(SAME)
        SAME(objects_cached)
        SAME(cached_bytes)
        SAME(space_bytes)
        SAME(slabs)
        SAME(sheaves)
        SAME(caches)
#undef SAME
        assert_int_equal(t.objects_live, sum.objects_live + t.large_objects);
        assert_int_equal(t.allocated_bytes, sum.allocated_bytes + t.large_bytes);
        assert_int_equal(t.space_bytes + t.large_bytes, t.active_bytes);
        assert_int_equal(t.resident_bytes,
                         t.active_bytes + t.free_dirty_bytes + t.metadata_bytes);
        assert_true(t.active_peak_bytes >= t.active_bytes);
        assert_true(t.reserved_bytes >= t.active_bytes + t.free_dirty_bytes + t.free_clean_bytes);
        assert_true(t.metadata_bytes && t.alloc_fastpath && t.sheaves);
}

static void test_sums(void **state)
{
        static void *objects[3000];
        struct stook_cache *caches[3];
        struct stook_totals before;
        struct stook_group *group;

        (void)state;
        for (size_t i = 0; i < 3; i++)
                assert_non_null(caches[i] = stook_cache_create("summed", 40 + i * 700, NULL));
        for (size_t i = 0; i < 3000; i++)
                objects[i] = i % 4 == 3 ? stook_malloc(i) : stook_cache_alloc(caches[i % 4]);
        for (size_t i = 0; i < 3000; i += 2) {
                if (i % 4 == 3)
                        stook_free(objects[i]);
                else
                        stook_cache_free(caches[i % 4], objects[i]);
                objects[i] = NULL;
        }
        check_sums();
        assert_true(totals().allocated_bytes > 1500 * 40);
        for (size_t i = 0; i < 3000; i++)
                stook_free(objects[i]);
        check_sums();
        before = totals();
        assert_int_equal(before.groups, 0);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(stook_cache_destroy(caches[i]), 0);
        assert_int_equal(totals().caches, before.caches - 3);
        assert_int_equal(totals().alloc_fastpath + totals().alloc_slowpath,
                         before.alloc_fastpath + before.alloc_slowpath);
        assert_int_equal(totals().objects_live, before.objects_live);
        assert_non_null(group = stook_group_create("counted", NULL, 0));
        assert_int_equal(totals().groups, 1);
        stook_group_destroy(group);
        assert_int_equal(totals().groups, 0);
}

static void test_large(void **state)
{
        struct stook_totals before = totals(), now;
        bool guarded = getenv("STOOK_HARDEN") != NULL;
        char *object = stook_malloc(LARGE);

        (void)state;
        memset(object, 1, LARGE);
        now = totals();
        assert_int_equal(now.large_objects, before.large_objects + 1);
        assert_int_equal(now.objects_live, before.objects_live + 1);
        assert_int_equal(now.guarded_objects, before.guarded_objects + guarded);
        assert_true(now.large_bytes >= before.large_bytes + LARGE);
        assert_true(now.allocated_bytes >= before.allocated_bytes + LARGE);
        assert_non_null(object = stook_realloc(object, 20 * LARGE));
        assert_int_equal(totals().large_objects, before.large_objects + 1);
        assert_true(totals().large_bytes >= before.large_bytes + 20 * LARGE);
        stook_free(object);
        if (guarded)                    /* what was freed waits */
                stook_trim(0);
        now = totals();
        assert_int_equal(now.large_objects, before.large_objects);
        assert_int_equal(now.guarded_objects, before.guarded_objects);
        assert_int_equal(now.large_bytes, before.large_bytes);
        assert_true(now.active_peak_bytes >= now.active_bytes + 20 * LARGE);
}

static void test_purges(void **state)
{
        struct stook_totals before = totals(), now;
        char *object;

        (void)state;
        memset(object = stook_malloc(LARGE), 1, LARGE);
        stook_free(object);
        stook_trim(0);
        now = totals();
        assert_true(now.purges > before.purges);
        assert_true(now.purged_bytes >= before.purged_bytes + LARGE);
        assert_int_equal(now.free_dirty_bytes, 0);
        memset(object = stook_malloc(LARGE), 1, LARGE);
        assert_true(totals().refaulted_bytes >= now.refaulted_bytes + LARGE);
        stook_free(object);
}

static void test_approximate(void **state)
{
        struct stook_totals t = totals(), a = { .totals_size = sizeof(a), .slabs = 7 };

        (void)state;
        assert_int_equal(stook_get_totals_approximate(&a), 0);
        assert_memory_equal(&a, &t, offsetof(struct stook_totals, allocated_bytes));
        for (const uint64_t *word = &a.allocated_bytes; word < (uint64_t *)(&a + 1); word++)
                assert_int_equal(*word, 0);
}

static void test_totals_refused(void **state)
{
        struct stook_totals t = { .totals_size = 3, .slabs = 7 };

        (void)state;
        assert_int_equal(stook_get_totals(NULL), -EINVAL);
        assert_int_equal(stook_get_totals_approximate(NULL), -EINVAL);
        assert_int_equal(stook_get_totals(&t), -EINVAL);
        assert_int_equal(stook_get_totals_approximate(&t), -EINVAL);
        assert_int_equal(t.slabs, 7);
}

/* ---- metrics ---- */

/* The caller frees it. */
static char *written(enum stook_metrics_format format)
{
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);

        assert_non_null(out);
        assert_int_equal(stook_metrics_write(out, format), 0);
        fclose(out);
        return text;
}

/* The value of the one line that begins with @name and a blank. */
static uint64_t value(const char *text, const char *name)
{
        size_t n = strlen(name);
        const char *found = NULL;

        for (const char *c = text; *c; c = strchr(c, '\n') + 1) {
                if (!strncmp(c, name, n) && c[n] == ' ') {
                        assert_null(found);
                        found = c + n + 1;
                }
        }
        assert_non_null(found);
        return strtoull(found, NULL, 10);
}

static bool ends(const char *text, size_t n, const char *with)
{
        return n >= strlen(with) && !memcmp(text + n - strlen(with), with, strlen(with));
}

/* Each family: HELP, TYPE, samples. Return: how many. */
static unsigned check_families(const char *text, bool open)
{
        const char *family = "", *c = text;
        size_t family_n = 0, n;
        unsigned families = 0;
        bool counts = false;

        for (; *c && strncmp(c, "# EOF", 5); c = strchr(c, '\n') + 1) {
                if (!strncmp(c, "# HELP ", 7)) {
                        char type[120];

                        family = c + 7;
                        family_n = strcspn(family, " ");
                        snprintf(type, sizeof(type), "\n# TYPE %.*s ", (int)family_n, family);
                        c = strchr(c, '\n');
                        assert_true(!strncmp(c, type, strlen(type)));
                        counts = !strncmp(c + strlen(type), "counter\n", 8);
                        assert_true(counts || !strncmp(c + strlen(type), "gauge\n", 6));
                        assert_int_equal(counts && !open, ends(family, family_n, "_total"));
                        /* Nowhere else. */
                        type[strlen(type)] = '\0';
                        assert_null(strstr(c + 1 + strlen(type), type));
                        families++;
                        c++;
                        continue;
                }
                n = strcspn(c, " {");
                assert_true(n >= family_n && !memcmp(c, family, family_n));
                assert_true(n == family_n || (open && counts && n == family_n + 6));
                assert_int_equal(counts, ends(c, n, "_total"));
        }
        assert_string_equal(c, open ? "# EOF\n" : "");
        return families;
}

static void test_metrics(void **state)
{
        struct stook_cache *cache = stook_cache_create("odd \"\\\n\x7f", 100, NULL);
        struct stook_group *group = stook_group_create("team", NULL, 1 << 20);
        struct stook_group *free_group = stook_group_create("free", NULL, 0);
        void *object = stook_cache_alloc(cache);
        struct stook_totals t;
        char *text, *open;

        (void)state;
        text = written(STOOK_METRICS_PROMETHEUS);
        free(text);                     /* its buffers are known to the heap from here on */
        text = written(STOOK_METRICS_PROMETHEUS);
        open = written(STOOK_METRICS_OPENMETRICS);
        t = totals();
        assert_int_equal(value(text, "stook_space_bytes"), t.space_bytes);
        assert_int_equal(value(text, "stook_caches"), t.caches);
        assert_int_equal(value(text, "stook_groups"), 2);
        assert_int_equal(value(text, "stook_purges_total"), t.purges);
        assert_int_equal(value(open, "stook_purges_total"), t.purges);
        assert_int_equal(check_families(text, false), check_families(open, true));
        assert_non_null(strstr(text, "\nstook_cache_objects_live"
                                     "{cache=\"odd \\\"\\\\\\\\x0a\\\\x7f\",born=\""));
        assert_non_null(strstr(text, "\nstook_group_limit_bytes{group=\"team\",id=\""));
        assert_non_null(strstr(strstr(text, "stook_group_limit_bytes{group=\"team\""),
                               "\"} 1048576\n"));
        assert_non_null(strstr(strstr(text, "stook_group_limit_bytes{group=\"free\""),
                               "\"} +Inf\n"));
        assert_non_null(strstr(open, "# TYPE stook_cache_alloc_fastpath counter\n"
                                     "stook_cache_alloc_fastpath_total{cache=\""));
        free(text);
        free(open);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
        stook_group_destroy(group);
        stook_group_destroy(free_group);
}

static void test_metrics_refused(void **state)
{
        FILE *full = fopen("/dev/full", "w"), *out = fopen("/dev/null", "w");
        struct rlimit before, none = { 0, RLIM_INFINITY };

        (void)state;
        assert_non_null(full);
        assert_int_equal(stook_metrics_write(NULL, STOOK_METRICS_PROMETHEUS), -EINVAL);
        assert_int_equal(stook_metrics_write(out, (enum stook_metrics_format)2), -EINVAL);
        assert_int_equal(stook_metrics_write(out, (enum stook_metrics_format)-1), -EINVAL);
        setvbuf(full, NULL, _IONBF, 0);
        assert_int_equal(stook_metrics_write(full, STOOK_METRICS_PROMETHEUS), -EIO);
        fclose(full);
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        none.rlim_max = before.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
        assert_int_equal(stook_metrics_write(out, STOOK_METRICS_PROMETHEUS), -ENOMEM);
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        assert_int_equal(stook_metrics_write(out, STOOK_METRICS_PROMETHEUS), 0);
        fclose(out);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sums),
                cmocka_unit_test(test_large),
                cmocka_unit_test(test_purges),
                cmocka_unit_test(test_approximate),
                cmocka_unit_test(test_totals_refused),
                cmocka_unit_test(test_metrics),
                cmocka_unit_test(test_metrics_refused),
        };

        return cmocka_run_group_tests_name("totals and metrics", tests, NULL, NULL);
}
