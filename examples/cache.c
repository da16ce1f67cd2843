/* stook-cache(3), stook-object(3): objects with a constructor, one by one and in bulk. */
#include <stdio.h>
#include <stook/cache.h>

struct node { struct node *next; int ready; };

static void prepare(void *object, void *ctor_data)
{
        struct node *node = object;

        (void)ctor_data;
        node->next = NULL;
        node->ready = 1;
}

static int use_nodes(void)
{
        struct stook_cache *nodes = stook_cache_create("node", sizeof(struct node),
                                                       STOOK_CACHE_ARGS(.ctor = prepare));
        void *many[64];

        if (!nodes || stook_cache_alloc_bulk(nodes, 0, 64, many))
                return -1;                              /* all 64, or none */
        struct node *node = stook_cache_alloc(nodes);   /* constructed */
        stook_cache_free(nodes, node);                  /* NULL is fine */
        stook_cache_free_bulk(nodes, 64, many);
        stook_cache_shrink(nodes);                      /* memory goes back to the pages */
        return stook_cache_destroy(nodes);
}

int main(void)
{
        int error = use_nodes();

        printf("nodes: %d\n", error);
        return error != 0;
}
