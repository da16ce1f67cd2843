/*
 * A program without a fault, in which everything happens that a memory checker could take for one;
 * checkers.py runs it under them. It ends with status 0 and says nothing.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stook/stook.h>

#define HELD  48
#define STEPS 3000

#define CHECK(truth) ((truth) ? (void)0 : abort())

/* ---- RCU: readers have left when a step of the main thread says so ---- */

static void (*waiting_done[64])(struct stook_rcu_head *head);
static struct stook_rcu_head *waiting_heads[64];
static unsigned waiting_count;

static void pass(void)
{
        unsigned n = waiting_count;
        struct stook_rcu_head *heads[64];
        void (*done[64])(struct stook_rcu_head *head);

        memcpy(heads, waiting_heads, sizeof(heads));
        memcpy(done, waiting_done, sizeof(done));
        waiting_count = 0;
        for (unsigned i = 0; i < n; i++)
                done[i](heads[i]);
}

static void call(struct stook_rcu_head *head, void (*done)(struct stook_rcu_head *head))
{
        CHECK(waiting_count < 64);
        waiting_heads[waiting_count] = head;
        waiting_done[waiting_count++] = done;
}

static void barrier(void)
{
        while (waiting_count)
                pass();
}

static const struct stook_rcu rcu = {
        .ops_size = sizeof(rcu), .call = call, .barrier = barrier,
};

/* ---- sizes of malloc ---- */

struct random {
        uint64_t state;
};

static unsigned below(struct random *random, unsigned n)
{
        random->state = random->state * 6364136223846793005u + 1442695040888963407u;
        return (unsigned)(random->state >> 33) % n;
}

struct held {
        unsigned char *object;
        size_t bytes;
        unsigned char byte;
};

static void look_at(const struct held *held)
{
        for (size_t i = 0; i < held->bytes; i++)
                CHECK(held->object[i] == held->byte);
}

static void fill(struct held *held, unsigned char *object, size_t bytes, unsigned char byte)
{
        CHECK(object);
        *held = (struct held){ object, bytes, byte };
        memset(object, byte, bytes);
}

static void resize(struct held *held, size_t bytes)
{
        unsigned char *object = stook_realloc(held->object, bytes);
        size_t kept = bytes < held->bytes ? bytes : held->bytes;

        CHECK(object);
        for (size_t i = 0; i < kept; i++)
                CHECK(object[i] == held->byte);
        fill(held, object, bytes, (unsigned char)(held->byte + 1));
}

static void zeroed(struct held *held, size_t bytes)
{
        unsigned char *object = stook_calloc(1, bytes);

        for (size_t i = 0; i < bytes; i++)
                CHECK(!object[i]);
        fill(held, object, bytes, 3);
}

static void *sizes(void *seed)
{
        struct random random = { (uintptr_t)seed };
        struct held held[HELD] = { 0 };

        for (unsigned step = 0; step < STEPS; step++) {
                struct held *at = &held[below(&random, HELD)];
                size_t bytes = 1 + below(&random, step % 200 ? 2000 : 700000);
                unsigned how = below(&random, 5);

                look_at(at);
                if (how == 4) {
                        resize(at, bytes);
                        continue;
                }
                CHECK(!at->object || stook_usable_size(at->object) >= at->bytes);
                stook_free_sized(at->object, at->bytes);
                *at = (struct held){ 0 };
                if (how == 1)
                        fill(at, stook_malloc(bytes), bytes, 1);
                else if (how == 2)
                        zeroed(at, bytes);
                else if (how == 3)
                        fill(at, stook_aligned_alloc((size_t)16 << below(&random, 9), bytes), bytes,
                             2);
        }
        for (unsigned i = 0; i < HELD; i++)
                stook_free(held[i].object);
        return NULL;
}

/* From here on the policy of huge pages looks whether memory was written. */
static void many_large(void)
{
        enum { MANY = 60 };
        static char *objects[MANY];

        for (unsigned i = 0; i < MANY; i++)
                CHECK(objects[i] = stook_malloc(((size_t)1 << 20) - 8));
        for (unsigned i = 0; i < MANY; i++)
                stook_free(objects[i]);
}

/* ---- caches ---- */

static void construct(void *object, void *data)
{
        (void)data;
        memset(object, 5, 40);
}

/* Constructed objects come back as they were freed. */
static void constructed(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .ctor = construct };
        struct stook_cache *cache = stook_cache_create("constructed", 40, &args);
        char *objects[100];

        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 100; i++) {
                        objects[i] = stook_cache_alloc(cache);
                        CHECK(objects[i][0] == 5 && objects[i][39] == 5);
                }
                for (int i = 0; i < 100; i++)
                        stook_cache_free(cache, objects[i]);
        }
        CHECK(!stook_cache_destroy(cache));
}

/* Free objects of a type-stable cache are read, as stale pointers of readers do. */
static void type_stable(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_TYPESAFE_BY_RCU };
        struct stook_cache *cache = stook_cache_create("stable", 32, &args);
        uint64_t *objects[50];

        for (int i = 0; i < 50; i++) {
                objects[i] = stook_cache_alloc(cache);
                *objects[i] = 9;
        }
        for (int i = 0; i < 50; i++) {
                stook_cache_free(cache, objects[i]);
                CHECK(*objects[i] == 9);
        }
        CHECK(!stook_cache_destroy(cache));
}

/* An object that was freed by RCU is read until its readers have left. */
static void freed_by_rcu(uint64_t flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache = stook_cache_create("rcu", 56, &args);
        uint64_t *objects[40], *large;

        for (int round = 0; round < 3; round++) {
                for (int i = 0; i < 40; i++) {
                        objects[i] = stook_cache_zalloc(cache);
                        objects[i][0] = 7;
                        CHECK(!stook_cache_free_rcu(cache, objects[i]));
                }
                for (int i = 0; i < 40; i++)
                        CHECK(objects[i][0] == 7);
                stook_cache_rcu_barrier(cache);
        }
        large = stook_malloc(300000);
        large[30000] = 1;
        CHECK(!stook_free_rcu(large));
        CHECK(large[30000] == 1);
        stook_rcu_barrier();
        CHECK(!stook_cache_destroy(cache));
}

static void many_at_once(struct stook_cache *cache)
{
        void *objects[70];

        for (int round = 0; round < 5; round++) {
                CHECK(!stook_cache_alloc_bulk(cache, round & 1 ? STOOK_ALLOC_ZERO : 0, 70,
                                              objects));
                for (int i = 0; i < 70; i++)
                        memset(objects[i], i, stook_cache_object_size(cache));
                stook_cache_free_bulk(round & 2 ? NULL : cache, 70, objects);
        }
}

static void prefilled(struct stook_cache *cache)
{
        struct stook_sheaf *sheaf = stook_sheaf_prefill(cache, STOOK_ALLOC_ZERO, 30);
        void *objects[20];

        for (int i = 0; i < 20; i++) {
                objects[i] = stook_sheaf_alloc(cache, sheaf);
                CHECK(!*(char *)objects[i]);
                memset(objects[i], 1, stook_cache_object_size(cache));
        }
        stook_sheaf_return(cache, sheaf);
        for (int i = 0; i < 20; i++)
                stook_cache_free(cache, objects[i]);
}

/* A limit holds what is alive, not what waits in the quarantine. */
static void accounted(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = STOOK_CACHE_ACCOUNT };
        struct stook_cache *cache = stook_cache_create("accounted", 61, &args);
        struct stook_group *group = stook_group_create("group", NULL, 2 << 20), *before;

        before = stook_group_enter(group);
        many_at_once(cache);
        prefilled(cache);
        for (int i = 0; i < 200; i++) {
                char *object = stook_malloc(100000), *small = stook_cache_alloc(cache);

                CHECK(object && small);
                memset(object, 1, 100000);
                memset(small, 1, 61);
                stook_free(object);
                stook_cache_free(cache, small);
        }
        stook_group_enter(before);
        CHECK(!stook_cache_destroy(cache));
        stook_group_destroy(group);
}

/* ---- processes ---- */

static void forked(struct stook_cache *cache)
{
        char *object = stook_cache_alloc(cache);
        int status;
        pid_t child;

        memset(object, 4, stook_cache_object_size(cache));
        child = fork();
        CHECK(child >= 0);
        if (!child) {
                CHECK(object[3] == 4);
                stook_cache_free(cache, object);
                many_at_once(cache);
                _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && !status);
        stook_cache_free(cache, object);
}

int main(void)
{
        struct stook_cache *cache = stook_cache_create("plain", 72, NULL);
        pthread_t thread;

        CHECK(!stook_rcu_use(&rcu));
        CHECK(!pthread_create(&thread, NULL, sizes, (void *)1));
        sizes((void *)2);
        CHECK(!pthread_join(thread, NULL));
        many_large();
        constructed();
        type_stable();
        freed_by_rcu(0);
        freed_by_rcu(STOOK_CACHE_RCU);
        many_at_once(cache);
        prefilled(cache);
        accounted();
        forked(cache);
        CHECK(stook_cache_shrink(cache) >= 0);
        CHECK(!stook_cache_validate(cache));
        CHECK(!stook_cache_destroy(cache));
        return 0;
}
