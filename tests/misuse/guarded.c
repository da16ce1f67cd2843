/*
 * Small programs with one bug each, in C on malloc, for guarded samples; guarded.py runs them. Each
 * does its bug as often as it is told, until it is found. A bug does no harm to an object that is
 * not guarded: what it touches is free, or the program's own. Marks are those of forty.c; those of
 * the functions before a bug's are its, too.
 */
#include <pthread.h>
#include <stdio.h>

#include "guarded.h"

static volatile int three = 3, ten = 10, sum;

/* ------------------------------------------------------------------------- used after the free */

static void status_read(void)
{
        struct { int code; char text[44]; } *status = calloc(1, sizeof(*status)); /* born */

        free(status);                                           /* freed */
        sum += status->code;                                    /* fault */
}

static void status_written(void)
{
        struct { int code; char text[44]; } *status = calloc(1, sizeof(*status)); /* born */

        free(status);                                           /* freed */
        status->code = three;                                   /* fault */
}

static void page_read(void)
{
        volatile char *page = malloc(3000);                     /* born */

        free((char *)page);                                     /* freed */
        sum += page[2999];                                      /* fault */
}

static void page_written(void)
{
        volatile char *page = malloc(4000);                     /* born */

        free((char *)page);                                     /* freed */
        page[0] = 1;                                            /* fault */
}

static void list_walked(void)
{
        struct node { struct node *next; int value; } *list = NULL;

        for (int i = 0; i < 4; i++) {
                struct node *node = malloc(sizeof(*node));      /* born */

                node->next = list;
                list = node;
        }
        for (int i = 0; i < 4; i++) {
                struct node *node = list;

                free(node);                                     /* freed */
                list = node->next;                              /* fault */
        }
}

static void line_grown(void)
{
        volatile char *line = malloc(100), *grown;              /* born */

        line[0] = 1;
        grown = realloc((char *)line, 700);                     /* freed */
        sum += line[0];                                         /* fault */
        free((char *)grown);
}

static void string_kept(void)
{
        char *text = strdup("a name that has moved away"), *kept = strchr(text, 'm'); /* born */

        free(text);                                             /* freed */
        sum += strlen(kept);                                    /* fault */
}

/* An entry leaves a cache of the program's own, which forgets one of its lists. */
static void entry_evicted(void)
{
        struct entry { int key; char value[180]; } *slots[2], *recent;

        for (int i = 0; i < 2; i++) {
                slots[i] = malloc(sizeof(struct entry));        /* born */
                slots[i]->key = i;
        }
        recent = slots[0];
        for (int i = 0; i < 2; i++)
                free(slots[i]);                                 /* freed */
        recent->key = ten;                                      /* fault */
}

static void *freeing(void *object)
{
        free(object);                                           /* freed */
        return NULL;
}

static void thread_frees(void)
{
        volatile int *job = malloc(1500);                       /* born */
        pthread_t thread;

        if (pthread_create(&thread, NULL, freeing, (void *)job))
                exit(3);
        pthread_join(thread, NULL);
        sum += job[3];                                          /* fault */
}

static void *writing(void *object)
{
        *(volatile char *)object = 1;                           /* fault */
        return NULL;
}

static void thread_writes(void)
{
        char *job = malloc(1500);                               /* born */
        pthread_t thread;

        free(job);                                              /* freed */
        if (pthread_create(&thread, NULL, writing, job))
                exit(3);
        pthread_join(thread, NULL);
}

/* -------------------------------------------------------------------------------- freed twice */

static void freed_twice(void)
{
        char *one = malloc(TWICE);                              /* born */

        free(one);                                              /* freed */
        reuse(one);
        free(one);                                              /* fault */
}

static void *free_again(void *object)
{
        free(object);                                           /* fault */
        return NULL;
}

static void thread_frees_twice(void)
{
        char *one = malloc(TWICE);                              /* born */
        pthread_t thread;

        free(one);                                              /* freed */
        reuse(one);
        if (pthread_create(&thread, NULL, free_again, one))
                exit(3);
        pthread_join(thread, NULL);
}

/* ----------------------------------------------------------------------- beyond the right end */

static void record_read(void)
{
        volatile char *record = malloc(64);                     /* born */

        sum += record[64];                                      /* fault */
        free((char *)record);
}

/* The sender says how long the answer is to be. */
static void heartbeat(void)
{
        char *request = malloc(64), answer[128];                /* born */

        memcpy(answer, request, 40 * three);                    /* fault */
        sum += answer[100];
        free(request);
}

static void one_too_many(void)
{
        int *squares = malloc(256 * sizeof(int));               /* born */

        for (int i = 0; i <= 256; i++)
                squares[i] = 0;                                 /* fault */
        free(squares);                                          /* late */
}

static void string_end(void)
{
        char *copy = malloc(strlen("twenty characters...")); /* born */

        strcpy(copy, "twenty characters...");                   /* fault */
        free(copy);                                             /* late */
}

static void number_printed(void)
{
        char *text = malloc(10);                                /* born */

        sprintf(text, "%d", -1234567890 - three);               /* fault */
        free(text);                                             /* late */
}

static void zeroed_too_far(void)
{
        char *table = calloc(10, 100);                          /* born */

        memset(table, 0, 100 * ten + 8);                        /* fault */
        free(table);                                            /* late */
}

static void aligned_too_far(void)
{
        volatile char *block = aligned_alloc(64, 1024);         /* born */

        sum += block[1024 + three];                             /* fault */
        free((char *)block);
}

static void grown_too_little(void)
{
        char *line = malloc(24), *grown;

        line[0] = 1;
        grown = realloc(line, 100);                             /* born */
        grown[100] = 1;                                         /* fault */
        free(grown);                                            /* late */
}

/* ------------------------------------------------------------------------ beyond the left end */

static void before_first(void)
{
        volatile char *text = malloc(96);                       /* born */

        sum += text[-1];                                        /* fault */
        free((char *)text);
}

static void header_written(void)
{
        volatile long *body = malloc(1024);                     /* born */

        body[-1] = 0;                                           /* fault */
        free((long *)body);
}

BUGS(
        BUG(status_read), BUG(status_written), BUG(page_read), BUG(page_written), BUG(list_walked),
        BUG(line_grown), BUG(string_kept), BUG(entry_evicted), BUG(thread_frees),
        BUG(thread_writes), BUG(freed_twice), BUG(thread_frees_twice), BESIDE(record_read, 64),
        BESIDE(heartbeat, 64), BESIDE(one_too_many, 1024), BUG(string_end), BUG(number_printed),
        BUG(zeroed_too_far), BESIDE(aligned_too_far, 1024), BUG(grown_too_little),
        BESIDE(before_first, 96), BESIDE(header_written, 1024)
)
