/*
 * Purpose: the same of C++ alone.
 */
#ifndef STOOK_MISUSE_CPP_H
#define STOOK_MISUSE_CPP_H

#include "misuse_victim.h"

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
