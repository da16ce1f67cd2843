/*
 * What this proves: a destructor runs exactly once for each run of the constructor: when slabs go
 * back, at a shrink, a trim and a destroy, and never in a free; also beside threads that allocate
 * and free, and if a constructor was left by a jump; and the arguments are checked.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stook/stook.h>

enum { N = 2000, THREADS = 3, ROUNDS = 30, HELD = 200 };

/* Objects of a fresh slab read as zeros, or as what the destructor left. */
#define MADE UINT64_C(0x6d616465)

struct thing {
        uint64_t state;
        void *memory;
        uint64_t use[4];
};

static uint64_t made, unmade, faults;

static void count(uint64_t *n)
{
        __atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

static uint64_t counted(uint64_t *n)
{
        return __atomic_load_n(n, __ATOMIC_RELAXED);
}

static void make(void *object, void *data)
{
        struct thing *thing = object;

        if (data != &made || thing->state == MADE)
                count(&faults);
        thing->state = MADE;
        thing->memory = stook_malloc(40);
        if (!thing->memory)
                count(&faults);
        count(&made);
}

static void unmake(void *object, void *data)
{
        struct thing *thing = object;

        if (data != &made || thing->state != MADE)
                count(&faults);
        thing->state = 0;
        stook_free(thing->memory);
        count(&unmade);
}

/* make() leaves the run that would be this one of all by a jump; 0: none. */
static uint64_t leave_run;
static jmp_buf  behind;

static void make_or_leave(void *object, void *data)
{
        if (counted(&made) + 1 == leave_run) {
                leave_run = 0;
                longjmp(behind, 1);
        }
        make(object, data);
}

static struct stook_cache *new_cache_with(uint64_t flags, void (*ctor)(void *, void *))
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags, .ctor = ctor,
                                         .ctor_data = &made, .dtor = unmake };
        struct stook_cache *cache = stook_cache_create("things", sizeof(struct thing), &args);

        assert_non_null(cache);
        made = unmade = 0;
        return cache;
}

static struct stook_cache *new_cache(uint64_t flags)
{
        return new_cache_with(flags, make);
}

static struct thing *things[N];

static void take_all(struct stook_cache *cache)
{
        for (unsigned i = 0; i < N; i++) {
                things[i] = stook_cache_alloc(cache);
                assert_non_null(things[i]);
                assert_int_equal(things[i]->state, MADE);
                things[i]->use[0] = i;
        }
}

static void give(struct stook_cache *cache, unsigned from)
{
        for (unsigned i = from; i < N; i++)
                stook_cache_free(cache, things[i]);
}

static void once_at_the_destroy(void **state)
{
        struct stook_cache *cache = new_cache((uint64_t)(uintptr_t)*state);

        take_all(cache);
        assert_true(counted(&made) >= N);
        give(cache, 0);
        assert_int_equal(counted(&unmade), 0);  /* no free runs it */
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(counted(&unmade), counted(&made));
        assert_int_equal(faults, 0);
}

static void with_everything_in_it(void **state)
{
        struct stook_cache *cache = new_cache((uint64_t)(uintptr_t)*state);

        take_all(cache);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
        assert_int_equal(counted(&unmade), counted(&made));
        assert_int_equal(faults, 0);
}

/*
 * The first fill of a cache takes several objects. The first run is left, or one in the middle of a
 * fill: what was constructed before it is marked then. The objects of the call are lost, so they
 * are never handed out, a destroy fails, and only the destroy of all destructs them.
 */
static void a_constructor_left_by_a_jump(void **state)
{
        uint64_t run = 1 + 3 * (uint64_t)(uintptr_t)*state;
        struct stook_cache *cache = new_cache_with(0, make_or_leave);

        leave_run = run;
        if (!setjmp(behind)) {
                stook_cache_free(cache, stook_cache_alloc(cache));
                fail();
        }
        assert_int_equal(counted(&made), run - 1);
        take_all(cache);
        assert_int_equal(stook_cache_validate(cache), 0);
        give(cache, 0);
        assert_true(stook_cache_shrink(cache) > 0);
        assert_true(counted(&made) - counted(&unmade) >= run - 1);
        assert_int_equal(stook_cache_destroy(cache), -EBUSY);
        assert_int_equal(stook_cache_destroy_all(cache, NULL, NULL), 0);
        assert_int_equal(counted(&unmade), counted(&made));
        assert_int_equal(faults, 0);
}

static void at_a_shrink(void **state)
{
        struct stook_cache *cache = new_cache(0);
        uint64_t so_far;

        (void)state;
        take_all(cache);
        give(cache, 1);
        assert_int_equal(stook_cache_shrink(cache), 1);
        so_far = counted(&unmade);
        assert_true(so_far > 0 && so_far < counted(&made));
        assert_int_equal(things[0]->state, MADE);
        assert_int_equal(things[0]->use[0], 0);
        assert_int_equal(stook_cache_shrink(cache), 1);         /* nothing is left to do */
        assert_int_equal(counted(&unmade), so_far);
        stook_cache_free(cache, things[0]);
        assert_int_equal(stook_cache_shrink(cache), 0);
        assert_int_equal(counted(&unmade), counted(&made));

        take_all(cache);                                        /* they are made anew */
        give(cache, 0);
        stook_trim(0);
        assert_int_equal(counted(&unmade), counted(&made));
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(counted(&unmade), counted(&made));
        assert_int_equal(faults, 0);
}

static void reserved_slabs_stay_constructed(void **state)
{
        struct stook_cache *cache = new_cache(0);

        (void)state;
        take_all(cache);
        give(cache, 0);
        assert_int_equal(stook_cache_reserve(cache, 2 * N), 0);
        stook_cache_shrink(cache);
        assert_int_equal(stook_cache_validate(cache), 0);
        take_all(cache);
        give(cache, 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(counted(&unmade), counted(&made));
        assert_int_equal(faults, 0);
}

static void *work(void *data)
{
        struct stook_cache *cache = data;
        struct thing *held[HELD];

        for (unsigned round = 0; round < ROUNDS; round++) {
                for (unsigned i = 0; i < HELD; i++) {
                        held[i] = stook_cache_alloc(cache);
                        if (!held[i] || held[i]->state != MADE)
                                count(&faults);
                }
                for (unsigned i = 0; i < HELD; i++)
                        stook_cache_free(cache, held[i]);
        }
        return NULL;
}

static void beside_threads_that_allocate(void **state)
{
        struct stook_cache *cache = new_cache((uint64_t)(uintptr_t)*state);
        pthread_t threads[THREADS];

        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, work, cache), 0);
        for (unsigned i = 0; i < ROUNDS; i++)
                assert_true(stook_cache_shrink(cache) >= 0);
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(counted(&unmade), counted(&made));
        assert_int_equal(faults, 0);
}

static void refused(int error, const struct stook_cache_args *args)
{
        errno = 0;
        assert_null(stook_cache_create("none", 64, args));
        assert_int_equal(errno, error);
}

static void every_error(void **state)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .dtor = unmake };
        struct stook_cache *cache;

        (void)state;
        refused(EINVAL, &args);
        args.ctor = make;
        args.flags = STOOK_CACHE_TYPESAFE_BY_RCU;
        refused(ENOTSUP, &args);
        args.flags = 0;
        args.args_size--;
        refused(EINVAL, &args);
        /* A program that was built before there were destructors: the field is not read. */
        args.ctor = NULL;
        args.args_size = offsetof(struct stook_cache_args, dtor);
        cache = stook_cache_create("old", 64, &args);
        assert_non_null(cache);
        stook_cache_free(cache, stook_cache_zalloc(cache));
        assert_int_equal(stook_cache_destroy(cache), 0);
}

#define FLAGS(flags) ((void *)(uintptr_t)(flags))
#define DEBUG FLAGS(STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON | \
                    STOOK_CACHE_QUARANTINE)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_prestate(once_at_the_destroy, FLAGS(0)),
                cmocka_unit_test_prestate(once_at_the_destroy, FLAGS(STOOK_CACHE_NO_SHEAVES)),
                cmocka_unit_test_prestate(once_at_the_destroy,
                                          FLAGS(STOOK_CACHE_RCU | STOOK_CACHE_ACCOUNT)),
                cmocka_unit_test_prestate(once_at_the_destroy, FLAGS(STOOK_CACHE_RANDOM_ORDER)),
                cmocka_unit_test_prestate(once_at_the_destroy, DEBUG),
                cmocka_unit_test_prestate(with_everything_in_it, FLAGS(0)),
                cmocka_unit_test_prestate(with_everything_in_it, DEBUG),
                cmocka_unit_test_prestate(a_constructor_left_by_a_jump, FLAGS(0)),
                cmocka_unit_test_prestate(a_constructor_left_by_a_jump, FLAGS(1)),
                cmocka_unit_test(at_a_shrink),
                cmocka_unit_test(reserved_slabs_stay_constructed),
                cmocka_unit_test_prestate(beside_threads_that_allocate, FLAGS(0)),
                cmocka_unit_test_prestate(beside_threads_that_allocate,
                                          FLAGS(STOOK_CACHE_NO_SHEAVES)),
                cmocka_unit_test(every_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
