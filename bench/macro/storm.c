/*
 * bench/macro/storm.c - what a fork, and the start of a program, takes
 *
 * Purpose: makes N children one after the other, with a heap of 1 KiB objects around it, and prints
 * the median of what each takes until its end is noticed.
 *   storm fork|exec|spawn [heap_mib=N] [n=N]
 * fork: the child ends at once. exec: fork, and the child executes /bin/true. spawn: posix_spawn of
 * /bin/true. Children that are executed have no preload: what it costs them spawn.cc tells.
 * Place: started by hand, with and without a preload, in turn.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OBJECT 1024

static double now_us(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static long option(int argc, char **argv, const char *key, long otherwise)
{
        for (int i = 2; i < argc; i++)
                if (!strncmp(argv[i], key, strlen(key)))
                        return strtol(argv[i] + strlen(key), NULL, 0);
        return otherwise;
}

static int by_value(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

static pid_t make(const char *how)
{
        static char *const argv[] = { "/bin/true", NULL }, *const environment[] = { NULL };
        pid_t child;

        if (!strcmp(how, "spawn"))
                return posix_spawn(&child, argv[0], NULL, NULL, argv, environment) ? -1 : child;
        child = fork();
        if (child)
                return child;
        if (!strcmp(how, "exec"))
                execve(argv[0], argv, environment);
        _exit(strcmp(how, "fork") != 0);
}

int main(int argc, char **argv)
{
        long objects = option(argc, argv, "heap_mib=", 0) * 1024, n = option(argc, argv, "n=", 300);
        double *took = calloc((size_t)n, sizeof(*took));

        if (argc < 2 || !took)
                return 2;
        for (long i = 0; i < objects; i++) {
                void *volatile object = malloc(OBJECT);

                if (!object)
                        return 2;
                memset(object, 1, OBJECT);
        }
        for (long i = 0; i < n; i++) {
                double start = now_us();
                pid_t child = make(argv[1]);
                int status;

                if (child < 0 || waitpid(child, &status, 0) != child || status)
                        return 2;
                took[i] = now_us() - start;
        }
        qsort(took, (size_t)n, sizeof(*took), by_value);
        printf("{\"us\": %.1f, \"quarter_us\": %.1f}\n", took[n / 2], took[n / 4]);
        return 0;
}
