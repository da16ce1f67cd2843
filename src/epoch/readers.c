/*
 * Purpose: see epoch.h.
 * Place: epoch layer; calls gate, pages for metadata, and os.
 */
#include <pthread.h>

#include "base/thread.h"
#include "epoch/epoch.h"
#include "gate/gate.h"
#include "os/os.h"
#include "pages/meta.h"
#include "report/report.h"

#define DEPTH  UINT64_C(0xffff)         /* of a word: how deep */
#define EPOCH  (DEPTH + 1)              /* of a word: from one epoch to the next */

#define LOOKS       100                 /* at a word before the first sleep; arbitrary */
#define PAUSE_NS    20000               /* the first sleep; arbitrary */
#define PAUSE_MOST  1000000

struct reader {
        uint64_t word;                  /* atomic: M1 to M3 */
        uintptr_t owner;                /* atomic: stook_self, | LEAVING; 0: free (I1) */
        struct reader *next;            /* const once it is listed */
} STOOK_ALIGNED(STOOK_CACHELINE);

static struct reader *readers;          /* atomic: M4 */
static uint64_t epoch = EPOCH;          /* atomic: M2 */
static uint32_t crowd, crowded;         /* atomic: I2 */

/*
 * One word says whether membarrier works here, and which key has a thread's record. It is 0 until a
 * thread has found that out, and const then. Threads that find it out at the same time do not wait
 * for one another: the word that is stored first stays. So a child of _Fork() needs nothing of a
 * thread that vanished in the middle of it.
 */
/* FENCES: there is no membarrier (M3). Above KEY_SHIFT: the key, plus 1. */
enum { KNOWN = 1, FENCES = 2, KEY_SHIFT = 2 };
static uint32_t how;                    /* atomic: M5; the key has the thread's record */
static uint32_t how_crowded;            /* atomic: M5; the key has a crowded thread's depth */

static STOOK_NOINLINE uint32_t find_out(uint32_t *word, uint32_t found, void (*end)(void *))
{
        int key = stook_os_thread_end_key(end);
        uint32_t seen = 0;

        found |= KNOWN | (uint32_t)(key + 1) << KEY_SHIFT;
        if (__atomic_compare_exchange_n(word, &seen, found, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
                return found;
        stook_os_thread_end_key_drop(key);
        return seen;
}

/* What this thread armed the word's key with. NULL: nothing, or there is no key. */
STOOK_INLINE void *armed_with(uint32_t word)
{
        return word >> KEY_SHIFT ? pthread_getspecific((word >> KEY_SHIFT) - 1) : NULL;
}

static bool arm(uint32_t word, void *value)
{
        return stook_os_thread_end_arm((int)(word >> KEY_SHIFT) - 1, value);
}

/* ---- the end of a thread ---- */

#define LEAVING ((uintptr_t)1)          /* below stook_self, which is aligned */

static STOOK_COLD void tell_ended_inside(void)
{
        stook_report_found(STOOK_FAULT_RCU, NULL, NULL, NULL, 0,
                           "a thread ended inside a read section");
}

/*
 * From the mark on no section that begins here finds the record. One that began before has armed
 * the key with it again.
 */
static void leave(struct reader *reader)
{
        uint32_t word = __atomic_load_n(&how, __ATOMIC_RELAXED);        /* known: it was armed */

        __atomic_store_n(&reader->owner, (uintptr_t)stook_self | LEAVING, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (armed_with(word) == reader)
                arm(word, NULL);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* A section may begin and end at any instruction of this, in a handler or in a report's hook. */
static void end(void *ended)
{
        struct reader *reader = ended;
        uint64_t word;

        stook_epoch_thread_ends();
        leave(reader);
        word = __atomic_load_n(&reader->word, __ATOMIC_RELAXED);
        __atomic_store_n(&reader->word, 0, __ATOMIC_RELEASE);           /* M1 */
        __atomic_store_n(&reader->owner, 0, __ATOMIC_RELEASE);
        if (word)
                tell_ended_inside();
}

static STOOK_NOINLINE uint32_t how_after_all(void)
{
        return find_out(&how, stook_os_membarrier_register_memory() ? 0 : FENCES, end);
}

STOOK_INLINE uint32_t known(void)
{
        uint32_t word = __atomic_load_n(&how, __ATOMIC_ACQUIRE);

        return STOOK_LIKELY(word) ? word : how_after_all();
}

/* ---- records ---- */

static struct reader *first(void)
{
        return __atomic_load_n(&readers, __ATOMIC_ACQUIRE);             /* M4 */
}

static bool is_owner(const struct reader *reader, uintptr_t owner)
{
        return __atomic_load_n(&reader->owner, __ATOMIC_RELAXED) == owner;
}

static void list(struct reader *reader)
{
        reader->next = __atomic_load_n(&readers, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&readers, &reader->next, reader, true,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED))     /* M4 */
                ;
}

/* A record of a thread that ended, or a new one. NULL: no memory. */
static struct reader *take(void)
{
        struct reader *reader;

        for (reader = first(); reader; reader = reader->next) {
                uintptr_t none = 0;

                if (is_owner(reader, 0) &&
                    __atomic_compare_exchange_n(&reader->owner, &none, (uintptr_t)stook_self, false,
                                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                        return reader;
        }
        reader = stook_gate_start() ? stook_meta_bump(sizeof(*reader), STOOK_CACHELINE) : NULL;
        if (reader) {
                __atomic_store_n(&reader->owner, (uintptr_t)stook_self, __ATOMIC_RELAXED);
                list(reader);
        }
        return reader;
}

/* Of this thread; of one that ended at the same address, if its end was not noticed. */
static struct reader *find(void)
{
        struct reader *reader = first();

        while (reader && !is_owner(reader, (uintptr_t)stook_self))
                reader = reader->next;
        return reader;
}

/*
 * A handler in the middle of this may take a record, too. The first of the two is used (find). The
 * last look comes after `crowded` is set, so that a handler behind it takes none (I2).
 */
static STOOK_NOINLINE struct reader *enrol(void)
{
        struct reader *reader, *used = find();

        if (!used) {
                reader = __atomic_load_n(&crowded, __ATOMIC_RELAXED) ? NULL : take();
                if (!reader)
                        __atomic_store_n(&crowded, 1, __ATOMIC_RELAXED);        /* I2 */
                __atomic_signal_fence(__ATOMIC_SEQ_CST);
                used = find();
                if (reader && used != reader)
                        __atomic_store_n(&reader->owner, 0, __ATOMIC_RELEASE);
        }
        if (used)
                arm(known(), used);
        return used;
}

/* NULL: this thread is one of the crowd. */
STOOK_INLINE struct reader *mine(void)
{
        struct reader *reader = armed_with(__atomic_load_n(&how, __ATOMIC_ACQUIRE));

        return STOOK_LIKELY(reader != NULL) ? reader : enrol();
}

/* ---- the crowd ---- */

static void leave_crowd(uint32_t sections)
{
        uint32_t seen = __atomic_load_n(&crowd, __ATOMIC_RELAXED), less;

        do
                less = sections < seen ? sections : seen;
        while (!__atomic_compare_exchange_n(&crowd, &seen, seen - less, true, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED));
}

static void end_of_crowded(void *depth)
{
        leave_crowd((uint32_t)(uintptr_t)depth);
        tell_ended_inside();
}

static uint32_t known_crowded(void)
{
        uint32_t word = __atomic_load_n(&how_crowded, __ATOMIC_ACQUIRE);

        return word ? word : find_out(&how_crowded, 0, end_of_crowded);
}

/* How many sections this thread is in. Without a key: how many all threads of the crowd are in. */
static uint32_t depth_in_crowd(void)
{
        uint32_t word = known_crowded();

        return word >> KEY_SHIFT ? (uint32_t)(uintptr_t)armed_with(word)
                                 : __atomic_load_n(&crowd, __ATOMIC_RELAXED);
}

/*
 * At the end of a change: a handler in the middle may fork. Its child counts the depth alone, and
 * the change goes on there. Without a key the two are one number, which other threads change.
 */
static void raise_to_depth(void)
{
        if (!(known_crowded() >> KEY_SHIFT))
                return;
        while (__atomic_load_n(&crowd, __ATOMIC_RELAXED) < depth_in_crowd())
                __atomic_fetch_add(&crowd, 1, __ATOMIC_SEQ_CST);
}

static STOOK_NOINLINE void begin_in_crowd(void)
{
        uint32_t depth = depth_in_crowd() + 1;

        __atomic_fetch_add(&crowd, 1, __ATOMIC_SEQ_CST);
        arm(known_crowded(), (void *)(uintptr_t)depth);
        raise_to_depth();
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                        /* M3 */
}

static STOOK_NOINLINE bool end_in_crowd(void)
{
        uint32_t depth = depth_in_crowd();

        if (!depth)
                return false;
        arm(known_crowded(), (void *)(uintptr_t)(depth - 1));
        leave_crowd(1);
        raise_to_depth();
        return true;
}

/* ---- sections ---- */

static STOOK_COLD void too_deep(void)
{
        stook_report_fault(STOOK_FAULT_RCU, NULL, NULL, NULL, 0,
                           "more than 65,535 read sections inside one another");
        stook_os_abort();
}

void stook_readers_begin(void)
{
        struct reader *reader = mine();
        uint64_t word;

        if (STOOK_UNLIKELY(!reader)) {
                begin_in_crowd();
                return;
        }
        word = __atomic_load_n(&reader->word, __ATOMIC_RELAXED);
        if (!word)
                word = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);       /* M2 */
        else if (STOOK_UNLIKELY((word & DEPTH) == DEPTH))
                too_deep();
        __atomic_store_n(&reader->word, word + 1, __ATOMIC_RELEASE);    /* M1 */
        if (STOOK_UNLIKELY(__atomic_load_n(&how, __ATOMIC_RELAXED) & FENCES))
                __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M3 */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                        /* M3 */
}

bool stook_readers_end(void)
{
        struct reader *reader = mine();
        uint64_t word;

        if (STOOK_UNLIKELY(!reader))
                return end_in_crowd();
        word = __atomic_load_n(&reader->word, __ATOMIC_RELAXED);
        if (STOOK_UNLIKELY(!word))
                return false;
        word--;
        __atomic_store_n(&reader->word, word & DEPTH ? word : 0, __ATOMIC_RELEASE);     /* M1 */
        return true;
}

bool stook_readers_is_inside(void)
{
        struct reader *reader = mine();

        return reader ? __atomic_load_n(&reader->word, __ATOMIC_RELAXED) : depth_in_crowd();
}

/* ---- the wait ---- */

/* The longer this wait has lasted, the longer the pause. */
static void pause_for(unsigned looks)
{
        uint64_t ns = PAUSE_NS;

        if (looks < LOOKS)
                return;
        for (unsigned i = LOOKS; i < looks && ns < PAUSE_MOST; i++)
                ns *= 2;
        stook_os_pause(ns < PAUSE_MOST ? ns : PAUSE_MOST);
}

static bool is_in_earlier(const struct reader *reader, uint64_t now)
{
        uint64_t word = __atomic_load_n(&reader->word, __ATOMIC_ACQUIRE);       /* M1 */

        return word && word < now;
}

bool stook_readers_wait(void)
{
        unsigned looks = 0;
        uint64_t now;

        if (known() & FENCES)
                __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M3 */
        else if (!stook_os_membarrier_memory())                         /* M3 */
                return false;
        now = __atomic_add_fetch(&epoch, EPOCH, __ATOMIC_ACQ_REL);      /* M2 */
        for (struct reader *reader = first(); reader; reader = reader->next)
                while (is_in_earlier(reader, now))
                        pause_for(looks++);
        while (__atomic_load_n(&crowd, __ATOMIC_ACQUIRE))
                pause_for(looks++);
        return true;
}

void stook_readers_fork_child(void)
{
        for (struct reader *reader = first(); reader; reader = reader->next)
                if (!is_owner(reader, (uintptr_t)stook_self) &&
                    !is_owner(reader, (uintptr_t)stook_self | LEAVING)) {
                        __atomic_store_n(&reader->word, 0, __ATOMIC_RELAXED);
                        __atomic_store_n(&reader->owner, 0, __ATOMIC_RELAXED);
                }
        if (__atomic_load_n(&crowd, __ATOMIC_RELAXED))
                __atomic_store_n(&crowd, depth_in_crowd(), __ATOMIC_RELAXED);
}
