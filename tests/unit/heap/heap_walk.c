/*
 * Proves: a walk over a heap's objects, and over malloc's, shows each one that a caller owns once,
 * of every size, with the bytes that may be used; none that is free, in a sheaf or elsewhere, and
 * none of another heap, of malloc or of a cache; it ends when the callback says so; the callback
 * may free what it is shown. Every refusal is made.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

static const size_t sizes[] = { 1, 16, 100, 1000, 5000, 20000, 32 << 10, 60000, 200000, 3 << 20 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define EACH  40                        /* objects of a size: more than a sheaf of the larger */

struct seen {
        void  *object[SIZES * EACH];
        bool   owned[SIZES * EACH], shown[SIZES * EACH];
        unsigned others, most;
        struct stook_heap *heap;
        bool   frees;
};

/* What tests and the C library had before is no object of these. */
static int note(void *object, size_t bytes, void *data)
{
        struct seen *seen = data;

        for (size_t i = 0; i < SIZES * EACH; i++)
                if (seen->object[i] == object) {
                        assert_true(seen->owned[i] && !seen->shown[i]);
                        assert_true(bytes >= sizes[i / EACH]);
                        assert_int_equal(bytes, stook_usable_size(object));
                        seen->shown[i] = true;
                        if (seen->frees)
                                stook_free(object);
                        return seen->most && !--seen->most ? 7 : 0;
                }
        seen->others++;
        return 0;
}

static void *take(struct stook_heap *heap, size_t size)
{
        return heap ? stook_heap_alloc(heap, size) : stook_malloc(size);
}

/* Every third one is free again. */
static void fill(struct seen *seen)
{
        for (size_t i = 0; i < SIZES * EACH; i++) {
                assert_non_null(seen->object[i] = take(seen->heap, sizes[i / EACH]));
                memset(seen->object[i], 1, 1);
                seen->owned[i] = true;
        }
        for (size_t i = 0; i < SIZES * EACH; i += 3) {
                stook_free(seen->object[i]);
                seen->owned[i] = false;
        }
}

static void all_are_shown(const struct seen *seen)
{
        for (size_t i = 0; i < SIZES * EACH; i++)
                assert_int_equal(seen->shown[i], seen->owned[i]);
}

static void each_object_is_shown_once(void **state)
{
        static struct seen of_one, of_other, of_malloc;
        struct stook_cache *cache = stook_cache_create("beside", 100, NULL);

        (void)state;
        of_one.heap = stook_heap_create("one", NULL);
        of_other.heap = stook_heap_create("other", NULL);
        assert_true(of_one.heap && of_other.heap && cache);
        assert_non_null(stook_cache_alloc(cache));
        fill(&of_one);
        fill(&of_other);
        fill(&of_malloc);
        assert_int_equal(stook_heap_for_each_object(of_one.heap, note, &of_one), 0);
        all_are_shown(&of_one);
        assert_int_equal(of_one.others, 0);
        assert_int_equal(stook_heap_for_each_object(NULL, note, &of_malloc), 0);
        all_are_shown(&of_malloc);
        for (size_t i = 0; i < SIZES * EACH; i++)
                assert_false(of_other.shown[i]);
        /* The library itself has none; sheaves are made again. */
        assert_int_equal(of_malloc.others, 0);
        of_other.frees = true;
        assert_int_equal(stook_heap_for_each_object(of_other.heap, note, &of_other), 0);
        all_are_shown(&of_other);
        assert_int_equal(of_other.others, 0);
        memset(of_other.owned, 0, sizeof(of_other.owned));
        memset(of_other.shown, 0, sizeof(of_other.shown));
        assert_int_equal(stook_heap_for_each_object(of_other.heap, note, &of_other), 0);
        assert_int_equal(of_other.others, 0);
        assert_int_equal(stook_heap_destroy(of_one.heap), 0);
        assert_int_equal(stook_heap_destroy(of_other.heap), 0);
        for (size_t i = 0; i < SIZES * EACH; i++)
                if (of_malloc.owned[i])
                        stook_free(of_malloc.object[i]);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
}

static void it_ends_when_it_is_told_to(void **state)
{
        static struct seen seen;
        unsigned shown = 0;

        (void)state;
        seen.heap = stook_heap_create("short", NULL);
        fill(&seen);
        seen.most = 50;
        assert_int_equal(stook_heap_for_each_object(seen.heap, note, &seen), 7);
        for (size_t i = 0; i < SIZES * EACH; i++)
                shown += seen.shown[i];
        assert_int_equal(shown, 50);
        assert_int_equal(stook_heap_destroy(seen.heap), 0);
}

/* ---- refusals ---- */

static int walk_inside(struct stook_cache *cache, void *data)
{
        (void)cache;
        assert_int_equal(stook_heap_for_each_object(data, note, NULL), -EDEADLK);
        assert_int_equal(stook_heap_for_each_object(NULL, note, NULL), -EDEADLK);
        return 1;
}

static void what_cannot_be_is_refused(void **state)
{
        struct stook_heap *heap = stook_heap_create("refused", NULL);
        void *object = stook_heap_alloc(heap, 100), *ours = stook_malloc(100);
        struct stook_cache *cache = stook_object_cache(object);
        struct stook_sheaf *lent;

        (void)state;
        assert_int_equal(stook_heap_for_each_object(heap, NULL, NULL), -EINVAL);
        assert_int_equal(stook_cache_for_each(walk_inside, heap), 1);
        assert_non_null(lent = stook_sheaf_prefill(cache, 0, 5));
        assert_int_equal(stook_heap_for_each_object(heap, note, NULL), -EBUSY);
        stook_sheaf_return(cache, lent);
        stook_free(ours);
        assert_int_equal(stook_heap_destroy(heap), 0);
        assert_int_equal(stook_heap_for_each_object(heap, note, NULL), -EINVAL);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_object_is_shown_once),
                cmocka_unit_test(it_ends_when_it_is_told_to),
                cmocka_unit_test(what_cannot_be_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
