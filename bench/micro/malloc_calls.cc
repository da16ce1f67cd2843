/*
 * bench/micro/malloc_calls.cc - the calls beside malloc and free, of whatever is preloaded
 *
 * Purpose: realloc, calloc, aligned allocation, strdup, malloc_usable_size, C++'s new and delete,
 * and containers: each by itself, so that a slow one is seen. Time is for one call of the name and
 * the free that belongs to it, if not said otherwise.
 * Place: bench/measure/slices.py runs it; malloc and free alone are in malloc_pair.cc.
 * Memory is not written, except where the call or the container does so.
 */
#include <list>
#include <malloc.h>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "../harness/slices.h"

static constexpr size_t sizes_count = 4096;
static uint16_t mixed[sizes_count];

static void *checked(void *object)
{
        if (!object)
                abort();
        bench::keep(object);
        return object;
}

/* Both sizes have room in one block of each of the peers; one call. */
static void realloc_in_place(size_t n)
{
        void *object = checked(malloc(97));
        size_t size = 97;
        for (; n > 0; n--) {
                size ^= 97 ^ 104;
                object = checked(realloc(object, size));
        }
        free(object);
}

/* As a buffer grows that began too small: malloc, realloc, free. */
static void realloc_24_to_100(size_t n)
{
        for (; n > 0; n--) {
                void *object = checked(malloc(24));
                object = checked(realloc(object, 100));
                free(object);
        }
}

static void calloc_free(size_t size, size_t n)
{
        for (; n > 0; n--)
                free(checked(calloc(1, size)));
}

/* Arguments: alignment, size. */
static void aligned(size_t alignment, size_t size, size_t n)
{
        for (; n > 0; n--)
                free(checked(aligned_alloc(alignment, size)));
}

static void memalign_free(size_t alignment, size_t size, size_t n)
{
        for (; n > 0; n--)
                free(checked(memalign(alignment, size)));
}

static void posix_aligned(size_t alignment, size_t size, size_t n)
{
        for (; n > 0; n--) {
                void *object = nullptr;
                if (posix_memalign(&object, alignment, size))
                        abort();
                free(checked(object));
        }
}

/* Of one of 4,096 live objects of mixed sizes in turn; one call. */
static void usable_size(size_t n)
{
        static void *live[sizes_count];
        size_t i = 0, sum = 0;
        for (size_t k = 0; k < sizes_count && !live[k]; k++)
                live[k] = checked(malloc(mixed[k]));
        for (; n > 0; n--) {
                sum += malloc_usable_size(live[i++ % sizes_count]);
                bench::keep(sum);
        }
}

/* Of texts of 0 to 63 characters. */
static void strdup_free(size_t n)
{
        static char texts[64][64];
        size_t i = 0;
        for (size_t k = 0; k < 64; k++)
                memset(texts[k], 'x', k * 29 % 64);
        for (; n > 0; n--)
                free(checked(strdup(texts[i++ % 64])));
}

struct object64 {
        char bytes[64];
};
struct alignas(64) aligned64 {
        char bytes[64];
};

static void new_delete(size_t n)
{
        for (; n > 0; n--) {
                auto *object = new object64;
                bench::keep(object);
                delete object;
        }
}

static void new_nothrow(size_t n)
{
        for (; n > 0; n--) {
                auto *object = new (std::nothrow) object64;
                bench::keep(object);
                delete object;
        }
}

static void new_aligned(size_t n)
{
        for (; n > 0; n--) {
                auto *object = new aligned64;
                bench::keep(object);
                delete object;
        }
}

static void new_array_mix(size_t n)
{
        size_t i = 0;
        for (; n > 0; n--) {
                char *object = new char[mixed[i++ % sizes_count]];
                bench::keep(object);
                delete[] object;
        }
}

/* One of 64 objects of mixed sizes is replaced; every second one comes from new, by turns. */
static void new_and_malloc_mix(size_t n)
{
        void *object[64] = {};
        size_t i = 0;
        for (; n > 0; n--) {
                void *&at = object[i % 64];
                size_t size = mixed[i % sizes_count];
                if (i++ & 1) {
                        ::operator delete(at);
                        at = ::operator new(size);
                } else {
                        free(at);
                        at = malloc(size);
                }
                *(volatile char *)at = 1;
        }
        for (size_t k = 0; k < 64; k++) {
                if (k & 1)
                        ::operator delete(object[k]);
                else
                        free(object[k]);
        }
}

/*
 * A key drawn from 512 is put into a map, or taken out if it is there: a node, a key, and a value.
 * Most keys and values are longer than a string holds itself. Time is for one of either.
 */
static void map_of_strings(size_t n)
{
        static std::vector<std::string> keys;
        static std::map<std::string, std::string> map;
        static bench::rng r(3);
        for (size_t k = keys.size(); k < 512; k++)
                keys.push_back(std::to_string(r.next()) + std::string(k * 11 % 32, 'k'));
        for (; n > 0; n--) {
                const std::string &key = keys[r.below(512)];
                auto found = map.find(key);
                if (found != map.end())
                        map.erase(found);
                else
                        map.emplace(key, std::string(r.below(64), 'v'));
        }
}

/* A queue of 64 lines of text: one more at its end, the first goes. */
static void list_of_strings(size_t n)
{
        static std::list<std::string> list(64);
        size_t i = 0;
        for (; n > 0; n--) {
                list.emplace_back(mixed[i++ % sizes_count] % 128, 'l');
                list.pop_front();
        }
}

int main(int argc, char **argv)
{
        bench::slices all;
        bench::rng r(1);

        bench::pin_to(0);
        for (uint16_t &size : mixed)
                size = (uint16_t)bench::mixed_size(r);
        all.add("realloc_in_place", 1, realloc_in_place);
        all.add("realloc_24_to_100", 1, realloc_24_to_100);
        all.add("calloc/64", 1, [](size_t n) { calloc_free(64, n); });
        all.add("calloc/1024", 1, [](size_t n) { calloc_free(1024, n); });
        all.add("aligned_alloc/64/64", 1, [](size_t n) { aligned(64, 64, n); });
        all.add("aligned_alloc/64/512", 1, [](size_t n) { aligned(64, 512, n); });
        all.add("memalign/4096/4096", 1, [](size_t n) { memalign_free(4096, 4096, n); });
        all.add("posix_memalign/64/64", 1, [](size_t n) { posix_aligned(64, 64, n); });
        all.add("posix_memalign/4096/4096", 1, [](size_t n) { posix_aligned(4096, 4096, n); });
        all.add("malloc_usable_size", 1, usable_size);
        all.add("strdup", 1, strdup_free);
        all.add("new_delete", 1, new_delete);
        all.add("new_nothrow", 1, new_nothrow);
        all.add("new_aligned", 1, new_aligned);
        all.add("new_array_mix", 1, new_array_mix);
        all.add("new_and_malloc_mix", 1, new_and_malloc_mix);
        all.add("map_of_strings", 1, map_of_strings);
        all.add("list_of_strings", 1, list_of_strings);
        return all.run(argc, argv);
}
