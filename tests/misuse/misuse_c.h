/*
 * Purpose: the misuses of misuse.c that C alone has; and programs in C without a misuse, in which
 * no mode may find one.
 */
#ifndef STOOK_MISUSE_C_H
#define STOOK_MISUSE_C_H

#include "misuse_victim.h"

/* ------------------------------------------------------------------------------------- C alone */

static void overflow_usable(void) { store(p + malloc_usable_size(p), 1, 1); }

static void overflow_grown(void)
{
        p = hidden(realloc(p, n + n / 2));
        store(p + n + n / 2, 1, 1);
}

static void overflow_shrunk(void)
{
        p = hidden(realloc(p, n - n / 4));
        store(p + n - n / 4, 1, 1);
}

static void overflow_aligned(void)
{
        char *object = hidden(aligned_alloc(256, (n + 255) / 256 * 256));

        store(object + (n + 255) / 256 * 256, 8, 'A');
        FREE(object);
}

static char *moved(void)
{
        char *old = hidden(p);

        p = hidden(realloc(p, n * 9));
        return p == old ? NULL : old;
}

static void read_moved(void)
{
        char *old = moved();

        stopped = !old || !has(old + n / 2, 8, VICTIM);
}

static void write_moved(void)
{
        char *old = moved();

        stopped = !old;
        if (old)
                store(old + n / 2, 8, 'A');
}

static void double_moved(void)
{
        char *old = moved();

        stopped = !old;
        if (old)
                FREE(old);
}

static void double_realloc(void) { before = hidden(realloc(p, n * 2)); }
static void double_realloc_zero(void) { sum += !!hidden(realloc(p, 0)); }

static void *free_it(void *object)
{
        FREE(object);
        return NULL;
}

/* Two threads, one object: neither knows of the other. */
static void double_race(void)
{
        pthread_t threads[2];

        for (int i = 0; i < 2; i++)
                pthread_create(&threads[i], NULL, free_it, p);
        for (int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
}

static void invalid_realloc(void) { sum += !!hidden(realloc(hidden(p + 16), n * 2)); }

static void invalid_usable(void)
{
        sum += malloc_usable_size(hidden(p + 8)) > 0;
        FREE(p + 8);
}


static void zero_calloc(void) { store(hidden(calloc(0, 8)), 1, 'A'); }
static void zero_realloc(void) { store(hidden(realloc(NULL, 0)), 1, 'A'); }
static void zero_aligned(void) { store(hidden(memalign(64, 0)), 1, 'A'); }

static volatile size_t huge = SIZE_MAX;

static void refused(const void *object) { stopped = !hidden(object); }
static void size_max(void) { refused(malloc(huge)); }
static void size_negative(void) { refused(malloc(-(n + 0))); }
static void size_half(void) { refused(malloc(huge / 2 + 1)); }
static void size_calloc(void) { refused(calloc(huge / 2 + 2, 2)); }
static void size_calloc_zero(void) { refused(calloc((size_t)1 << 33, (size_t)1 << 31)); }
static void size_realloc(void) { refused(realloc(NULL, huge - 15)); }
static void size_array(void) { refused(reallocarray(NULL, huge / 16 + 2, 16)); }
static void size_aligned(void) { refused(aligned_alloc(64, huge - 63)); }
static void size_memalign(void) { refused(memalign((size_t)1 << 62, (size_t)1 << 62)); }
static void size_pvalloc(void) { refused(pvalloc(huge - 4000)); }

static void size_posix(void)
{
        void *object = NULL;

        stopped = posix_memalign(&object, 64, huge - 100) != 0;
}

static void size_alignment(void)
{
        void *object = NULL;

        stopped = posix_memalign(&object, 24, 100) == EINVAL;
}

static void content_grown(void)
{
        char *secret[8];

        for (int i = 0; i < 8; i++)
                secret[i] = filled(n * 3, 's');
        for (int i = 0; i < 8; i++)
                FREE(secret[i]);
        p = hidden(realloc(p, n * 3));
        stopped = !has(p + n, n * 2, 's');
}

static void content_shrunk(void)
{
        p = hidden(realloc(p, n / 4));
        p = hidden(realloc(p, n));
        stopped = !has(p + n / 4, n - n / 4, VICTIM);
}

/* ----------------------------------------------------------------------------------- no misuse */

static void need(bool what)
{
        if (!what) {
                puts("wrong");
                exit(3);
        }
}

static void control_usable(void)
{
        for (size_t i = 0; i < 5000; i += 7) {
                char *object = malloc(i);

                memset(hidden(object), 1, malloc_usable_size(object));
                free(object);
        }
        store(p, malloc_usable_size(p), 1);
}

static void control_realloc(void)
{
        char *object = NULL;

        for (size_t i = 1; i < 2000000; i += i / 3 + 1) {
                object = realloc(object, i);
                object[i - 1] = (char)i;
        }
        for (size_t i = 2000000; i; i -= i / 3 + 1) {
                object = realloc(object, i);
                object[i - 1] = 1;
        }
        free(object);
        free(realloc(NULL, 10));
        free(reallocarray(NULL, 10, 10));
}

static void control_zero(void)
{
        char *objects[300];

        for (int i = 0; i < 300; i++)
                need((objects[i] = malloc(0)) != NULL);
        for (int i = 0; i < 300; i++)
                for (int k = 0; k < i; k++)
                        need(objects[i] != objects[k]);
        for (int i = 0; i < 300; i++)
                objects[i] = realloc(objects[i], (size_t)i);
        for (int i = 0; i < 300; i++)
                free(objects[i]);
        free(calloc(0, 0));
        free(NULL);
}

static void control_calloc(void)
{
        for (int round = 0; round < 3; round++)
                for (size_t i = 1; i < 1000000; i += i / 2 + 1) {
                        char *object = calloc(1, i);

                        for (size_t k = 0; k < i; k++)
                                need(!object[k]);
                        memset(hidden(object), 1, i);
                        free(object);
                }
}

static void control_aligned(void)
{
        void *object;

        for (size_t align = 8; align <= 1 << 21; align *= 2) {
                need(!posix_memalign(&object, align, align / 2 + 24));
                need(!((uintptr_t)object & (align - 1)));
                memset(hidden(object), 1, align / 2 + 24);
                object = realloc(object, align + 100);
                memset(hidden(object), 1, align + 100);
                free(object);
                object = aligned_alloc(align, align);
                memset(hidden(object), 1, align);
                free(object);
        }
}

static void control_refused(void)
{
        p = realloc(p, n);
        need(!realloc(p, huge / 4) && has(p, 8, VICTIM));
        need(!calloc(huge / 64, 16) && !malloc(huge / 4));
}

static void *free_all(void *objects)
{
        for (int i = 0; i < 500; i++)
                free(((void **)objects)[i]);
        return malloc(100);
}

static void control_threads(void)
{
        static void *objects[4][500];
        pthread_t threads[4];
        void *got;

        for (int i = 0; i < 4; i++)
                for (int k = 0; k < 500; k++)
                        objects[i][k] = filled((size_t)(k * 37 % 4000), OTHER);
        for (int i = 0; i < 4; i++)
                pthread_create(&threads[i], NULL, free_all, objects[i]);
        for (int i = 0; i < 4; i++) {
                pthread_join(threads[i], &got);
                free(got);
        }
}

static void control_fork(void)
{
        int status;
        pid_t child;

        fflush(NULL);
        child = fork();
        if (!child) {
                FREE(p);
                churn();
                _exit(0);
        }
        need(waitpid(child, &status, 0) == child && !status);
}

static void control_stdio(void)
{
        char *line = NULL, *text;
        size_t room = 0;
        FILE *file = open_memstream(&text, &room);

        for (int i = 0; i < 3000; i++)
                fprintf(file, "%d\n", i);
        fclose(file);
        file = fmemopen(text, room, "r");
        room = 0;
        while (getline(&line, &room, file) > 0)
                sum += line[0];
        fclose(file);
        free(line);
        free(text);
        free(strndup("a string", 3));
}

/* Whatever order objects die in, and whatever their last bytes are. */
static void control_orders(void)
{
        char *objects[1000];
        unsigned seed = 1;

        for (int round = 0; round < 20; round++) {
                for (int i = 0; i < 1000; i++)
                        objects[i] = filled(seed % 700 + (i % 97 ? 0 : 5000), (int)(seed >> 8)),
                        seed = seed * 1103515245 + 12345;
                for (int i = 0; i < 1000; i++)
                        free(objects[i * 7919 % 1000]);
        }
}

#endif
