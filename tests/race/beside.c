/*
 * Purpose: see beside.h.
 */
#include <pthread.h>
#include <stdint.h>

#include "os/os.h"
#include "race/beside.h"

/*
 * What an act takes that waits for no other thread, many times over. Too short costs a case its
 * point, never the test.
 */
#define LONGEST_MS 4
#define NAP_NS     1000000

static void (*act)(void);
static uint32_t given, made;            /* atomic: acts; a release, acquired by the other thread */

static void *second_thread(void *unused)
{
        (void)unused;
        for (uint32_t next = 0;; next++) {
                while (__atomic_load_n(&given, __ATOMIC_ACQUIRE) == next)
                        stook_os_futex_wait(&given, next, 1000000000);
                act();
                __atomic_store_n(&made, next + 1, __ATOMIC_RELEASE);
                stook_os_futex_wake(&made);
        }
        return NULL;
}

bool beside_start(void)
{
        pthread_t thread;

        return !pthread_create(&thread, NULL, second_thread, NULL);
}

static bool is_done(void)
{
        uint32_t seen = __atomic_load_n(&made, __ATOMIC_ACQUIRE);

        if (seen != given)
                stook_os_futex_wait(&made, seen, NAP_NS);
        return __atomic_load_n(&made, __ATOMIC_ACQUIRE) == given;
}

static void give(void (*what)(void))
{
        act = what;
        __atomic_store_n(&given, given + 1, __ATOMIC_RELEASE);
        stook_os_futex_wake(&given);
}

bool beside_run(void (*what)(void))
{
        give(what);
        for (unsigned ms = 0; ms < LONGEST_MS; ms++)
                if (is_done())
                        return true;
        return false;
}

void beside_run_whole(void (*what)(void))
{
        give(what);
        beside_join();
}

void beside_join(void)
{
        while (!is_done())
                ;
}
