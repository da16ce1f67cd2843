/*
 * Purpose: threads that allocate and free in every way, and the handlers on top of them.
 *
 * A worker holds up to HELD objects. It parks some where any thread takes them, so that a thread
 * frees objects that another one allocated. A handler has objects of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak.h"

static __thread struct worker *self;    /* NULL: signals are not for this thread */

static void wait_for(pid_t pid, const char *what)
{
        int status;

        while (waitpid(pid, &status, 0) != pid)
                if (errno != EINTR)
                        fail("waitpid: %d", errno);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
                fail("%s ended with status %x", what, (unsigned)status);
}

/* ---- handlers ---- */

/* In a child that was made on top of a call of the allocator: the heap is to be used, no more. */
static void fork_in_handler(struct worker *w)
{
        pid_t pid = _Fork();

        if (pid < 0)
                return;
        if (!pid) {
                alarm(60);
                for (unsigned i = 0; i < 60; i++) {
                        uint64_t random = draw(&w->handler_random);
                        enum how how = i % 2 ? ORDINARY : NOLOCK;
                        void *object = get(i % FIRST_RCU, OWNER_CHILD, how, random);

                        if (object)
                                give(object, OWNER_CHILD, random % 2 ? ORDINARY : NOLOCK);
                }
                _exit(0);
        }
        wait_for(pid, "a child forked in a handler");
        count(&done.handler_forks);
}

void handle(int signal)
{
        struct worker *w = self;
        int before = errno;

        (void)signal;
        if (!w)
                return;
        count(&w->handlers);
        for (unsigned n = 0; n < 4; n++) {
                uint64_t random = draw(&w->handler_random);
                void **place = w->handler_held + random % HANDLER_HELD;
                unsigned kind = (unsigned)(random >> 8) % KINDS, owner = w->id + HANDLER_OWNER;
                enum how how = random >> 16 & 1 ? NOLOCK : ORDINARY;

                if (!*place) {
                        *place = get(kind, owner, how, random >> 20);
                        continue;
                }
                if (is_for_readers(*place) && random >> 17 & 1)
                        give_rcu(*place, true);
                else
                        give(*place, owner, how);
                *place = NULL;
        }
        if (draw(&w->handler_random) % 400 == 0 && forks)
                fork_in_handler(w);
        errno = before;
}

/* ---- what a worker does ---- */

static enum how way(unsigned kind, uint64_t random)
{
        static const enum how ways[] = {
                ORDINARY, ORDINARY, ORDINARY, ORDINARY, NOLOCK, ZEROED, BULK, SHEAF
        };

        return ways[random % (kind == MALLOC ? 6 : 8)];
}

static void turn_over(struct worker *w, uint64_t random)
{
        void **place = w->held + random % HELD;
        unsigned kind = (unsigned)(random >> 8) % KINDS;

        if (*place) {
                give(*place, w->id, way(kind_of(*place), random >> 16));
                *place = NULL;
        } else {
                *place = get(kind, w->id, way(kind, random >> 16), random >> 20);
        }
}

/* Many of one kind at once: sheaves overflow, or run dry. */
static void swing(struct worker *w, uint64_t random)
{
        unsigned kind = (unsigned)(random >> 8) % KINDS;
        bool fill = random >> 16 & 1;

        for (unsigned i = 0; i < HELD; i++) {
                if (fill && !w->held[i])
                        w->held[i] = get(kind, w->id, ORDINARY, random + i);
                else if (!fill && w->held[i]) {
                        give(w->held[i], w->id, ORDINARY);
                        w->held[i] = NULL;
                }
        }
}

/* What is parked belongs to no thread: its stamp is another's, and it is freed here. */
static void park(struct worker *w, uint64_t random)
{
        void **place = w->held + random % HELD, *was;

        was = __atomic_exchange_n(parked + (random >> 8) % PARKED, *place, __ATOMIC_ACQ_REL);
        *place = NULL;
        if (was)
                give(was, 0, way(kind_of(was), random >> 20));
}

static void grow(struct worker *w, uint64_t random)
{
        void **place = w->held + random % HELD;

        if (*place && kind_of(*place) == MALLOC)
                *place = resize(*place, w->id, random >> 8);
}

static void publish(struct worker *w, uint64_t random)
{
        unsigned kind = FIRST_RCU + (unsigned)(random >> 8) % (CACHES - FIRST_RCU);
        void *object = get(kind, w->id, way(kind, random >> 16), random >> 20), *was;

        if (!object)
                return;
        was = __atomic_exchange_n(published[kind - FIRST_RCU] + random % PUBLISHED, object,
                                  __ATOMIC_ACQ_REL);
        if (was)
                give_rcu(was, false);
}

static void read_published(uint64_t random)
{
        const void *seen[4];
        uint64_t serial[4];

        soak_rcu.read_lock();
        for (unsigned i = 0; i < 4; i++) {
                void **table = published[(random >> 8) % (CACHES - FIRST_RCU)];

                seen[i] = __atomic_load_n(table + (random + i) % PUBLISHED, __ATOMIC_ACQUIRE);
                serial[i] = seen[i] ? check(seen[i], 0) : 0;
        }
        for (unsigned n = 0; n < (random >> 20) % 2000; n++)
                __asm__ volatile("");
        for (unsigned i = 0; i < 4; i++)
                if (seen[i] && check(seen[i], 0) != serial[i])
                        fail("a reader's object was used again: %p", seen[i]);
        soak_rcu.read_unlock();
        count(&done.reads);
}

/*
 * Objects of a group that is destroyed at once: the free of the last one ends it, in any thread,
 * and its id is used again.
 */
static void use_group(struct worker *w, uint64_t random)
{
        unsigned parent = (unsigned)(random >> 8) % PARENTS;
        struct stook_group *group = stook_group_create("soak", parents[parent], 0);

        if (!group)
                fail("no group: %d", errno);
        for (unsigned i = 0; i < 1 + (random >> 16) % 8; i++) {
                void **place = w->held + (random + i) % HELD;

                if (*place)
                        give(*place, w->id, ORDINARY);
                *place = get_of_group(group, !strcmp(fault, "group") ? 0 : parent, w->id);
        }
        stook_group_destroy(group);
        count(&done.groups);
}

/* --break, once. @object: held by this thread. True: it is forgotten. */
static bool make_mistake(void *object)
{
        static uint32_t made;

        if (!object || kind_of(object) != PLAIN_200 ||
            __atomic_exchange_n(&made, 1, __ATOMIC_RELAXED))
                return false;
        if (!strcmp(fault, "twice"))
                stook_cache_free(caches[PLAIN_200], object);
        else if (!strcmp(fault, "written"))
                memset((char *)object + 192, 0, 8);
        else if (!strcmp(fault, "hang"))
                for (;;)
                        pause();
        return !strcmp(fault, "lost");
}

static void doing(struct worker *w, const char *what)
{
        __atomic_store_n(&w->doing, what, __ATOMIC_RELAXED);
}

void *worker(void *arg)
{
        struct worker *w = arg;

        self = w;
        soak_rcu_register();
        while (!stopped()) {
                uint64_t random = draw(&w->random);
                unsigned op = random >> 56;

                random &= UINT64_C(0xffffffffffffff);
                if (op < 150) {
                        doing(w, "alloc or free");
                        turn_over(w, random);
                        if (*fault && make_mistake(w->held[random % HELD]))
                                w->held[random % HELD] = NULL;
                } else if (op < 190) {
                        doing(w, "park");
                        park(w, random);
                } else if (op < 210) {
                        doing(w, "read");
                        read_published(random);
                } else if (op < 235) {
                        doing(w, "publish");
                        publish(w, random);
                } else if (op < 245) {
                        doing(w, "realloc");
                        grow(w, random);
                } else if (op < 252) {
                        doing(w, "group");
                        use_group(w, random);
                } else {
                        doing(w, "swing");
                        swing(w, random);
                }
                count(&w->progress);
        }
        doing(w, "end");
        soak_rcu_unregister();
        self = NULL;
        return NULL;
}
