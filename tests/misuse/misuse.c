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
#include "misuse_kinds.h"
#ifdef __cplusplus
#include "misuse_cpp.h"
#else
#include "misuse_c.h"
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
