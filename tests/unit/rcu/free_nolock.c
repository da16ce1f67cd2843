/*
 * What this proves: a nolock call waits for no lock, not even for the one that a thread's first
 * call may need: of the regions, where locked slots get ready. A holder that stands still has it
 * here. Each call is the first of a new thread, which is barred and has no slot of the locked
 * backend yet. A thread that is not barred needs no lock for its slot, so an ordinary call of it
 * does not wait either. A call on top of the holder, as of its signal handler, returns, too. (A
 * lock ends every wait after about a millisecond, so a return alone would prove nothing: sleeps
 * are counted.)
 */
#include <pthread.h>
#include <semaphore.h>

#include "base/lock.h"
#include "os/os.h"
#include "slot/slot.h"
#include "slot/slot_regions.h"
#include "unit/rcu/by_hand.h"

static struct stook_cache *cache;

/* ---- sleeps ---- */

static __thread unsigned sleeps;        /* of this thread, for locks */

static void count_and_wait(uint32_t *word, uint32_t value, uint64_t ns)
{
        sleeps++;
        stook_os_futex_wait(word, value, ns);
}

/* ---- the holder ---- */

static __thread bool holds;
static sem_t held, go_on;
static int answer_on_top;

static void stand(char *slot)
{
        (void)slot;
        if (!holds)
                return;
        holds = false;
        answer_on_top = stook_cache_free_rcu_nolock(cache, stook_cache_alloc_nolock(cache));
        sem_post(&held);
        while (sem_wait(&go_on))
                ;
}

/* All slots of the locked backend that are not filled yet are the test's to fill, by this pin. */
static void next_slot(uint32_t slot)
{
        __atomic_store_n(&stook_inject.locked_slot, slot + 1, __ATOMIC_RELAXED);
}

static void *hold(void *unused)
{
        stook_self_bar();
        holds = true;
        stook_cache_free(cache, stook_cache_alloc(cache));
        return unused;
}

/* ---- the calls ---- */

static void *object;
static int   answer;
static unsigned slept;

static void cache_alloc_nolock(void) { object = stook_cache_alloc_nolock(cache); }
static void cache_free_nolock(void) { stook_cache_free_nolock(cache, object); }
static void malloc_nolock(void) { object = stook_malloc_nolock(100); }
static void free_nolock(void) { stook_free_nolock(object); }
static void cache_free_rcu_nolock(void) { answer = stook_cache_free_rcu_nolock(cache, object); }
static void free_rcu_nolock(void) { answer = stook_free_rcu_nolock(object); }
static void cache_free_rcu(void) { answer = stook_cache_free_rcu(cache, object); }

static void cache_alloc(void) { object = stook_cache_alloc(cache); }

static bool barred = true;              /* the next thread */

static void *run(void *call)
{
        if (barred)
                stook_self_bar();
        ((void (*)(void))call)();
        slept = sleeps;
        return NULL;
}

/* Sleeps of the call, in a thread of its own. */
static unsigned sleeps_of(void (*call)(void))
{
        pthread_t thread;

        answer = 0;
        assert_int_equal(pthread_create(&thread, NULL, run, (void *)call), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        return slept;
}

static void no_call_waits_for_the_regions(void **state)
{
        static const struct stook_lock_sleep counting = { count_and_wait, stook_os_futex_wake };
        /* Of malloc: of a size class, and two that are too large for one. */
        void *of_malloc[] = { stook_malloc(100), stook_malloc(300 << 10), stook_malloc(1 << 20) };
        void *of_cache;
        pthread_t holder;

        (void)state;
        assert_int_equal(stook_slots_ready(), 1);       /* this thread's, of the locked backend */
        of_cache = stook_cache_alloc(cache);
        assert_true(of_cache && of_malloc[0] && of_malloc[1] && of_malloc[2]);
        stook_lock_set_sleep(&counting);
        stook_slot_set_end(NULL);       /* the ends of threads would wait for the lock, too */
        stook_inject.filling = stand;
        next_slot(1);
        assert_int_equal(pthread_create(&holder, NULL, hold, NULL), 0);
        while (sem_wait(&held))
                ;
        assert_int_equal(answer_on_top, 0);
        next_slot(2);

        object = of_cache;
        assert_int_equal(sleeps_of(cache_free_rcu_nolock), 0);
        assert_int_equal(answer, 0);
        assert_int_equal(sleeps_of(cache_alloc_nolock), 0);
        assert_non_null(object);
        assert_int_equal(sleeps_of(cache_free_nolock), 0);
        assert_int_equal(sleeps_of(malloc_nolock), 0);
        assert_non_null(object);
        assert_int_equal(sleeps_of(free_nolock), 0);
        for (unsigned i = 0; i < STOOK_ARRAY_SIZE(of_malloc); i++) {
                object = of_malloc[i];
                assert_int_equal(sleeps_of(free_rcu_nolock), 0);
                assert_int_equal(answer, 0);
        }
        assert_int_equal(stook_slots_ready(), 1);       /* the lock was needed each time */

        if (stook_regions.rseq_slots) {
                barred = false;
                assert_int_equal(sleeps_of(cache_alloc), 0);
                assert_true(stook_slots_ready() > 1);
                assert_int_equal(sleeps_of(cache_free_rcu_nolock), 0);
                barred = true;
        }

        /* One that may wait does, which also shows that sleeps are counted. */
        sleeps_of(cache_alloc_nolock);
        assert_true(sleeps_of(cache_free_rcu) > 0);
        assert_int_equal(answer, 0);

        sem_post(&go_on);
        assert_int_equal(pthread_join(holder, NULL), 0);
        stook_inject.filling = NULL;
        stook_rcu_barrier();
        assert_int_equal(stook_rcu_backlog(), 0);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_destroy(cache), 0);
}

/* This thread is barred: it starts the library, and makes no slot of the other backend ready. */
static int start(void **state)
{
        stook_self_bar();
        next_slot(0);
        if (sem_init(&held, 0, 0) || sem_init(&go_on, 0, 0) || round_by_round_with_rcu(state))
                return -1;
        cache = new_cache(0);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_call_waits_for_the_regions),
        };

        return cmocka_run_group_tests(tests, start, NULL);
}
