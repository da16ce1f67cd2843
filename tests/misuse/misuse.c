/*
 * One misuse of the heap in each run, chosen by name; misuse.py runs them all and judges. As C it
 * is on malloc and free, as C++ (misuse.cc) on new[] and delete[].
 *
 *   misuse list                      the names: FAMILY/MISUSE/SIZE/THREAD
 *   misuse NAME                      one of them
 *
 * What it prints is the truth of a run that ends by itself: "silent", the misuse went unnoticed, or
 * "stopped", it had no effect that the program could see: an address that did not come back, bytes
 * that were gone, a size that was refused. The family "control" has no misuse, and prints "fine".
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define VICTIM  'v'             /* what lies in the object that is misused */
#define OTHER   'o'             /* in all others */
#define TRIES   64              /* allocations in which an address may come back */

enum { SIZED = 1,               /* runs with each size */
       FREED = 2,               /* the victim is free before the misuse */
       KEPT = 4,                /* nobody frees it after the misuse */
       LEFT = 8,                /* KEPT, and no allocation follows: the exit alone can tell */
       ONE_THREAD = 16 };

struct misuse {
        const char *family, *name;
        void (*make)(void);
        int how;
};

static const struct {
        const char *name;
        size_t bytes;
        int many;               /* so many are a load of the allocator's caches */
} sizes[] = { { "small", 40, 200 }, { "medium", 3000, 60 }, { "large", 300000, 8 } };

static volatile size_t n;       /* bytes of the victim */
static volatile int many;
static char *volatile p, *volatile before, *volatile behind;
static volatile bool stopped;
static volatile long sum;

/* A pointer of which the compiler knows nothing. */
static char *hidden(const void *object)
{
        char *at = (char *)object;

        __asm__ volatile ("" : "+r" (at) : : "memory");
        return at;
}

#ifdef __cplusplus
#define ALLOC(bytes)    hidden(new char[bytes])
#define FREE(object)    (delete[] hidden(object))
#else
#define ALLOC(bytes)    hidden(malloc(bytes))
#define FREE(object)    free(hidden(object))
#endif

static char *filled(size_t bytes, int with)
{
        char *object = ALLOC(bytes);

        memset(object, with, bytes);
        return object;
}

static void store(char *at, size_t bytes, int with)
{
        for (size_t i = 0; i < bytes; i++)
                ((volatile char *)at)[i] = (char)with;
}

static void load(const char *at, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                sum += ((const volatile char *)at)[i];
}

/* The life of a program goes on. */
static void churn(void)
{
        char *objects[200];

        for (int i = 0; i < many; i++)
                objects[i] = filled(n, OTHER);
        for (int i = 0; i < many; i++)
                FREE(objects[i]);
}

/* An object at the address of the freed victim, or NULL. */
static char *same_address(void)
{
        char *objects[TRIES], *found = NULL;
        int i = 0;

        while (i < TRIES && !found) {
                objects[i] = filled(n, OTHER);
                if (objects[i] == p)
                        found = objects[i];
                i++;
        }
        for (int k = 0; k < i; k++)
                if (objects[k] != found)
                        FREE(objects[k]);
        return found;
}

static bool has(const char *bytes, size_t count, int what)
{
        for (size_t i = 0; i + 8 <= count; i++)
                if (bytes[i] == what && !memcmp(bytes + i, bytes + i + 1, 7))
                        return true;
        return false;
}

/* ---------------------------------------------------------------------------- linear overflows */

static void overflow_byte(void) { store(p + n, 1, 1); }
static void overflow_nul(void) { store(p + n, 1, 0); }
static void overflow_copy(void) { memcpy(hidden(p + n), "a copy of thirty-two bytes is it", 32); }
static void overflow_long(void) { store(p + n, 256, 'A'); }
static void overflow_jump(void) { store(p + n + 64, 8, 'A'); }
static void overflow_read(void) { load(p + n, 8); }
static void overflow_read_page(void) { load(p + n, 4096); }
static void underflow_byte(void) { store(p - 1, 1, 1); }
static void underflow_word(void) { store(p - 8, 8, 'A'); }
static void underflow_long(void) { store(p - 64, 64, 'A'); }
static void underflow_read(void) { load(p - 8, 8); }

/* ------------------------------------------------------------------------------ use after free */

static void read_first(void) { stopped = !has(p, 8, VICTIM); }
static void read_middle(void) { stopped = !has(p + n / 2, 8, VICTIM); }
static void read_last(void) { stopped = !has(p + n - 8, 8, VICTIM); }

static void read_later(void)
{
        churn();
        stopped = !has(p + n / 2, 8, VICTIM) && !has(p + n / 2, 8, OTHER);
}

static void read_reused(void)
{
        stopped = !same_address();
        load(p, 8);
}

static void write_first(void) { store(p, 8, 'A'); }
static void write_middle(void) { store(p + n / 2, 1, 'A'); }
static void write_last(void) { store(p + n - 1, 1, 'A'); }
static void write_all(void) { store(p, n, 'A'); }

static void write_later(void)
{
        churn();
        store(p + n / 2, 8, 'A');
}

static void write_reused(void)
{
        char *other = same_address();

        store(p + n / 2, 8, 'A');
        stopped = !other || !has(other + n / 2, 8, 'A');
}

/* --------------------------------------------------------------------------------- double free */

static void double_once(void) { FREE(p); }

static void double_one_between(void)
{
        char *other = ALLOC(n);

        FREE(behind);
        FREE(p);
        behind = other;
}

static void double_many_between(void)
{
        churn();
        FREE(p);
}

static void double_thrice(void)
{
        FREE(p);
        FREE(p);
}

static void double_reused(void)
{
        char *other = same_address();

        FREE(p);
        if (other)
                FREE(other);
}

/* ------------------------------------------------------------------------------- invalid frees */

static void invalid_interior(void) { FREE(p + 16); }
static void invalid_odd(void) { FREE(p + 1); }
static void invalid_middle(void) { FREE(p + n / 32 * 16); }
static void invalid_before(void) { FREE(p - 16); }
static void invalid_end(void) { FREE(p + n); }

static void invalid_stack(void)
{
        char object[256];

        FREE(object + 64);
}

static void invalid_static(void)
{
        static char object[256] __attribute__((aligned(64)));

        FREE(object);
}

static void invalid_text(void) { FREE("a string of the program's text"); }

static void invalid_mapping(void)
{
        FREE(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void invalid_low(void) { FREE((void *)64); }
static void invalid_wild(void) { FREE((void *)0x4141414141414140); }

/* ------------------------------------------------------------------------------- sizes of zero */

static void zero_read(void) { load(ALLOC(0), 1); }
static void zero_write(void) { store(ALLOC(0), 1, 'A'); }
static void zero_write_word(void) { store(ALLOC(0), 8, 'A'); }

static void zero_write_freed(void)
{
        char *object = ALLOC(0);

        store(object, 1, 'A');
        FREE(object);
}

/* --------------------------------------------------------------------------------- old content */

static void content_again(void)
{
        char *objects[TRIES];
        bool seen = false;

        for (int i = 0; i < TRIES; i++) {
                objects[i] = ALLOC(n);
                seen |= has(objects[i], n, VICTIM);
        }
        for (int i = 0; i < TRIES; i++)
                FREE(objects[i]);
        stopped = !seen;
}

/* Many secrets, of many objects. */
static void content_many(void)
{
        for (int i = 0; i < many; i++) {
                before = filled(n, VICTIM);
                FREE(before);
        }
        before = ALLOC(n);
        content_again();
}

/* Addresses of the heap, in what was never written. */
static void content_address(void)
{
        bool seen = false;
        uintptr_t word;

        for (int i = 0; i < TRIES && !seen; i++) {
                char *object = ALLOC(n);

                for (size_t k = 0; k + 8 <= n && !seen; k += 8) {
                        memcpy(&word, object + k, 8);
                        seen = word - (uintptr_t)object + (1 << 30) < (2u << 30);
                }
        }
        stopped = !seen;
}

#ifndef __cplusplus
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
        need(!realloc(p, huge / 2 + 1) && has(p, 8, VICTIM));
        need(!calloc(huge, huge) && !malloc(huge));
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

#else
/* ----------------------------------------------------------------------------------- C++ alone */
#include <memory>
#include <new>
#include <string>
#include <vector>

static void *plain(void) { return hidden(operator new(n)); }
static void *array(void) { return hidden(operator new[](n)); }
static void pairs_malloc_delete(void) { operator delete(hidden(malloc(n))); }
static void pairs_malloc_array(void) { operator delete[](hidden(malloc(n))); }
static void pairs_calloc_delete(void) { operator delete(hidden(calloc(1, n))); }
static void pairs_aligned_delete(void) { operator delete(hidden(memalign(64, n))); }
static void pairs_new_free(void) { free(plain()); }
static void pairs_array_free(void) { free(array()); }
static void pairs_new_array(void) { operator delete[](plain()); }
static void pairs_array_new(void) { operator delete(array()); }
static void pairs_new_realloc(void) { sum += !!hidden(realloc(plain(), n * 2)); }
static void pairs_less(void) { operator delete(plain(), n / 2); }
static void pairs_more(void) { operator delete(plain(), n * 2); }
static void pairs_array_less(void) { operator delete[](array(), n / 2); }

static void pairs_align_plain(void)
{
        operator delete(hidden(operator new(n, std::align_val_t(256))));
}

static void pairs_plain_align(void) { operator delete(plain(), std::align_val_t(256)); }

struct base { long a; };
struct derived : base { long more[12]; };

/* Without a virtual destructor. */
static void pairs_base(void) { delete (base *)hidden(new derived); }

static volatile size_t huge = SIZE_MAX;

static void size_new(void)
{
        try {
                stopped = !hidden(operator new(huge));
        } catch (const std::bad_alloc &) {
                stopped = true;
        }
}

static void size_new_half(void) { stopped = !hidden(operator new(huge / 2 + 1, std::nothrow)); }

static void size_new_array(void)
{
        try {
                stopped = !hidden(new long[huge / 8 + 2]);
        } catch (const std::bad_alloc &) {
                stopped = true;
        }
}

static void need(bool what)
{
        if (!what) {
                puts("wrong");
                exit(3);
        }
}

static void control_pairs(void)
{
        delete (derived *)hidden(new derived);
        delete[] (derived *)hidden(new derived[5]);
        operator delete(plain(), n);
        operator delete[](array(), n);
        operator delete(hidden(operator new(n, std::align_val_t(256))), n, std::align_val_t(256));
        operator delete(hidden(operator new(n, std::nothrow)), std::nothrow);
        operator delete(hidden(operator new(0)));
        delete[] hidden(new char[0]);
        free(malloc(n));
}

static void control_containers(void)
{
        std::vector<std::string> strings;
        auto shared = std::make_shared<std::vector<int>>(100);

        for (int i = 0; i < 5000; i++)
                strings.push_back(std::string((size_t)i % 300, 'x'));
        strings.erase(strings.begin(), strings.begin() + 2000);
        strings.shrink_to_fit();
        need(strings.size() == 3000 && shared.use_count() == 1);
}
#endif

/* --------------------------------------------------------------------------------------- table */

#define SAME(family, name, how)         { #family, #name, family##_##name, how }

static const struct misuse misuses[] = {
        SAME(overflow, byte, SIZED), SAME(overflow, nul, SIZED), SAME(overflow, copy, SIZED),
        SAME(overflow, long, SIZED), SAME(overflow, jump, SIZED),
        { "overflow", "left", overflow_byte, SIZED | LEFT },
        { "neighbour", "behind", overflow_read, SIZED },
        { "neighbour", "page_behind", overflow_read_page, SIZED },
        { "neighbour", "before", underflow_read, SIZED },
        SAME(underflow, byte, SIZED), SAME(underflow, word, SIZED), SAME(underflow, long, SIZED),
        { "underflow", "left", underflow_byte, SIZED | LEFT },
        SAME(read, first, SIZED | FREED), SAME(read, middle, SIZED | FREED),
        SAME(read, last, SIZED | FREED), SAME(read, later, SIZED | FREED),
        SAME(read, reused, SIZED | FREED),
        SAME(write, first, SIZED | FREED), SAME(write, middle, SIZED | FREED),
        SAME(write, last, SIZED | FREED), SAME(write, all, SIZED | FREED),
        SAME(write, later, SIZED | FREED), SAME(write, reused, SIZED | FREED),
        { "write", "left", write_middle, SIZED | FREED | LEFT },
        SAME(double, once, SIZED | FREED), SAME(double, one_between, SIZED | FREED),
        SAME(double, many_between, SIZED | FREED), SAME(double, thrice, SIZED | FREED),
        SAME(double, reused, SIZED | FREED),
        { "double", "left", double_once, SIZED | FREED | LEFT },
        SAME(invalid, interior, SIZED | KEPT), SAME(invalid, odd, SIZED | KEPT),
        SAME(invalid, middle, SIZED | KEPT), SAME(invalid, before, SIZED | KEPT),
        SAME(invalid, end, SIZED | KEPT), SAME(invalid, stack, 0), SAME(invalid, static, 0),
        SAME(invalid, text, 0), SAME(invalid, mapping, 0), SAME(invalid, low, 0),
        SAME(invalid, wild, 0),
        SAME(zero, read, 0), SAME(zero, write, 0), SAME(zero, write_word, 0),
        SAME(zero, write_freed, 0),
        SAME(content, again, SIZED | FREED), SAME(content, many, SIZED | FREED),
        SAME(content, address, SIZED | FREED),
#ifndef __cplusplus
        SAME(overflow, usable, SIZED), SAME(overflow, grown, SIZED), SAME(overflow, shrunk, SIZED),
        SAME(overflow, aligned, SIZED),
        SAME(read, moved, SIZED), SAME(write, moved, SIZED), SAME(double, moved, SIZED),
        SAME(double, realloc, SIZED | FREED), SAME(double, realloc_zero, SIZED | FREED),
        SAME(double, race, SIZED | KEPT | ONE_THREAD),
        SAME(invalid, realloc, SIZED | KEPT), SAME(invalid, usable, SIZED | KEPT),
        SAME(zero, calloc, 0), SAME(zero, realloc, 0), SAME(zero, aligned, 0),
        { "zero", "size_max", size_max, 0 }, { "zero", "size_negative", size_negative, SIZED },
        { "zero", "size_half", size_half, 0 }, { "zero", "size_calloc", size_calloc, 0 },
        { "zero", "size_calloc_zero", size_calloc_zero, 0 },
        { "zero", "size_realloc", size_realloc, 0 }, { "zero", "size_array", size_array, 0 },
        { "zero", "size_aligned", size_aligned, 0 }, { "zero", "size_memalign", size_memalign, 0 },
        { "zero", "size_pvalloc", size_pvalloc, 0 }, { "zero", "size_posix", size_posix, 0 },
        { "zero", "size_alignment", size_alignment, 0 },
        SAME(content, grown, SIZED), SAME(content, shrunk, SIZED),
        SAME(control, usable, SIZED), SAME(control, realloc, 0), SAME(control, zero, 0),
        SAME(control, calloc, 0), SAME(control, aligned, 0), SAME(control, refused, SIZED),
        SAME(control, threads, 0), SAME(control, fork, SIZED | ONE_THREAD),
        SAME(control, stdio, 0), SAME(control, orders, 0),
#else
        SAME(pairs, malloc_delete, SIZED), SAME(pairs, malloc_array, SIZED),
        SAME(pairs, calloc_delete, SIZED), SAME(pairs, aligned_delete, SIZED),
        SAME(pairs, new_free, SIZED), SAME(pairs, array_free, SIZED),
        SAME(pairs, new_array, SIZED), SAME(pairs, array_new, SIZED),
        SAME(pairs, new_realloc, SIZED), SAME(pairs, less, SIZED), SAME(pairs, more, SIZED),
        SAME(pairs, array_less, SIZED), SAME(pairs, align_plain, SIZED),
        SAME(pairs, plain_align, SIZED), SAME(pairs, base, 0),
        { "zero", "size_new", size_new, 0 }, { "zero", "size_new_half", size_new_half, 0 },
        { "zero", "size_new_array", size_new_array, 0 },
        SAME(control, pairs, SIZED), SAME(control, containers, 0),
#endif
};

#define EACH(table, i)  for (size_t i = 0; i < sizeof(table) / sizeof((table)[0]); i++)

static void *run(void *make)
{
        (*(void (**)(void))make)();
        return NULL;
}

static void run_one(const struct misuse *misuse, size_t size, bool other_thread)
{
        void (*make)(void) = misuse->make;
        pthread_t thread;

        n = sizes[size].bytes;
        many = sizes[size].many;
        churn();
        before = filled(n, OTHER);
        p = filled(n, VICTIM);
        behind = filled(n, OTHER);
        if (misuse->how & FREED)
                FREE(p);
        if (other_thread && !pthread_create(&thread, NULL, run, &make))
                pthread_join(thread, NULL);
        else
                make();
        if (misuse->how & LEFT)
                return;
        if (!(misuse->how & (FREED | KEPT)))
                FREE(p);
        FREE(before);
        FREE(behind);
        churn();
        churn();
}

int main(int argc, char **argv)
{
        static const char *const threads[] = { "same", "other" };
        char name[200];
        bool list = argc == 2 && !strcmp(argv[1], "list");

        EACH(misuses, i)
                EACH(sizes, k)
                        EACH(threads, t) {
                                if ((k && !(misuses[i].how & SIZED)) ||
                                    (t && misuses[i].how & ONE_THREAD))
                                        continue;
                                snprintf(name, sizeof(name), "%s/%s/%s/%s", misuses[i].family,
                                         misuses[i].name,
                                         misuses[i].how & SIZED ? sizes[k].name : "any",
                                         threads[t]);
                                if (list) {
                                        puts(name);
                                } else if (argc == 2 && !strcmp(argv[1], name)) {
                                        run_one(&misuses[i], k, t);
                                        puts(!strcmp(misuses[i].family, "control") ? "fine" :
                                             stopped ? "stopped" : "silent");
                                        return 0;
                                }
                        }
        return list ? 0 : 2;
}
