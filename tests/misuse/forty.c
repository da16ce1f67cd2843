/*
 * Small programs with one memory bug each, in C on malloc; forty.py runs them under every mode.
 *
 * Marks at the ends of lines say what a report should name: `fault`, the line with the mistake;
 * `late`, a later call that notices what is left of it; `born` and `freed`, where the object was
 * allocated and freed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

struct node {
        struct node *next;
        int value, done;
        char name[24];
};

static volatile int three = 3, ten = 10, sum;

static struct node *node_new(int value)
{
        struct node *node = malloc(sizeof(*node));

        node->next = NULL;
        node->value = value;
        node->done = 0;
        strcpy(node->name, "node");
        return node;
}

/* --------------------------------------------------------------------- written or read too far */

static void squares(void)
{
        int *squares = malloc(ten * sizeof(int));               /* born */

        for (int i = 0; i <= ten; i++)
                squares[i] = i * i;                             /* fault */
        free(squares);                                          /* late */
}

static void greeting(void)
{
        char *text = malloc(12);                                /* born */

        strcpy(text, "hello");
        strncat(text, ", my world", 12 - strlen(text));         /* fault */
        puts(text);
        free(text);                                             /* late */
}

static void number(void)
{
        char *text = malloc(10);                                /* born */

        sprintf(text, "%d", -1234567890);                       /* fault */
        free(text);                                             /* late */
}

static void flexible(void)
{
        struct { size_t n; char text[]; } *string = malloc(sizeof(*string) + 8); /* born */

        memcpy(string->text, "8 bytes.", 9);                    /* fault */
        free(string);                                           /* late */
}

static void wide(void)
{
        wchar_t *text = malloc(ten + 2);                        /* born */

        wcscpy(text, L"wide");                                  /* fault */
        free(text);                                             /* late */
}

static void swapped(void)
{
        char *from = calloc(1, 100), *to = malloc(40);          /* born */

        memcpy(to, from, 100);                                  /* fault */
        free(to);                                               /* late */
        free(from);
}

static void stride(void)
{
        char *rows = malloc(48);                                /* born */

        memset(rows, 0, 48);
        rows[48 + 63] = 1;                                      /* fault */
        free(rows);                                             /* late */
}

static void header(void)
{
        char *body = malloc(48);                                /* born */

        memset(body, 0, 48);
        body[-64] = 1;                                          /* fault */
        free(body);                                             /* late */
}

static void trailing_slash(void)
{
        char *path = calloc(1, 20);                             /* born */
        char *end = path + strlen(path);

        *--end = '/';                                           /* fault */
        free(path);                                             /* late */
}

static void no_end(void)
{
        char *name = malloc(16);                                /* born */

        memset(name, 'n', 16);
        for (int i = 0; name[i] && i < 100; i++)                /* fault */
                sum++;
        free(name);
}

static void before_first(void)
{
        int *days = calloc(12, sizeof(int));                    /* born */

        sum += days[three - 4];                                 /* fault */
        free(days);
}

static void picture(void)
{
        char *pixels = malloc(600 * 400);                       /* born */

        for (int y = 0; y < 400; y++)
                for (int x = 0; x <= 600; x++)
                        pixels[y * 600 + x] = 1;                /* fault */
        free(pixels);                                           /* late */
}

static void picture_before(void)
{
        char *pixels = malloc(600 * 400);                       /* born */

        pixels[-1] = 1;                                         /* fault */
        free(pixels);                                           /* late */
}

/* ------------------------------------------------------------------------------- used too late */

static void list_walk(void)
{
        struct node *list = node_new(1);

        list->next = malloc(sizeof(*list));                     /* born */
        list->next->next = NULL;
        for (struct node *at = list; at; at = at->next)         /* fault */
                free(at);                                       /* freed */
}

static void completion(void)
{
        struct node *request = calloc(1, sizeof(*request));     /* born */

        free(request);                                          /* freed */
        request->done = 1;                                      /* fault */
}

static void grown(void)
{
        int *numbers = malloc(4 * sizeof(int));                 /* born */
        int *first = numbers;

        numbers = realloc(numbers, 4000 * sizeof(int));         /* freed */
        *first = 1;                                             /* fault */
        free(numbers);
}

static void line_kept(void)
{
        char *line = NULL, *first;
        size_t room = 0;
        char text[4000];
        FILE *file;

        memset(text, 'x', sizeof(text));
        memcpy(text, "short\n", 6);
        file = fmemopen(text, sizeof(text), "r");
        getline(&line, &room, file);                            /* born */
        first = line;
        getline(&line, &room, file);                            /* freed */
        sum += first[0];                                        /* fault */
        free(line);
        fclose(file);
}

static void *finish(void *node)
{
        ((struct node *)node)->done = 1;
        return NULL;
}

static void worker(void)
{
        struct node *job = calloc(1, sizeof(*job));             /* born */
        pthread_t thread;

        free(job);                                              /* freed */
        pthread_create(&thread, NULL, finish, job);
        pthread_join(thread, NULL);
}

static void registry(void)
{
        struct node *table[4], *stale;

        table[0] = calloc(1, sizeof(struct node));              /* born */
        stale = table[0];
        free(table[0]);                                         /* freed */
        table[1] = node_new(2);
        stale->value = 3;                                       /* fault */
        free(table[1]);
}

static void frame_write(void)
{
        char *frame = malloc(300000);                           /* born */

        memset(frame, 1, 300000);
        free(frame);                                            /* freed */
        frame[150000] = 2;                                      /* fault */
}

static void frame_read(void)
{
        char *frame = calloc(1, 300000);                        /* born */

        free(frame);                                            /* freed */
        sum += frame[150000];                                   /* fault */
}

/* --------------------------------------------------------------------- freed twice, or wrongly */

static void error_path(void)
{
        char *buffer = malloc(100);                             /* born */

        if (three)
                free(buffer);                                   /* freed */
        free(buffer);                                           /* fault */
}

static void aliases(void)
{
        struct node *nodes[3] = { node_new(1), malloc(sizeof(struct node)) };   /* born */

        nodes[2] = nodes[1];
        free(nodes[0]);
        free(nodes[1]);                                         /* freed */
        free(nodes[2]);                                         /* fault */
}

static void emptied(void)
{
        char *buffer = malloc(100);                             /* born */

        sum += !realloc(buffer, 0);                             /* freed */
        free(buffer);                                           /* fault */
}

static void *end_job(void *job)
{
        free(job);
        return NULL;
}

static void two_owners(void)
{
        struct node *job = calloc(1, sizeof(*job));             /* born */
        pthread_t thread;

        pthread_create(&thread, NULL, end_job, job);
        pthread_join(thread, NULL);
        free(job);                                              /* fault */
}

static void parser(void)
{
        char *text = malloc(40);                                /* born */

        strcpy(text, "  blanks");
        while (*text == ' ')
                text++;
        free(text);                                             /* fault */
}

static void short_string(void)
{
        char inside[32], *text = three < ten ? inside : malloc(ten);

        strcpy(text, "short");
        free(text);                                             /* fault */
}

static void environment(void)
{
        free(getenv("PATH"));                                   /* fault */
}

static void by_hand(void)
{
        char *block = malloc(200000 + 4096);                    /* born */
        char *page = (char *)(((uintptr_t)block + 4096) & -4096ul);

        free(page);                                             /* fault */
}

/* -------------------------------------------------------------- sizes, content, and what stays */

static void negative(void)
{
        char *rest = malloc(three - ten);                       /* fault */

        if (rest)
                rest[0] = 0;
}

static void half_filled(void)
{
        struct node *node = malloc(sizeof(*node));              /* born */

        node->next = NULL;
        if (node->done == three)                                /* fault */
                sum++;
        free(node);
}

static __attribute__((noinline)) void replace(char **text)
{
        *text = malloc(ten);
}

static void overwritten(void)
{
        static char *text;

        text = malloc(77);                                      /* born */
        replace(&text);
}

static __attribute__((noinline)) int parse(const char *text)
{
        char *copy = strdup(text);                              /* born */

        if (copy[0] != '[')
                return -1;
        free(copy);
        return 0;
}

static void early_return(void)
{
        sum += parse("a setting");
}

static __attribute__((noinline)) void wipe(void)
{
        volatile char frame[4096];

        memset((char *)frame, 0, sizeof(frame));
}

#define BUG(name)       { #name, name }

int main(int argc, char **argv)
{
        static const struct { const char *name; void (*run)(void); } bugs[] = {
                BUG(squares), BUG(greeting), BUG(number), BUG(flexible), BUG(wide), BUG(swapped),
                BUG(stride), BUG(header), BUG(trailing_slash), BUG(no_end), BUG(before_first),
                BUG(picture), BUG(picture_before), BUG(list_walk), BUG(completion), BUG(grown),
                BUG(line_kept), BUG(worker), BUG(registry), BUG(frame_write), BUG(frame_read),
                BUG(error_path), BUG(aliases), BUG(emptied), BUG(two_owners), BUG(parser),
                BUG(short_string), BUG(environment), BUG(by_hand), BUG(negative), BUG(half_filled),
                BUG(overwritten), BUG(early_return),
        };

        for (size_t i = 0; argc == 2 && i < sizeof(bugs) / sizeof(bugs[0]); i++)
                if (!strcmp(bugs[i].name, argv[1])) {
                        bugs[i].run();
                        wipe();
                        return 0;
                }
        return 2;
}
