/* A tree is written under a lock, where no allocation may fail: nodes come from a sheaf. */
#include <stdbool.h>
#include <stdio.h>
#include <stook/stook.h>

struct node {
        struct node *left, *right;
        long         key;
};

static struct stook_cache *nodes;
static struct node *root;

static struct node **place_of(long key)
{
        struct node **at = &root;

        while (*at && (*at)->key != key)
                at = key < (*at)->key ? &(*at)->left : &(*at)->right;
        return at;
}

static bool insert_all(const long *keys, size_t n)
{
        struct stook_sheaf *sheaf = stook_sheaf_prefill(nodes, STOOK_ALLOC_ZERO, n);
        bool inserted = false;

        if (!sheaf)
                return false;
        for (size_t i = 0; i < n; i++) {
                struct node **at = place_of(keys[i]);

                if (*at) {
#ifndef FIXED
                        stook_sheaf_return(nodes, sheaf);
#endif
                        goto out;
                }
                *at = stook_sheaf_alloc(nodes, sheaf);
                (*at)->key = keys[i];
        }
        inserted = true;
out:
        stook_sheaf_return(nodes, sheaf);
        return inserted;
}

static void forget(struct node *node)
{
        if (!node)
                return;
        forget(node->left);
        forget(node->right);
        stook_cache_free(nodes, node);
}

int main(void)
{
        static const long keys[] = { 5, 2, 8, 1, 5, 9 };

        nodes = stook_cache_create("node", sizeof(struct node), NULL);
        if (!nodes)
                return 1;
        if (!insert_all(keys, 6))
                printf("a key was there before\n");
        forget(root);
        return stook_cache_destroy(nodes) ? 1 : 0;
}
