/*
 * Purpose: a program that any drop-in malloc runs: threads that get, fill, look at and free objects
 * of many sizes, and children of fork that do so meanwhile. Ends with 1 if an object was changed.
 * Place: CI runs it by qemu-user for machines that it has no other tests of.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS  3
#define TURNS    8000
#define OBJECTS  200
#define BYTES    9000
#define CHILDREN 4

struct object {
        unsigned char *at;
        size_t bytes;
};

static int good(const struct object *o, unsigned char mark)
{
        return !o->at || (o->at[0] == mark && o->at[o->bytes - 1] == mark);
}

static int turns(unsigned seed, unsigned char mark)
{
        struct object objects[OBJECTS] = { { 0 } };
        int bad = 0;

        for (unsigned i = 0; i < TURNS; i++) {
                struct object *o = &objects[(seed = seed * 1103515245 + 12345) / 65536 % OBJECTS];

                bad |= !good(o, mark);
                free(o->at);
                o->bytes = (seed = seed * 1103515245 + 12345) / 65536 % BYTES + 1;
                o->at = malloc(o->bytes);
                if (!o->at)
                        return 1;
                memset(o->at, mark, o->bytes);
        }
        for (unsigned i = 0; i < OBJECTS; i++) {
                bad |= !good(&objects[i], mark);
                free(objects[i].at);
        }
        return bad;
}

static void *run(void *number)
{
        unsigned n = *(unsigned *)number;

        *(unsigned *)number = (unsigned)turns(n, (unsigned char)n);
        return NULL;
}

int main(void)
{
        unsigned number[THREADS];
        pthread_t thread[THREADS];
        int bad = 0, status;

        for (unsigned i = 0; i < THREADS; i++) {
                number[i] = i + 1;
                if (pthread_create(&thread[i], NULL, run, &number[i]))
                        return 1;
        }
        for (unsigned i = 0; i < CHILDREN; i++) {
                pid_t child = fork();

                if (!child)
                        _exit(turns(100 + i, 0xa5));
                bad |= child < 0 || waitpid(child, &status, 0) != child || status;
        }
        for (unsigned i = 0; i < THREADS; i++) {
                pthread_join(thread[i], NULL);
                bad |= number[i] != 0;
        }
        puts(bad ? "an object was changed" : "ok");
        return bad;
}
