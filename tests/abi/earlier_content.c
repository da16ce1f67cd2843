/*
 * Proves that a compiler gives an object of a cache the content that its constructor and earlier
 * users left. attributes.sh compiles this in all ways, as C and as C++.
 */
#include <stdint.h>
#include <stdio.h>
#include <stook/stook.h>
#ifdef INLINED
#include <stook/inline.h>
#define ALLOC       stook_cache_alloc_inline
#define FREE        stook_cache_free_inline
#define SHEAF_ALLOC stook_sheaf_alloc_inline
#else
#define ALLOC       stook_cache_alloc
#define FREE        stook_cache_free
#define SHEAF_ALLOC stook_sheaf_alloc
#endif
#ifdef __cplusplus
#include <stook/object_pool.hpp>
#endif

/* Inlined, the compiler sees which call an object is from. */
#define HERE static inline __attribute__((always_inline))
#define ATTEMPTS 100                    /* the thread may be on another CPU each time */

struct head {
        struct head *next, *prev;
};

struct node {
        struct head head;
        long n;
#ifdef __cplusplus
        node() noexcept : head{&head, &head}, n(0)
        {
        }
#endif
};

static unsigned failures;

static void make(void *object, void *data)
{
        struct node *node = (struct node *)object;

        (void)data;
        node->head.next = node->head.prev = &node->head;
}

static void expect(int good, const char *what)
{
        if (good)
                return;
        printf("%s: not what was there\n", what);
        failures++;
}

/*
 * A constructed object has a pointer to itself. It is not freed here: of an object that is passed
 * on compilers assume less.
 */
HERE void see_constructed(void *object, const char *call)
{
        struct node *node = (struct node *)object;
        struct head *next = node->head.next;

        node->head.prev = NULL;
        next->prev = next;
        expect(node->head.prev != NULL, call);
}

#define CONSTRUCTED(name, call)                                                                 \
        static __attribute__((noinline)) void name(struct stook_cache *made,                    \
                                                   struct stook_sheaf *sheaf)                   \
        {                                                                                       \
                (void)sheaf;                                                                    \
                see_constructed(call, #call);                                                   \
        }

CONSTRUCTED(from_cache, ALLOC(made))
CONSTRUCTED(from_cache_nolock, stook_cache_alloc_nolock(made))
CONSTRUCTED(from_cache_flags, stook_cache_alloc_flags(made, 0))
CONSTRUCTED(from_node, stook_cache_alloc_node(made, 0, -1))
CONSTRUCTED(from_sheaf, SHEAF_ALLOC(made, sheaf))

/* @read: a reader of the type-stable cache found it before it was freed. */
HERE int see_stable(struct node *read, void *object, const char *call)
{
        struct node *node = (struct node *)object;
        volatile uintptr_t before = (uintptr_t)read, now = (uintptr_t)node;

        read->n = 1;
        node->n = 2;
        if (before != now)
                return 0;
        expect(read->n == 2, call);
        return 1;
}

#define STABLE(call)                                                                            \
        do {                                                                                    \
                int seen = 0;                                                                   \
                                                                                                \
                for (int i = 0; i < ATTEMPTS && !seen; i++) {                                   \
                        struct node *read = (struct node *)ALLOC(stable);           \
                        void *object;                                                           \
                                                                                                \
                        FREE(stable, read);                                         \
                        object = (call);                                                        \
                        seen = see_stable(read, object, #call);                                 \
                        FREE(stable, object);                                       \
                }                                                                               \
                expect(seen, #call);                                                            \
        } while (0)

static void see_made(struct stook_cache *made)
{
        struct stook_sheaf *sheaf = stook_sheaf_prefill(made, 0, 1);

        from_cache(made, sheaf);
        from_cache_nolock(made, sheaf);
        from_cache_flags(made, sheaf);
        from_node(made, sheaf);
        from_sheaf(made, sheaf);
}

static void see_reused(struct stook_cache *stable)
{
        STABLE(ALLOC(stable));
        STABLE(stook_cache_zalloc(stable));
        STABLE(stook_cache_alloc_nolock(stable));
        STABLE(stook_cache_alloc_flags(stable, STOOK_ALLOC_ZERO));
        STABLE(stook_cache_alloc_node(stable, 0, -1));
}

int main(void)
{
        struct stook_cache_args args = {};
        struct stook_cache *made, *stable;

        args.args_size = sizeof(args);
        args.ctor = make;
        made = stook_cache_create("made", sizeof(struct node), &args);
        args.ctor = NULL;
        args.flags = STOOK_CACHE_TYPESAFE_BY_RCU;
        stable = stook_cache_create("stable", sizeof(struct node), &args);
        see_made(made);
        see_reused(stable);
#ifdef __cplusplus
        stook::object_pool<node> pool("pool");

        see_constructed(pool.get().get(), "object_pool::get");
        see_constructed(pool.try_get().get(), "object_pool::try_get");
#endif
        return failures != 0;
}
