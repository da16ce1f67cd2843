/*
 * What this proves: rseq_register I1 where it hurts: many short detached threads under load, each
 * registering an area of our own in its thread-local storage and ending. With musl that memory is
 * unmapped by the thread itself: without the unregistration the process dies within a thousand of
 * them. Neither cmocka nor glibc: rseq_musl.sh builds it with musl-gcc. Arguments: number of
 * threads.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "os/os.h"

#define AT_ONCE 16

static sem_t room;
static unsigned registered, on_libc, stop;

static void *short_life(void *unused)
{
        char *area = stook_os_rseq_area();

        __atomic_fetch_add(&registered, area == stook_self->own_rseq, __ATOMIC_RELAXED);
        __atomic_fetch_add(&on_libc, area && area != stook_self->own_rseq, __ATOMIC_RELAXED);
        sem_post(&room);
        return unused;
}

/* Preempts the others, so that the kernel has something to write to their areas. */
static void *load(void *unused)
{
        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
                ;
        return unused;
}

int main(int argc, char **argv)
{
        unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 60000;
        pthread_attr_t detached;
        pthread_t loads[2], thread;

        stook_os_rseq_detect();
        if (stook_os_rseq_owner() == STOOK_RSEQ_NONE) {
                puts("no rseq here");
                return 77;
        }
        if (stook_os_rseq_owner() != STOOK_RSEQ_OWN) {
                puts("libc registers by itself here, which is not what is tested");
                return 1;
        }
        sem_init(&room, 0, AT_ONCE);
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        for (unsigned i = 0; i < 2; i++)
                if (pthread_create(&loads[i], NULL, load, NULL))
                        return 1;
        for (unsigned i = 0; i < threads; i++) {
                while (sem_wait(&room))
                        ;
                while (pthread_create(&thread, &detached, short_life, NULL))
                        usleep(100);
        }
        for (unsigned i = 0; i < AT_ONCE; i++)
                while (sem_wait(&room))
                        ;
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 2; i++)
                pthread_join(loads[i], NULL);
        printf("%u threads, %u registered\n", threads, registered);
        return registered == threads && on_libc == 0 ? 0 : 1;
}
