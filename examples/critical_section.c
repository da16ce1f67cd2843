#include <pthread.h>
#include <stdio.h>
#include <stook/stook.h>

/* stook-sheaf(3): a list under a lock. Nothing may fail under it, so nodes are ready before. */
struct node { struct node *next; int value; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *list;

static int add_range(struct stook_cache *nodes, int from, int to)
{
        struct stook_sheaf *sheaf = stook_sheaf_prefill(nodes, 0, (size_t)(to - from));

        if (!sheaf)
                return -1;                              /* nothing was changed yet */
        pthread_mutex_lock(&lock);
        for (int i = from; i < to; i++) {
                struct node *node = stook_sheaf_alloc(nodes, sheaf);    /* cannot fail */

                node->value = i;
                node->next = list;
                list = node;
        }
        pthread_mutex_unlock(&lock);
        stook_sheaf_return(nodes, sheaf);               /* with what is left in it */
        return 0;
}

int main(void)
{
        struct stook_cache *nodes = stook_cache_create("node", sizeof(struct node), NULL);
        int sum = 0;

        if (!nodes || add_range(nodes, 0, 10) || add_range(nodes, 10, 30))
                return 1;
        while (list) {
                struct node *node = list;

                list = node->next;
                sum += node->value;
                stook_cache_free(nodes, node);          /* objects like any other */
        }
        printf("sum %d\n", sum);
        return sum != 435 || stook_cache_destroy(nodes);
}
