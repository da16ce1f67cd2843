/*
 * Proves that a program which was not linked with libstook.so may open it by dlopen and use it: in
 * the thread that opened it, in one that was there before, in later ones, in a handler at any
 * instruction of them, and in a child. CI runs it on musl, too, with a library that was configured
 * with -Dstatic_tls=false. Asserts by itself: there is no cmocka for musl.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stook/cache.h>
#include <stook/malloc.h>
#include <stook/stats.h>

#define CHECK(condition) \
        do { \
                if (!(condition)) { \
                        printf("line %d: %s\n", __LINE__, #condition); \
                        fflush(stdout); \
                        _exit(1); \
                } \
        } while (0)

static __typeof__(stook_malloc) *malloc_;
static __typeof__(stook_free) *free_;
static __typeof__(stook_cache_create) *create;
static __typeof__(stook_cache_destroy) *destroy;
static __typeof__(stook_cache_alloc) *alloc;
static __typeof__(stook_cache_free) *free_object;
static __typeof__(stook_get_totals) *totals;
static struct stook_cache *cache;
static atomic_bool opened;
static atomic_uint handled;

static void find(void *library, const char *name, void *to)
{
        void *at = dlsym(library, name);

        CHECK(at);
        memcpy(to, &at, sizeof(at));
}

static void use(unsigned rounds)
{
        unsigned char *objects[64];

        for (unsigned i = 0; i < rounds; i++) {
                for (unsigned j = 0; j < 64; j++) {
                        objects[j] = j % 2 ? alloc(cache) : malloc_(j * 40);
                        CHECK(objects[j]);
                        memset(objects[j], (int)j, j % 2 ? 100 : j * 40);
                }
                for (unsigned j = 0; j < 64; j++) {
                        CHECK(!j || objects[j][0] == j);
                        j % 2 ? free_object(cache, objects[j]) : free_(objects[j]);
                }
        }
}

static void on_signal(int number)
{
        (void)number;
        if (!opened)
                return;
        use(1);
        handled++;
}

static void *early(void *unused)
{
        while (!opened)
                usleep(1000);
        use(500);
        return unused;
}

static void *late(void *unused)
{
        use(500);
        return unused;
}

int main(int argc, char **argv)
{
        struct stook_totals all = { .totals_size = sizeof(all) };
        pthread_t before, threads[4];
        void *library, *last;
        int status;

        CHECK(argc == 2);
        CHECK(!pthread_create(&before, NULL, early, NULL));
        library = dlopen(argv[1], RTLD_NOW);
        if (!library)
                printf("%s\n", dlerror());
        CHECK(library);
        find(library, "stook_malloc", &malloc_);
        find(library, "stook_free", &free_);
        find(library, "stook_cache_create", &create);
        find(library, "stook_cache_destroy", &destroy);
        find(library, "stook_cache_alloc", &alloc);
        find(library, "stook_cache_free", &free_object);
        find(library, "stook_get_totals", &totals);
        cache = create("opened", 100, NULL);
        CHECK(cache);
        signal(SIGUSR1, on_signal);
        opened = true;
        for (int i = 0; i < 4; i++)
                CHECK(!pthread_create(&threads[i], NULL, late, NULL));
        while (handled < 200) {
                pthread_kill(before, SIGUSR1);
                raise(SIGUSR1);
                use(1);
        }
        pthread_join(before, NULL);
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        if (!fork()) {
                use(10);
                _exit(0);
        }
        CHECK(wait(&status) > 0 && status == 0);
        last = alloc(cache);
        CHECK(last && !totals(&all) && all.objects_live == 1 && all.slabs > 0);
        free_object(cache, last);
        CHECK(!totals(&all) && all.objects_live == 0);
        CHECK(destroy(cache) == 0);
        CHECK(!dlclose(library));
        printf("opened, %u handlers\n", (unsigned)handled);
        return 0;
}
