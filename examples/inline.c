/* stook-inline(3): the common case of alloc and free runs in the caller. */
#define STOOK_NEVER_UNLOADED                    /* a program is never unloaded */
#include <stdio.h>
#include <stook/inline.h>

struct node { struct node *next; };

int main(void)
{
        struct stook_cache *nodes = stook_cache_create("node", sizeof(struct node), NULL);
        unsigned n;

        if (!nodes)
                return 1;
        for (n = 0; n < 1000; n++) {
                struct node *node = stook_cache_alloc_inline(nodes);

                if (!node)
                        break;
                stook_cache_free_inline(nodes, node);
        }
        printf("%u pairs\n", n);
        return n != 1000 || stook_cache_destroy(nodes);
}
