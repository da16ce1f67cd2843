#include "asleep.h"
#include "race/epoch_calls.h"

#include <string.h>
#include <unistd.h>

unsigned called, inside, leave, seen_inside;
pid_t waiter;

struct counted {
        struct stook_rcu_head head;     /* first */
        unsigned number, calls;
};

static struct counted all[N];
static bool in_order;

static void count(struct stook_rcu_head *head)
{
        struct counted *c = (struct counted *)head;

        memset(head, 0xee, sizeof(*head));      /* the words are free again */
        c->calls++;
        if (c->number != __atomic_fetch_add(&called, 1, __ATOMIC_RELEASE))
                in_order = false;
}

void call_all(void)
{
        __atomic_store_n(&called, 0, __ATOMIC_RELAXED);
        in_order = true;
        for (unsigned i = 0; i < N; i++) {
                all[i].number = i;
                all[i].calls = 0;
                stook_rcu_epoch.call(&all[i].head, count);
        }
}

bool all_are_called(void)
{
        bool good = in_order && __atomic_load_n(&called, __ATOMIC_ACQUIRE) == N;

        for (unsigned i = 0; i < N; i++)
                good = good && all[i].calls == 1;
        return good;
}

void wait_for(const unsigned *word, unsigned wanted)
{
        for (unsigned i = 0; i < 60000 && __atomic_load_n(word, __ATOMIC_ACQUIRE) < wanted; i++)
                usleep(1000);
}

void *stay(void *unused)
{
        stook_epoch_read_lock();
        stook_epoch_read_lock();
        stook_epoch_read_unlock();
        __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
        wait_for(&leave, 1);
        if (waiter)
                wait_until_asleep(&waiter, &called);
        __atomic_store_n(&seen_inside, __atomic_load_n(&called, __ATOMIC_SEQ_CST),
                         __ATOMIC_SEQ_CST);
        stook_epoch_read_unlock();
        return unused;
}
