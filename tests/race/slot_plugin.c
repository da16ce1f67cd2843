/*
 * Proves that code with inlined sections can be unloaded. A plug-in runs in four threads and is
 * closed by dlclose, and the threads live on through their next preemptions. rseq_cs must not point
 * into the plug-in then: the kernel would read a descriptor that is gone, and kill the process.
 * The same plug-in built with STOOK_NEVER_UNLOADED, which is false here, must be killed. So the
 * test would notice.
 * Usage: slot_plugin PLUGIN LYING_PLUGIN
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <stook/layout.h>
#include <stook/stook.h>

#define THREADS 4
#define ROUNDS  10

static int (*volatile work)(struct stook_cache *cache, struct stook_cache *bare);
static struct stook_cache *cache, *bare;
static pthread_barrier_t loaded, worked, unloaded, rested;
static int trouble;

/* Preempted many times, in code of its own only. */
static void rest(void)
{
        struct timespec start, now;

        clock_gettime(CLOCK_MONOTONIC, &start);
        do {
                sched_yield();
                clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 20);
}

static void *thread(void *number)
{
        for (int i = 0; i < ROUNDS; i++) {
                pthread_barrier_wait(&loaded);
                if (work(cache, (size_t)number % 2 ? bare : NULL))
                        __atomic_store_n(&trouble, 1, __ATOMIC_RELAXED);
                pthread_barrier_wait(&worked);
                pthread_barrier_wait(&unloaded);
                rest();
                pthread_barrier_wait(&rested);
        }
        return NULL;
}

static int run(const char *path)
{
        struct stook_cache_args args = { .args_size = sizeof(args),
                                         .flags = STOOK_CACHE_NO_SHEAVES };
        pthread_t threads[THREADS];
        cpu_set_t one;

        /* All on one CPU: each rest preempts the others, however many CPUs are idle. */
        CPU_ZERO(&one);
        CPU_SET((unsigned)sched_getcpu(), &one);
        if (sched_setaffinity(0, sizeof(one), &one))
                return 1;
        cache = stook_cache_create("plug-in", 64, NULL);
        bare = stook_cache_create("plug-in, bare", 64, &args);
        if (!cache || !bare)
                return 1;
        pthread_barrier_init(&loaded, NULL, THREADS + 1);
        pthread_barrier_init(&worked, NULL, THREADS + 1);
        pthread_barrier_init(&unloaded, NULL, THREADS + 1);
        pthread_barrier_init(&rested, NULL, THREADS + 1);
        for (size_t i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], NULL, thread, (void *)i))
                        return 1;
        for (int i = 0; i < ROUNDS; i++) {
                void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);

                if (!plugin) {
                        fprintf(stderr, "%s\n", dlerror());
                        return 1;
                }
                work = (int (*)(struct stook_cache *, struct stook_cache *))dlsym(plugin,
                                                                                  "plugin_work");
                if (!work)
                        return 1;
                pthread_barrier_wait(&loaded);
                pthread_barrier_wait(&worked);
                dlclose(plugin);
                if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) {
                        fprintf(stderr, "the plug-in is still loaded\n");
                        return 1;
                }
                pthread_barrier_wait(&unloaded);
                pthread_barrier_wait(&rested);
        }
        for (size_t i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        return trouble || stook_cache_destroy(cache) || stook_cache_destroy(bare);
}

int main(int argc, char **argv)
{
        struct stook_mode mode = { .mode_size = sizeof(mode) };
        int status;
        pid_t child;

        if (argc != 3)
                return 2;
#ifndef __GLIBC__
        puts("skipped: dlclose of this C library unloads nothing");
        return 77;
#endif
        child = fork();
        if (!child)
                exit(run(argv[1]));
        if (waitpid(child, &status, 0) != child || status) {
                fprintf(stderr, "with the plug-in: status %#x\n", status);
                return 1;
        }
        /*
         * Nothing to notice without sections, nor where the slot index is the CPU (Linux before
         * 6.3): inlined sections store rseq_cs into the thread's record then.
         */
        if (stook_get_mode(&mode) || strcmp(mode.backend, "rseq") || !stook_area_v1)
                return 0;
        child = fork();
        if (!child)
                exit(run(argv[2]));
        if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) {
                fprintf(stderr, "the lying plug-in was not noticed: status %#x\n", status);
                return 1;
        }
        return 0;
}
