/*
 * Proves: stook_stats_print() shows living and destroyed caches with their counts and their highest
 * use, groups, and the variables of the environment; peaks are those of the slabs that were there;
 * it refuses NULL, and says so if the stream fails.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

/* The caller frees it. */
static char *printed(void)
{
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);

        assert_non_null(out);
        assert_int_equal(stook_stats_print(out), 0);
        fclose(out);
        return text;
}

/* The line that begins with @name, without it, or NULL. */
static const char *line(const char *text, const char *name)
{
        for (const char *c = text; c; c = strchr(c, '\n') ? strchr(c, '\n') + 1 : NULL)
                if (!strncmp(c, name, strlen(name)))
                        return c + strlen(name);
        return NULL;
}

static void use(struct stook_cache *cache, unsigned n)
{
        void *objects[2000];

        for (unsigned i = 0; i < n; i++)
                assert_non_null(objects[i] = stook_cache_alloc(cache));
        for (unsigned i = 0; i < n; i++)
                stook_cache_free(cache, objects[i]);
}

static void test_living(void **state)
{
        struct stook_cache *cache = stook_cache_create("living", 100, NULL);
        void *object = stook_cache_alloc(cache);
        unsigned long size, live, cached, slabs, slab, peak, allocated, freed;
        char *text;

        (void)state;
        assert_non_null(object);
        use(cache, 1000);
        text = printed();
        assert_true(!strncmp(text, "stook: ", 7));
        assert_non_null(line(text, "living "));
        assert_int_equal(sscanf(line(text, "living "), "%lu %lu %lu %lu %lu %lu %lu %lu", &size,
                                &live, &cached, &slabs, &slab, &peak, &allocated, &freed), 8);
        assert_int_equal(size, 100);
        assert_int_equal(live, 1);
        assert_int_equal(allocated, 1001);
        assert_int_equal(freed, 1000);
        assert_true(peak >= slab && peak >= 100);
        assert_non_null(line(text, "total "));
        /* A total has no peak. */
        assert_int_equal(sscanf(line(text, "total "), "%lu %lu %lu %lu - %lu %lu", &live, &cached,
                                &slabs, &slab, &allocated, &freed), 6);
        assert_true(allocated >= 1001);
        free(text);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* Of all lines, of caches that live and of those that are gone, but for the peaks. */
static void test_total_is_the_sum(void **state)
{
        struct stook_cache *cache = stook_cache_create("summed", 4000, NULL);
        unsigned long sum[6] = { 0 }, n[6], size, peak;
        void *object = stook_cache_alloc(cache);
        char *text, *row;

        (void)state;
        use(cache, 300);
        text = printed();
        for (row = strchr(strstr(text, "\ncache ") + 1, '\n') + 1; strncmp(row, "total ", 6);
             row = strchr(row, '\n') + 1) {
                assert_int_equal(sscanf(row + 32, "%lu %lu %lu %lu %lu %lu %lu %lu", &size, &n[0],
                                        &n[1], &n[2], &n[3], &peak, &n[4], &n[5]), 8);
                for (unsigned i = 0; i < 6; i++)
                        sum[i] += n[i];
        }
        assert_int_equal(sscanf(row + 6, "%lu %lu %lu %lu - %lu %lu", &n[0], &n[1], &n[2], &n[3],
                                &n[4], &n[5]), 6);
        assert_memory_equal(n, sum, sizeof(sum));
        assert_true(n[0] >= 1 && n[1] && n[2] && n[3] && n[4] > n[5] && n[5] >= 300);
        free(text);
        stook_cache_free(cache, object);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_destroyed(void **state)
{
        char *text;

        (void)state;
        for (unsigned i = 0; i < 3; i++) {
                struct stook_cache *cache = stook_cache_create("<gone>", 500, NULL);

                use(cache, 700);
                assert_int_equal(stook_cache_destroy(cache), 0);
                text = printed();
                if (i)
                        assert_non_null(line(text, i == 1 ? "<gone> (2 destroyed) "
                                                          : "<gone> (3 destroyed) "));
                else
                        assert_non_null(line(text, "<gone> (destroyed) "));
                free(text);
        }
        /* One that was never used is not worth a line. */
        assert_int_equal(stook_cache_destroy(stook_cache_create("unused", 500, NULL)), 0);
        text = printed();
        assert_null(strstr(text, "unused"));
        free(text);
}

static void test_peaks(void **state)
{
        struct stook_cache_stats stats = { .stats_size = sizeof stats };
        struct stook_cache *cache = stook_cache_create("peak", 1000, NULL);

        (void)state;
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        assert_int_equal(stats.slabs_peak, 0);
        assert_int_equal(stats.objects_peak, 0);
        use(cache, 1999);
        assert_true(stook_cache_shrink(cache) >= 0);
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        assert_true(stats.slabs < stats.slabs_peak);
        assert_true(stats.slabs_peak >= 1999 / stats.objects_per_slab);
        assert_true(stats.slabs_peak <= stats.alloc_slab);
        /* What came after the last birth is missed, less than a slab's objects. */
        assert_true(stats.objects_peak + stats.objects_per_slab >= 1999);
        assert_true(stats.objects_peak <= stats.slabs_peak * stats.objects_per_slab);
        assert_int_equal(stook_cache_destroy(cache), 0);
        /* The next one of that index begins anew. */
        cache = stook_cache_create("peak", 1000, NULL);
        assert_int_equal(stook_cache_get_stats(cache, &stats), 0);
        assert_int_equal(stats.slabs_peak, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

static void test_groups_and_variables(void **state)
{
        struct stook_group *group = stook_group_create("team", NULL, 1 << 20);
        char *text;

        (void)state;
        assert_non_null(group);
        text = printed();
        assert_non_null(line(text, "group team: bytes in use 0, "));
        assert_non_null(strstr(text, ", limit 1048576, refused 0\n"));
        assert_non_null(line(text, "setting STOOK_DECAY_MS=77\n"));
        assert_non_null(line(text, "not read by Stook: STOOK_OF_OTHERS=1\n"));
        free(text);
        stook_group_destroy(group);
}

static void test_refusals(void **state)
{
        FILE *full = fopen("/dev/full", "w");

        (void)state;
        assert_int_equal(stook_stats_print(NULL), -EINVAL);
        assert_non_null(full);
        setvbuf(full, NULL, _IONBF, 0);
        assert_int_equal(stook_stats_print(full), -EIO);
        fclose(full);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_living),
                cmocka_unit_test(test_destroyed),
                cmocka_unit_test(test_total_is_the_sum),
                cmocka_unit_test(test_peaks),
                cmocka_unit_test(test_groups_and_variables),
                cmocka_unit_test(test_refusals),
        };

        setenv("STOOK_DECAY_MS", "77", 1);      /* read again when it is printed */
        setenv("STOOK_OF_OTHERS", "1", 1);
        return cmocka_run_group_tests_name("statistics as text", tests, NULL, NULL);
}
