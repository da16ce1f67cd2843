/*
 * A program with the faults that its arguments name; checkers.py runs it under memory checkers.
 * What is read too late or too far decides a branch, so that no compiler leaves the read out.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/stook.h>

#define MANY 200

struct node {
        struct node *next;
        char name[16];
};

static struct stook_cache *nodes;

static void look(const volatile char *at)
{
        if (*at == 77)
                puts("77");
}

static struct node *make(void)
{
        struct node *node = stook_cache_alloc(nodes);

        memset(node, 1, sizeof(*node));
        return node;
}

static void read_after_free(void)
{
        struct node *node = make();

        stook_cache_free(nodes, node);
        look(node->name);
}

/* Others were allocated since: none of them is at that address. */
static void read_later(void)
{
        struct node *node = make();

        stook_cache_free(nodes, node);
        for (int i = 0; i < MANY; i++)
                make();
        look(node->name);
}

static void write_after_free(void)
{
        struct node *node = make();

        stook_cache_free(nodes, node);
        *(volatile char *)node->name = 1;
}

static void overrun(void)
{
        make();
        ((volatile char *)make())[sizeof(struct node)] = 1;
}

static void underrun(void)
{
        ((volatile char *)make())[-1] = 1;
}

/* Within the object of the class: one byte behind the 13 that were asked for. */
static void overrun_of_malloc(void)
{
        ((volatile char *)stook_malloc(13))[13] = 1;
}

static void overrun_of_realloc(void)
{
        char *object = stook_malloc(100);

        memset(object, 1, 100);
        object = stook_realloc(object, 90);
        look(object + 90);
}

static void overrun_of_large(void)
{
        ((volatile char *)stook_malloc(200000))[200000] = 1;
}

static void read_of_large(void)
{
        char *object = stook_calloc(1, 200000);

        stook_free(object);
        look(object + 100000);
}

static void read_bulk(void)
{
        void *objects[8], *first;

        if (stook_cache_alloc_bulk(nodes, STOOK_ALLOC_ZERO, 8, objects))
                abort();
        first = objects[0];
        stook_cache_free_bulk(nodes, 8, objects);
        look(first);
}

static void read_of_sheaf(void)
{
        struct stook_sheaf *sheaf = stook_sheaf_prefill(nodes, 0, 4);
        char *object = stook_sheaf_alloc(nodes, sheaf);

        object[0] = 1;
        look(object);
        stook_cache_free(nodes, object);
        look(object);
}

static void double_free(void)
{
        struct node *node = make();

        stook_cache_free(nodes, node);
        make();
        stook_cache_free(nodes, node);
}

static void uninitialised(void)
{
        look(stook_cache_alloc(nodes));
}

static __attribute__((noinline)) void lose(void)
{
        make();
        *(volatile struct node **)stook_cache_alloc(nodes) = NULL;
}

/* What a checker's own malloc gave is pointed to by an object alone. */
static __attribute__((noinline)) void keep(bool frees)
{
        struct node *node = stook_cache_alloc(nodes);

        node->next = malloc(100);
        if (frees)
                stook_cache_free(nodes, node);
}

/* What points to it must be gone: not so if it is in a frame that another call leaves as it was. */
static __attribute__((noinline)) void wipe(void)
{
        volatile char frame[4096];

        memset((char *)frame, 0, sizeof(frame));
}

static void leak(void)
{
        lose();
        wipe();
}

static void keeps(void)
{
        keep(false);
        wipe();
}

static void loses(void)
{
        keep(true);
        wipe();
}

static const struct {
        const char *name;
        void (*make)(void);
} faults[] = {
        { "read-after-free", read_after_free }, { "read-later", read_later },
        { "write-after-free", write_after_free }, { "overrun", overrun },
        { "underrun", underrun }, { "overrun-of-malloc", overrun_of_malloc },
        { "overrun-of-realloc", overrun_of_realloc },
        { "overrun-of-large", overrun_of_large }, { "read-of-large", read_of_large },
        { "read-bulk", read_bulk },
        { "read-of-sheaf", read_of_sheaf }, { "double-free", double_free },
        { "uninitialised", uninitialised }, { "leak", leak },
        { "keeps", keeps }, { "loses", loses },
};

static bool make_fault(const char *name)
{
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
                if (!strcmp(name, faults[i].name)) {
                        faults[i].make();
                        return true;
                }
        return false;
}

int main(int argc, char **argv)
{
        nodes = stook_cache_create("node", sizeof(struct node), NULL);
        for (int i = 1; i < argc; i++)
                if (!nodes || !make_fault(argv[i]))
                        return 2;
        return 0;
}
