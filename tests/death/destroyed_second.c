// goes on: stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
// stook: pointer to no live object: pointer 0x* (cache victim): a cache that was destroyed before
#include <errno.h>
#include <stdlib.h>
#include <stook/group.h>
#include <stook/stook.h>

#define MANY 200

static void expect(int right)
{
        if (!right)
                exit(1);
}

static struct stook_cache *make(const char *name, size_t size, unsigned flags)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .flags = flags };
        struct stook_cache *cache = stook_cache_create(name, size, &args);

        expect(cache != NULL);
        return cache;
}

/* @flags: the victim's. Its index becomes the second one of another cache, which has objects. */
static void use_after_destroy(unsigned flags, struct stook_group *group)
{
        struct stook_cache *victim = make("victim", 1000, flags), *first = make("first", 40, 0);
        struct stook_cache *other;
        void *objects[MANY];
        uint64_t usage;

        stook_cache_free(victim, stook_cache_alloc(victim));
        expect(!stook_cache_destroy(victim) && !stook_cache_destroy(first));
        other = make("other", 24, STOOK_CACHE_ACCOUNT);
        expect(!stook_cache_alloc_bulk(other, 0, MANY, objects));
        stook_cache_free_bulk(other, MANY / 2, objects);
        usage = stook_group_usage(group);
        errno = 0;
        expect(!stook_cache_alloc(victim) && errno == ENOMEM);
        expect(stook_group_usage(group) == usage);
        stook_cache_free_bulk(other, MANY / 2, objects + MANY / 2);
        expect(!stook_cache_validate(other) && !stook_cache_destroy(other));
        expect(!stook_group_usage(group));
}

void misuse(void);
void misuse(void)
{
        struct stook_group *group = stook_group_create("g", NULL, 0);

        stook_group_enter(group);
        use_after_destroy(0, group);
        use_after_destroy(STOOK_CACHE_ACCOUNT, group);
}
