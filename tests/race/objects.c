/*
 * What this proves: an object has one owner at a time. Each thread stamps the objects that it gets,
 * and finds its stamp again when it lets go. Threads allocate singly and in bulk, hand objects to
 * each other and shrink the cache; a timer's handler does the same on top of them. At the end
 * counts are exact.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <cmocka.h>
#include <stook/stook.h>

#define THREADS 4
#define SECONDS 3
#define HELD 400
#define EXCHANGE 256

struct object {
        uint64_t owner;                 /* atomic; 0: free */
        uint64_t rest[7];
};

static struct stook_cache *cache, *second;
static struct object *exchange[EXCHANGE];       /* atomic: objects on their way between threads */
static uint32_t stop;
static const char *error;
static uint64_t handled;

static void own(struct object *o, uint64_t me)
{
        if (__atomic_exchange_n(&o->owner, me, __ATOMIC_RELAXED))
                error = "an object was handed out twice";
}

static void disown(struct object *o, uint64_t me)
{
        if (__atomic_exchange_n(&o->owner, 0, __ATOMIC_RELAXED) != me)
                error = "an object was handed out while its owner had it";
}

static void on_timer(int sig)
{
        struct object *o[5];

        (void)sig;
        for (int i = 0; i < 5; i++) {
                o[i] = stook_cache_alloc(i & 1 ? cache : second);
                if (o[i])
                        own(o[i], 99);
        }
        for (int i = 0; i < 5; i++)
                if (o[i]) {
                        disown(o[i], 99);
                        stook_cache_free(i & 1 ? cache : second, o[i]);
                }
        __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void construct(void *object, void *data)
{
        (void)data;
        ((struct object *)object)->owner = 0;
}

/* This thread handles signals from now on, or does not. */
static void take_signals(bool take)
{
        sigset_t alarm;

        sigemptyset(&alarm);
        sigaddset(&alarm, SIGALRM);
        pthread_sigmask(take ? SIG_UNBLOCK : SIG_BLOCK, &alarm, NULL);
}

static void *work(void *arg)
{
        uint64_t me = (uintptr_t)arg, random = me * 77777777;
        struct object *held[HELD], *bulk[64];
        unsigned n = 0;

        take_signals(true);
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && !error) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
                unsigned r = (unsigned)(random >> 40), k;

                switch (r & 7) {
                case 0: case 1: case 2:
                        if (n < HELD && (held[n] = stook_cache_alloc(cache)))
                                own(held[n++], me);
                        break;
                case 3: case 4:
                        if (n) {
                                disown(held[--n], me);
                                stook_cache_free(cache, held[n]);
                        }
                        break;
                case 5:
                        k = 1 + r / 8 % 64;
                        if (n + k <= HELD && !stook_cache_alloc_bulk(cache, 0, k, (void **)bulk))
                                for (unsigned i = 0; i < k; i++)
                                        own(held[n++] = bulk[i], me);
                        break;
                case 6:
                        k = 1 + r / 8 % 64;
                        if (n >= k) {
                                for (unsigned i = 0; i < k; i++)
                                        disown(bulk[i] = held[--n], me);
                                stook_cache_free_bulk(r & 8192 ? cache : NULL, k, (void **)bulk);
                        }
                        break;
                default:
                        if (n) {
                                struct object *mine = held[--n], *theirs;

                                disown(mine, me);
                                own(mine, 1000);
                                theirs = __atomic_exchange_n(&exchange[r / 8 % EXCHANGE], mine,
                                                             __ATOMIC_ACQ_REL);
                                if (theirs) {
                                        disown(theirs, 1000);
                                        own(theirs, me);
                                        held[n++] = theirs;
                                }
                        }
                }
        }
        while (n) {
                disown(held[--n], me);
                stook_cache_free(cache, held[n]);
        }
        return NULL;
}

static void *evacuate(void *arg)
{
        (void)arg;
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                stook_cache_shrink(cache);
                nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
        }
        return NULL;
}

static void run(void)
{
        struct stook_cache_stats s = { .stats_size = sizeof(s) };
        struct stook_cache_args args = { .args_size = sizeof(args), .ctor = construct };
        struct itimerval every = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
        struct sigaction action = { .sa_handler = on_timer, .sa_flags = SA_RESTART };
        pthread_t t[THREADS], d;

        cache = stook_cache_create("race", sizeof(struct object), &args);
        second = stook_cache_create("race-2", 200, &args);
        assert_non_null(cache);
        assert_non_null(second);
        sigaction(SIGALRM, &action, NULL);
        take_signals(false);            /* this thread must end it all, however busy the others */
        setitimer(ITIMER_REAL, &every, NULL);
        for (uintptr_t i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&t[i], NULL, work, (void *)(i + 1)), 0);
        assert_int_equal(pthread_create(&d, NULL, evacuate, NULL), 0);
        for (time_t end = time(NULL) + SECONDS;
             time(NULL) < end || !__atomic_load_n(&handled, __ATOMIC_RELAXED);)
                nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        setitimer(ITIMER_REAL, &never, NULL);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < THREADS; i++)
                pthread_join(t[i], NULL);
        pthread_join(d, NULL);
        if (error)
                fail_msg("%s", error);
        for (int i = 0; i < EXCHANGE; i++)
                if (exchange[i]) {
                        disown(exchange[i], 1000);
                        stook_cache_free(cache, exchange[i]);
                }
        assert_null(error);
        assert_int_equal(stook_cache_validate(cache), 0);
        assert_int_equal(stook_cache_get_stats(cache, &s), 0);
        printf("alloc fast %lu slow %lu, refilled %lu, flushed %lu, handlers %lu\n",
               s.alloc_fastpath, s.alloc_slowpath, s.sheaf_refill, s.sheaf_flush, handled);
        assert_int_equal(s.objects_live, 0);
        assert_int_equal(s.alloc_fastpath + s.alloc_slowpath, s.free_fastpath + s.free_slowpath);
        assert_int_equal(s.objects_cached,
                         s.sheaf_refill + s.free_fastpath - s.alloc_fastpath - s.sheaf_flush);
        assert_int_equal(s.sheaves, s.sheaf_alloc - s.sheaf_free);
        assert_int_equal(stook_cache_destroy(cache), 0);
        assert_int_equal(stook_cache_destroy(second), 0);
}

static void threads_and_handlers_share_a_cache(void **state)
{
        (void)state;
        run();
}

int main(void)
{
        const struct CMUnitTest all[] = { cmocka_unit_test(threads_and_handlers_share_a_cache) };

        return cmocka_run_group_tests(all, NULL, NULL);
}
