/* The same with object caches: marks as in forty.c. */
#include <string.h>
#include <stook/stook.h>

struct entry {
        long users;
        char name[40];
};

static void make(void *object, void *data)
{
        memset(object, 0, sizeof(struct entry));
        (void)data;
}

static void still_used(void)
{
        struct stook_cache_args args = { .args_size = sizeof(args), .ctor = make };
        struct stook_cache *cache = stook_cache_create("entry", sizeof(struct entry), &args);
        struct entry *entry = stook_cache_alloc(cache);         /* born */

        entry->users++;
        stook_cache_free(cache, entry);                         /* fault */
        stook_cache_destroy(cache);
}

static void closed(void)
{
        struct stook_cache *cache = stook_cache_create("entry", sizeof(struct entry), NULL);
        struct entry *entry = stook_cache_alloc(cache);         /* born */

        stook_cache_free(cache, entry);                         /* freed */
        stook_cache_destroy(cache);
        entry->users = 1;                                       /* fault */
}

int main(int argc, char **argv)
{
        if (argc == 2 && !strcmp(argv[1], "still_used"))
                still_used();
        else if (argc == 2 && !strcmp(argv[1], "closed"))
                closed();
        else
                return 2;
        return 0;
}
