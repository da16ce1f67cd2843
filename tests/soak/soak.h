/*
 * Purpose: what the files of the soak test share: kinds of objects, threads, counts, and how to
 * fail.
 */
#ifndef TESTS_SOAK_H
#define TESTS_SOAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stook/stook.h>

/* What an object is of. Those from FIRST_RCU on are freed after readers. */
enum {
        PLAIN_32, PLAIN_200, PLAIN_1000, PLAIN_5000, RANDOM_64, NO_SHEAVES_128, ACCOUNTED_96,
        FIRST_RCU, RCU_48 = FIRST_RCU, RCU_CHAINED_160, CACHES, MALLOC = CACHES, KINDS
};

#define HELD         256                /* objects that a worker holds */
#define HANDLER_HELD 16                 /* objects that handlers of a worker hold */
#define PARKED       512                /* objects that no thread holds, for any to free */
#define PUBLISHED    64                 /* objects that readers look at, of each RCU kind */
#define PARENTS      2                  /* groups that stay; others are made below them */
#define WORKERS_MAX  14                 /* readers of the test's RCU are 16 */

struct worker {
        unsigned id;                    /* owner in stamps; of handlers: id + HANDLER_OWNER */
        uint64_t random, handler_random;
        uint64_t progress;              /* atomic: operations of this thread, all rounds */
        const char *doing;              /* atomic: the operation, for the watchdog */
        uint64_t handlers;              /* atomic: signals handled */
        void *held[HELD];
        void *handler_held[HANDLER_HELD];
};

#define HANDLER_OWNER 100u
#define OWNER_OTHER   200u              /* tuner and the others: one each from here on */
#define OWNER_CHILD   300u

/* What was done; atomic. */
struct done {
        uint64_t forks, handler_forks, threads, tunings, destroys;
        uint64_t groups, rcu_frees, reads, refusals;
        uint64_t sessions, profiles;
};

extern struct done done;
extern struct stook_cache *caches[CACHES];
extern struct stook_group *parents[PARENTS];
extern void *parked[PARKED];            /* atomic */
extern void *published[CACHES - FIRST_RCU][PUBLISHED]; /* atomic; only replaced by exchange */
extern uint32_t stop;                   /* atomic: the round ends */
extern const char *fault;               /* --break: which mistake to make; "": none */
extern bool forks;                      /* --forks: processes are forked */
extern bool samples;                    /* --samples: sessions of samples begin and end */

static inline void count(uint64_t *counter)
{
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline bool stopped(void)
{
        return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static inline uint64_t draw(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

/* Says what was found, with the seed, and aborts. Signal-safe. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- objects.c: stamped objects ---- */

/* How an object is got or given back. */
enum how { ORDINARY, NOLOCK, BULK, SHEAF, ZEROED };

/* A stamped object, or NULL (counted as a refusal). */
void *get(unsigned kind, unsigned owner, enum how how, uint64_t random);
/* An accounted object of a group below parents[parent]. */
void *get_of_group(struct stook_group *group, unsigned parent, unsigned owner);
/* Looks at the stamp, takes it off, frees the object. @owner 0: whose it is does not matter. */
void give(void *object, unsigned owner, enum how how);
/* Gives a published object to free_rcu, its stamp on it. */
void give_rcu(void *object, bool nolock);
/* A malloc object with another size. */
void *resize(void *object, unsigned owner, uint64_t random);
/* Looks at the stamp only; returns its serial. */
uint64_t check(const void *object, unsigned owner);
unsigned kind_of(const void *object);
bool is_for_readers(const void *object); /* of a kind that is freed after them */
unsigned parent_of(const void *object); /* PARENTS: charged to none */
size_t size_of(const void *object);
void make_caches(void);
struct stook_cache *make_cache(unsigned kind);

/* ---- soak_rcu.c ---- */
extern const struct stook_rcu soak_rcu;
void soak_rcu_register(void);
void soak_rcu_unregister(void);
void soak_rcu_start(void);
void soak_rcu_synchronize(void);

/* ---- worker.c, others.c: thread functions; each takes its struct worker ---- */
void *worker(void *arg);
void *tuner(void *arg);
void *forker(void *arg);
void *spawner(void *arg);
void *sampler(void *arg);
void handle(int signal);
void use_heap_in_child(uint64_t random);

#endif
