/*
 * Proves what happens in a program that has a malloc and free of its own, but no operator new or
 * delete. The operators are the drop-in's, as a pair, and do not call the program's malloc and
 * free. Objects of operator new lie in the drop-in's memory; objects of libc go back to libc.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/malloc.h>

void *_Znwm(size_t size);
void *_Znam(size_t size);
void _ZdlPv(void *object);
void _ZdaPvm(void *object, size_t size);
void *__libc_malloc(size_t size) __attribute__((weak));
void __libc_free(void *object) __attribute__((weak));

static size_t mallocs, frees;

void *malloc(size_t size)
{
        mallocs++;
        return __libc_malloc ? __libc_malloc(size) : NULL;
}

void free(void *object)
{
        frees++;
        if (__libc_free)
                __libc_free(object);
}

int main(void)
{
        static void *objects[300];
        size_t n = sizeof(objects) / sizeof(*objects), faults = 0;

        if (!__libc_malloc || !__libc_free) {
                puts("this C library has no name of its own for malloc");
                return 77;
        }
        mallocs = frees = 0;
        for (size_t i = 0; i < n; i++) {
                objects[i] = i & 1 ? _Znwm(i * 40) : _Znam(i * 40);
                faults += !objects[i] || !stook_owns(objects[i]);
                memset(objects[i], 1, i * 40);
        }
        for (size_t i = 0; i < n; i++)
                if (i & 2)
                        _ZdlPv(objects[i]);
                else
                        _ZdaPvm(objects[i], i * 40);
        _ZdlPv(NULL);
        if (mallocs || frees)
                faults++;
        objects[0] = malloc(100);               /* the program's, and libc's */
        faults += !objects[0] || stook_owns(objects[0]) || mallocs != 1;
        free(objects[0]);
        objects[0] = malloc(100);
        _ZdlPv(objects[0]);                     /* wrong in C++, but programs do it: libc gets it */
        faults += frees != 1;
        printf("%zu faults; %zu mallocs, %zu frees of the program's\n", faults, mallocs, frees);
        return faults != 0;
}
