/*
 * Proves by schedules drawn from a seed (machine.h) that no object is handed out twice or lost,
 * whatever the order of steps, CPUs, handlers and refusals: threads allocate, free, pass objects
 * on, shrink, tune and trim, and afterwards the caches are whole and can be destroyed. Some fork,
 * also in a handler, while the others are in the middle of calls: to a child these are lost with
 * what they have in hands, and its caches are whole all the same.
 *
 *      schedules [--seed N] [--schedules N]     the first seed (default: by the time); how many
 *
 * A batch of schedules runs in a child of its own, from the same beginning. If one fails, its
 * batch's seed is printed: it runs the same way again. The first batch runs twice for that.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <stook/stook.h>

#include "base/inject.h"
#include "inspect/validate.h"
#include "machine.h"

#define BATCH   50                      /* schedules of a child */
#define HELD    24                      /* objects of a thread */
#define PASSED  8                       /* objects on their way from one thread to another */
#define OPS     24                      /* of a thread in a schedule */
#define FORKS   1500                    /* of so many times that a thread may fork it does */
#define LARGE_BYTES 300000
#define LIVE    UINT64_C(0x11fe0b1ec7000000)

#define need(what) \
        ((what) ? (void)0 : fail(__LINE__, #what))

static void fail(int line, const char *what)
{
        fprintf(stderr, "schedules.c:%d: not so: %s\n", line, what);
        _exit(1);
}

static struct stook_cache *caches[2];
static size_t size[2];

/* The last of CACHES: a large object of malloc. */
enum { LARGE = 2, NONE };
struct object {
        uint64_t *at;
        unsigned kind;
};

static struct object passed[PASSED];

static uint64_t *end_of(const struct object *o)
{
        return o->at + (o->kind == LARGE ? LARGE_BYTES : size[o->kind]) / 8 - 1;
}

/* What its first word says while it has an owner; the last one has the same, or is the first. */
static uint64_t mark_of(const struct object *o)
{
        return LIVE ^ (uintptr_t)o->at;
}

static void own(const struct object *o)
{
        need(*o->at != mark_of(o));                     /* nobody has it */
        *o->at = *end_of(o) = mark_of(o);
        machine_note(o->kind);
}

static void disown(const struct object *o)
{
        need(*o->at == mark_of(o) && *end_of(o) == mark_of(o));
        *o->at = *end_of(o) = 0;
}

static bool get(struct object *o, bool nolock)
{
        o->kind = machine_below(nolock ? 2 : 16) % (nolock ? 2 : 3);
        o->at = o->kind == LARGE ? stook_malloc(LARGE_BYTES)
                : nolock ? stook_cache_alloc_nolock(caches[o->kind])
                         : stook_cache_alloc(caches[o->kind]);
        if (o->at)
                own(o);
        return o->at;
}

static void put(const struct object *o, bool nolock)
{
        disown(o);
        if (o->kind == LARGE)
                stook_free(o->at);
        else if (nolock)
                stook_cache_free_nolock(caches[o->kind], o->at);
        else
                stook_cache_free(caches[o->kind], o->at);
}

static void get_many(struct object *held, unsigned *n)
{
        unsigned want = 1 + machine_below(HELD - *n), kind = machine_below(2);
        void *objects[HELD];

        if (stook_cache_alloc_bulk(caches[kind], 0, want, objects))
                return;
        for (unsigned i = 0; i < want; i++) {
                held[*n] = (struct object){ objects[i], kind };
                own(&held[(*n)++]);
        }
}

static void put_many(struct object *held, unsigned *n)
{
        void *objects[HELD];
        unsigned many = 0, kind = held[*n - 1].kind;

        while (*n && held[*n - 1].kind == kind && kind != LARGE) {
                disown(&held[--*n]);
                objects[many++] = held[*n].at;
        }
        if (kind == LARGE)
                put(&held[--*n], false);
        else
                stook_cache_free_bulk(machine_below(2) ? caches[kind] : NULL, many, objects);
}

/* An object goes to another thread, and one of another thread comes. */
static void pass(struct object *o)
{
        struct object *place = &passed[machine_below(PASSED)], there = *place;

        *place = *o;
        *o = there;
}

static void refuse(void)
{
        stook_inject.lock_refuse_every = machine_below(3) ? 0 : 2 + machine_below(4);
        stook_inject.sheaf_fail_every = machine_below(3) ? 0 : 2 + machine_below(4);
        stook_inject.exchange_fail = machine_below(4) ? 0 : 2 + machine_below(4);
        stook_inject.get_fail = machine_below(4) ? 0 : 2 + machine_below(4);
        stook_inject.span_fail_from = machine_below(4) ? 0 : 1 + machine_below(8);
        stook_inject.commit_fail_from = machine_below(6) ? 0 : 1 + machine_below(8);
}

static void refuse_no_more(void)
{
        uint32_t slot = stook_inject.locked_slot;

        memset(&stook_inject, 0, sizeof(stook_inject));
        stook_inject.locked_slot = slot;
}

/* The child begins with all that is refused to its parent. */
static void fork_now(unsigned one_of)
{
        if (!machine_is_child && !machine_below(one_of)) {
                need(machine_fork());
                if (machine_is_child)
                        alarm(60);
        }
}

static void work(void)
{
        struct object held[HELD];
        unsigned n = 0;

        for (unsigned i = 0; i < OPS; i++) {
                switch (machine_below(17)) {
                case 0: case 1: case 2: case 3: case 4:
                        n += n < HELD && get(&held[n], false);
                        break;
                case 5: case 6: case 7: case 8:
                        if (n)
                                put(&held[--n], false);
                        break;
                case 9:
                        if (n < HELD)
                                get_many(held, &n);
                        break;
                case 10:
                        if (n)
                                put_many(held, &n);
                        break;
                case 11: case 12:
                        if (n) {
                                pass(&held[n - 1]);
                                n -= !held[n - 1].at;
                        }
                        break;
                case 13:
                        machine_note((uint64_t)stook_cache_shrink(caches[machine_below(2)]));
                        break;
                case 14:
                        refuse();
                        break;
                case 15:
                        fork_now(FORKS);
                        break;
                default:
                        machine_ms += machine_below(4000);
                        stook_trim(machine_below(1 << 20));
                }
        }
        while (n)
                put(&held[--n], false);
}

/* As a signal handler: calls that wait for nothing. */
static void handle(void)
{
        struct object o;

        fork_now(FORKS);
        if (get(&o, true))
                put(&o, true);
}

/* What the threads that it does not have had in hands stays theirs. */
static void end_of_child(void)
{
        refuse_no_more();
        for (unsigned i = 0; i < 2; i++) {
                void *objects[HELD];

                need(!stook_cache_alloc_bulk(caches[i], 0, HELD, objects));
                stook_cache_free_bulk(caches[i], HELD, objects);
                need(!stook_cache_validate(caches[i]));
        }
        need(!stook_pages_validate(NULL));
        _exit(0);
}

static void schedule(uint64_t seed, uint64_t *sum)
{
        static const size_t sizes[] = { 8, 64, 200, 1000, 3000 };
        struct stook_cache_args args = { .args_size = sizeof(args) };
        uint64_t ran;

        *sum ^= seed;
        for (unsigned i = 0; i < 2; i++) {
                size[i] = sizes[(seed + 2 * i) % 5];
                args.sheaf_capacity = (unsigned)(seed >> (4 * i) & 15);
                args.barn_full = args.barn_empty = 1 + (unsigned)(seed >> (8 + i) & 1);
                caches[i] = stook_cache_create(i ? "second" : "first", size[i], &args);
                need(caches[i]);
        }
        ran = machine_run(seed, work, handle);
        if (machine_is_child)
                end_of_child();
        *sum = *sum * 31 + ran;
        refuse_no_more();
        for (unsigned i = 0; i < PASSED; i++)
                if (passed[i].at) {
                        put(&passed[i], false);
                        passed[i].at = NULL;
                }
        for (unsigned i = 0; i < 2; i++) {
                struct stook_cache_stats stats = { .stats_size = sizeof(stats) };

                need(!stook_cache_get_stats(caches[i], &stats) && !stats.objects_live);
                need(!stook_cache_validate(caches[i]));
                need(!stook_cache_destroy(caches[i]));
        }
}

/* Return: the child's sum; *@good: none of its schedules failed. */
static uint64_t batch(uint64_t seed, unsigned n, bool *good)
{
        static uint64_t *sum;
        int status;
        pid_t child;

        if (!sum)
                sum = mmap(NULL, sizeof(*sum), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                           -1, 0);
        *sum = 0;
        fflush(NULL);
        child = fork();
        if (!child) {
                alarm(120);
                for (unsigned i = 0; i < n; i++)
                        schedule(seed + i, sum);
                need(stook_validate_all() == 0);
                _exit(0);
        }
        *good = child > 0 && waitpid(child, &status, 0) == child && !status;
        return *sum;
}

int main(int argc, char **argv)
{
        uint64_t seed = (uint64_t)time(NULL) * 1000003 % 1000000007, first;
        unsigned schedules = 10000;
        bool good, again;

        /* So that addresses are the same each time, too. */
        if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE) &&
            personality(ADDR_NO_RANDOMIZE) != -1)
                execv("/proc/self/exe", argv);
        for (int i = 1; i + 1 < argc; i += 2) {
                if (!strcmp(argv[i], "--seed"))
                        seed = strtoull(argv[i + 1], NULL, 0);
                else if (!strcmp(argv[i], "--schedules"))
                        schedules = (unsigned)strtoul(argv[i + 1], NULL, 0);
        }
        first = batch(seed, BATCH, &good);
        if (good && (batch(seed, BATCH, &again) != first || !again)) {
                fprintf(stderr, "schedules: --seed %llu does not run the same way again\n",
                        (unsigned long long)seed);
                return 1;
        }
        for (unsigned done = 0; good && done < schedules; done += BATCH)
                batch(seed += BATCH, BATCH, &good);
        if (!good)
                fprintf(stderr, "schedules: fails: --seed %llu --schedules %u\n",
                        (unsigned long long)seed, BATCH);
        else
                printf("schedules: %u, the last of seed %llu\n", schedules,
                       (unsigned long long)seed);
        return !good;
}
