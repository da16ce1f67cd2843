/*
 * Proves of src/base/lock.c, as it is: what a lock guards is seen by its next holder, with waits
 * and tries; a sleeper is woken, or looks again; and with the fence after a drop nothing stays
 * pending that was pushed when the lock was refused.
 */
#include "selves.h"

#include "base/lock.c"
#include "base/pending_stack.h"

bool stook_os_same_stack(uintptr_t address);

static struct stook_lock lock;
static _Alignas(64) unsigned guarded;   /* the holder's alone */
static _Alignas(64) struct stook_pending_stack pending;
static struct stook_link elements[WEAK_THREADS];
static unsigned done[WEAK_THREADS + 1];

static void sleep_on(uint32_t *word, uint32_t value, uint64_t ns)
{
        (void)word, (void)value, (void)ns;
        weak_wait();
}

static void wake(uint32_t *word)
{
        (void)word;
}

static const struct stook_lock_sleep sleep = { sleep_on, wake };

static void reset(void)
{
        lock = (struct stook_lock){ .word = 0 };
        guarded = 0;
        pending.first = NULL;
        for (unsigned i = 0; i <= WEAK_THREADS; i++) {
                done[i] = 0;
                weak_selves[i].locks_held = weak_selves[i].inside = 0;
        }
        for (unsigned i = 0; i < WEAK_THREADS; i++)
                elements[i].next = NULL;
        stook_lock_set_sleep(&sleep);
}

static void count_under_it(void)
{
        if (!stook_lock_try(&lock))
                return;
        guarded++;
        done[weak_me] = 1;
        stook_lock_drop(&lock);
}

static void all_were_counted(void)
{
        weak_assert(guarded == done[0] + done[1] + done[2]);
        weak_assert(!lock.word);
}

/* As bins.c: what a holder that is not to be had would do is left to it (M1 there). */
static void take_pending(void)
{
        struct stook_link *at = stook_pending_stack_take_all(&pending);

        while (at) {
                guarded++;
                at = __atomic_load_n(&at->next, __ATOMIC_RELAXED);
        }
}

static void drop(bool fence_after)
{
        do {
                stook_lock_drop(&lock);
                if (fence_after)
                        __atomic_thread_fence(__ATOMIC_SEQ_CST);
                if (stook_pending_stack_empty_racy(&pending) || !stook_lock_try(&lock))
                        return;
                take_pending();
        } while (true);
}

static void push_and_try(bool fence_after)
{
        stook_pending_stack_push(&pending, &elements[weak_me]);
        if (fence_after)
                __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (stook_lock_try(&lock)) {
                take_pending();
                drop(fence_after);
        }
}

static void hold(void)
{
        if (stook_lock_try(&lock)) {
                take_pending();
                drop(true);
        }
}

static void hold_without_fence(void)
{
        if (stook_lock_try(&lock)) {
                take_pending();
                drop(false);
        }
}

static void push(void) { push_and_try(true); }
static void push_without_fence(void) { push_and_try(false); }

static void none_is_left(void)
{
        weak_assert(!pending.first && guarded == 2);
}

static void one_was_taken(void)
{
        weak_assert(!pending.first && guarded == 1);
}

static const struct weak_program tried = {
        "lock, tried", reset, { count_under_it, count_under_it, count_under_it }, all_were_counted,
        2, 1
};
static const struct weak_program nothing_stays = {
        "lock, nothing stays pending", reset, { hold, push, push }, none_is_left, 2, 1
};
static const struct weak_program one_stays = {
        "lock, no fence", reset, { hold_without_fence, push_without_fence }, one_was_taken, 2, 2
};

int main(void)
{
        weak_hold(&tried);
        weak_hold(&nothing_stays);
        weak_break(&one_stays);
        return 0;
}
