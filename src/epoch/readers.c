/*
 * Purpose: see readers.h.
 * Place: epoch layer; calls gate, pages for metadata, and os.
 */
#include <pthread.h>

#include "base/thread.h"
#include "epoch/readers.h"
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
 * How it is done here: known before the first record is made, const then. In between the state is
 * stook_self of the thread that finds out.
 */
enum { UNKNOWN, READY };
static uintptr_t state;                 /* atomic */
static bool fences;                     /* M3: there is no membarrier */
static int key = -1;                    /* of the thread's record; -1: none to be had */

/* ---- the end of a thread ---- */

#define LEAVING ((uintptr_t)1)          /* below stook_self, which is aligned */

/*
 * From the mark on no section that begins here finds the record. One that began before has armed
 * the key with it again.
 */
static void leave(struct reader *reader)
{
        __atomic_store_n(&reader->owner, (uintptr_t)stook_self | LEAVING, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (pthread_getspecific((pthread_key_t)key) == reader)
                stook_os_thread_end_arm(key, NULL);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* A section may begin and end at any instruction of this, in a handler or in a report's hook. */
static void end(void *ended)
{
        struct reader *reader = ended;
        uint64_t word;

        leave(reader);
        word = __atomic_load_n(&reader->word, __ATOMIC_RELAXED);
        __atomic_store_n(&reader->word, 0, __ATOMIC_RELEASE);           /* M1 */
        __atomic_store_n(&reader->owner, 0, __ATOMIC_RELEASE);
        if (word)
                stook_report_found(STOOK_FAULT_RCU, NULL, NULL, NULL, 0,
                                   "a thread ended inside a read section");
}

/* False: this is a handler on top of it. */
static STOOK_NOINLINE bool make_ready(void)
{
        static uint32_t never;
        uintptr_t seen = UNKNOWN;

        if (__atomic_compare_exchange_n(&state, &seen, (uintptr_t)stook_self, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
                fences = !stook_os_membarrier_register_memory();
                key = stook_os_thread_end_key(end);
                __atomic_store_n(&state, READY, __ATOMIC_RELEASE);
                return true;
        }
        while (seen != READY && seen != (uintptr_t)stook_self) {
                stook_os_futex_wait(&never, 0, PAUSE_NS);
                seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
        }
        return seen == READY;
}

static bool is_ready(void)
{
        return STOOK_LIKELY(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == READY) || make_ready();
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
        reader = stook_gate_open() ? stook_meta_bump(sizeof(*reader), STOOK_CACHELINE) : NULL;
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
        struct reader *reader, *used;

        if (!is_ready())
                return NULL;
        used = find();
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
                stook_os_thread_end_arm(key, used);
        return used;
}

/* NULL: this thread is one of the crowd. */
STOOK_INLINE struct reader *mine(void)
{
        struct reader *reader = NULL;

        if (STOOK_LIKELY(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == READY))
                reader = key >= 0 ? pthread_getspecific((pthread_key_t)key) : NULL;
        return STOOK_LIKELY(reader != NULL) ? reader : enrol();
}

/* ---- sections ---- */

static STOOK_NOINLINE void begin_in_crowd(void)
{
        __atomic_fetch_add(&crowd, 1, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                        /* M3 */
}

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
        if (STOOK_UNLIKELY(fences))
                __atomic_thread_fence(__ATOMIC_SEQ_CST);                /* M3 */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                        /* M3 */
}

static STOOK_NOINLINE bool end_in_crowd(void)
{
        uint32_t seen = __atomic_load_n(&crowd, __ATOMIC_RELAXED);

        while (seen)
                if (__atomic_compare_exchange_n(&crowd, &seen, seen - 1, true, __ATOMIC_RELEASE,
                                                __ATOMIC_RELAXED))
                        return true;
        return false;
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

        return __atomic_load_n(reader ? &reader->word : &(uint64_t){ crowd }, __ATOMIC_RELAXED);
}

/* ---- the wait ---- */

/* The longer this wait has lasted, the longer the pause. */
static void pause_for(unsigned looks)
{
        static uint32_t never;
        uint64_t ns = PAUSE_NS;

        if (looks < LOOKS)
                return;
        for (unsigned i = LOOKS; i < looks && ns < PAUSE_MOST; i++)
                ns *= 2;
        stook_os_futex_wait(&never, 0, ns < PAUSE_MOST ? ns : PAUSE_MOST);
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

        if (!is_ready())
                return false;
        if (fences)
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
        uintptr_t seen = __atomic_load_n(&state, __ATOMIC_RELAXED);

        for (struct reader *reader = first(); reader; reader = reader->next)
                if (!is_owner(reader, (uintptr_t)stook_self) &&
                    !is_owner(reader, (uintptr_t)stook_self | LEAVING)) {
                        __atomic_store_n(&reader->word, 0, __ATOMIC_RELAXED);
                        __atomic_store_n(&reader->owner, 0, __ATOMIC_RELAXED);
                }
        if (seen != READY && seen != (uintptr_t)stook_self)
                __atomic_store_n(&state, UNKNOWN, __ATOMIC_RELAXED);
}
