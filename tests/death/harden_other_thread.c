// aborts: stook: double free: pointer 0x* (cache malloc-64, slab 0x* offset 0): it is free in the main sheaf of a slot
#include "harden.h"

#include <pthread.h>
#include <unistd.h>

static pthread_barrier_t freed;

/* It does not end: its end would empty the slot. */
static void *free_it(void *object)
{
        stook_free(object);
        pthread_barrier_wait(&freed);
        for (;;)
                pause();
        return NULL;
}

void misuse(void);
void misuse(void)
{
        void *object = stook_malloc(50);
        pthread_t thread;

        pthread_barrier_init(&freed, NULL, 2);
        if (!pthread_create(&thread, NULL, free_it, object))
                pthread_barrier_wait(&freed);
        stook_free(object);
}
