// aborts: stook: double free: pointer 0x* (cache malloc-64, slab 0x* offset 0): it is free in the main sheaf of a slot
#include "harden.h"

#include <pthread.h>

static void *free_it(void *object)
{
        stook_free(object);
        return NULL;
}

void misuse(void);
void misuse(void)
{
        void *object = stook_malloc(50);
        pthread_t thread;

        if (!pthread_create(&thread, NULL, free_it, object))
                pthread_join(thread, NULL);
        stook_free(object);
}
