/*
 * Proves of src/epoch/readers.c, as it is: who has waited for readers comes after all that they did
 * in sections that had begun, with membarrier and with fences; a reader that began later sees what
 * was unlinked; and records are taken by one thread at a time.
 */
#include <pthread.h>

#include "selves.h"
#include "base/compiler.h"

static void *specific[WEAK_THREADS + 1];
#define pthread_getspecific(key) ((void)(key), specific[weak_me])
#include "epoch/readers.c"

/* ---- the layers below ---- */

static bool fences;                     /* there is no membarrier */
static struct reader records[WEAK_THREADS];
static unsigned records_used;           /* atomic */

int stook_os_thread_end_key(void (*at_end)(void *value)) { (void)at_end; return 0; }
void stook_os_thread_end_key_drop(int key) { (void)key; }
bool stook_os_thread_end_arm(int key, void *value)
{
        (void)key;
        specific[weak_me] = value;
        return true;
}
bool stook_os_membarrier_register_memory(void) { return !fences; }
bool stook_os_membarrier_memory(void)
{
        weak_membarrier();
        return true;
}
void stook_os_pause(uint64_t ns) { (void)ns; weak_wait(); }
void stook_os_abort(void) { weak_fail("it aborts"); }
void *stook_meta_bump(size_t bytes, size_t align)
{
        (void)bytes, (void)align;
        return &records[__atomic_fetch_add(&records_used, 1, __ATOMIC_RELAXED)];
}
void stook_epoch_thread_ends(void) { }
void stook_report_found(enum stook_fault fault, const void *object, const char *cache,
                        const void *slab, size_t offset, const char *detail)
{
        (void)fault, (void)object, (void)cache, (void)slab, (void)offset;
        weak_fail(detail);
}
void stook_report_fault(enum stook_fault fault, const void *object, const char *cache,
                        const void *slab, size_t offset, const char *detail)
{
        stook_report_found(fault, object, cache, slab, offset, detail);
}
uint32_t stook_gate_state = STOOK_GATE_OPEN;
const struct stook_gate_duties stook_gate_duties = { NULL, NULL, NULL };

/* ---- one object, which readers look at until it is unlinked, and freed after a wait ---- */

static _Alignas(64) int object;
static _Alignas(64) int *shared;

static void reset(void)
{
        object = 1;
        shared = &object;
        readers = NULL;
        epoch = EPOCH;
        how = how_crowded = crowd = crowded = 0;
        records_used = 0;
        for (unsigned i = 0; i <= WEAK_THREADS; i++)
                specific[i] = NULL;
        for (unsigned i = 0; i < WEAK_THREADS; i++)
                records[i] = (struct reader){ .word = 0 };
        fences = false;
}

static void reset_with_fences(void)
{
        reset();
        fences = true;
}

static void read_it(void)
{
        int *at;

        stook_readers_begin();
        at = __atomic_load_n(&shared, __ATOMIC_RELAXED);
        if (at)
                weak_assert(*at == 1);
        weak_assert(stook_readers_end());
}

static void read_nested(void)
{
        int *at;

        stook_readers_begin();
        stook_readers_begin();
        at = __atomic_load_n(&shared, __ATOMIC_RELAXED);
        stook_readers_end();
        if (at)
                weak_assert(*at == 1);
        stook_readers_end();
}

static void unlink_and_free(void)
{
        __atomic_store_n(&shared, NULL, __ATOMIC_RELAXED);
        weak_assert(stook_readers_wait());
        object = 2;
}

static void free_at_once(void)
{
        __atomic_store_n(&shared, NULL, __ATOMIC_RELEASE);
        object = 2;
}

static const struct weak_program one_reader = {
        "readers, one", reset, { read_it, unlink_and_free }, NULL, 2, 2
};
static const struct weak_program nested = {
        "readers, nested", reset, { read_nested, unlink_and_free }, NULL, 2, 1
};
static const struct weak_program two_readers = {
        "readers, two", reset, { read_it, read_it, unlink_and_free }, NULL, 1, 1
};
static const struct weak_program with_fences = {
        "readers, with fences", reset_with_fences, { read_it, unlink_and_free }, NULL, 2, 2
};
static const struct weak_program no_wait = {
        "readers, not waited for", reset, { read_it, free_at_once }, NULL, 2, 2
};

int main(void)
{
        weak_hold(&one_reader);
        weak_hold(&nested);
        weak_hold(&two_readers);
        weak_hold(&with_fences);
        weak_break(&no_wait);
        return 0;
}
