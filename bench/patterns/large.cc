/*
 * bench/patterns/large.cc - large objects, zeroed, resized and aligned ones
 *
 * Purpose: what is not a small object of a size class: objects of whole pages, calloc, realloc in
 * large and small steps, alignment. Of large objects one byte in each page is written, as a program
 * would.
 * Place: see pattern.h.
 */
#include <malloc.h>

#include "pattern.h"

namespace patterns {
namespace {

constexpr const char *usual = "1,2,16", *few = "1,2";
constexpr size_t page = 4096, kib = 1024, mib = 1024 * kib;

/* Behind the head; the last page, too, and in the value that the whole object may hold. */
void touch_pages(char *object, size_t size)
{
        for (size_t at = page; at < size; at += page)
                *(volatile char *)(object + at) = fill_of(object);
}

void churn_one(worker &w, size_t size, size_t times)
{
        for (size_t n = w.share(times); n > 0; n--, w.ops++) {
                char *object = make(size);
                touch_pages(object, size);
                drop(object);
        }
}

void big_256k(worker &w) { churn_one(w, 256 * kib, 2000); }
void big_4m(worker &w) { churn_one(w, 4 * mib, 100); }

void big_mixed(worker &w)
{
        for (size_t n = w.share(10000); n > 0; n--)
                replace(w, w.any_entry(), 64 * kib + w.random.below(2000000));
}

/* Eight of 5 to 25 MiB alive. */
void malloc_large(worker &w)
{
        for (size_t n = w.share(30); n > 0; n--) {
                size_t entry = w.any_entry(), size = 5 * mib + w.random.below(20 * mib);
                replace(w, entry, size);
                touch_pages(w.table[entry], size);
        }
}

void middle(worker &w)
{
        for (size_t n = w.share(100000); n > 0; n--)
                replace(w, w.any_entry(), 8 * kib + w.random.below(56 * kib));
}

char *make_zeroed(size_t size)
{
        char *object = (char *)calloc(1, size);
        bench::keep(object);
        size_t tested_bytes = whole ? size : std::min<size_t>(size, 64);
        for (size_t i = 0; object && i < tested_bytes; i++)
                if (object[i])
                        fail("calloc gave bytes that are not 0", object);
        return stamped(object, size);
}

void calloc_1k(worker &w)
{
        for (size_t i = 0; i < w.entries; i++)
                w.table[i] = make_zeroed(kib);
        w.ops += w.entries;
        drop_table(w);
}

void calloc_1m(worker &w)
{
        for (size_t n = w.share(500); n > 0; n--, w.ops++)
                drop(make_zeroed(mib));
}

void realloc_double(worker &w)
{
        for (size_t n = w.share(300); n > 0; n--) {
                char *object = make(16);
                for (size_t size = 32; size <= mib; size *= 2, w.ops++) {
                        object = resize(object, size);
                        *(volatile char *)(object + size - 1) = fill_of(object);
                }
                drop(object);
        }
}

/* Grows an object in equal steps and writes the new end of it. */
void append(worker &w, size_t step, size_t most, size_t times)
{
        /* Each step tests the whole object then. */
        size_t last = whole ? std::min(most, 64 * step) : most;
        for (size_t n = w.share(times); n > 0; n--) {
                char *object = make(16);
                for (size_t size = 16 + step; size <= last; size += step, w.ops++) {
                        object = resize(object, size);
                        *(volatile char *)(object + size - 1) = fill_of(object);
                }
                drop(object);
        }
}

void realloc_16(worker &w) { append(w, 16, 64 * kib, 32); }
void append_1k(worker &w) { append(w, kib, 2 * mib, 16); }

void aligned(worker &w, size_t alignment, size_t size)
{
        for (size_t i = 0; i < w.entries; i++) {
                void *at = memalign(alignment, size);
                if ((uintptr_t)at % alignment)
                        fail("memalign gave an object that is not aligned", at);
                w.table[i] = stamped(at, size);
        }
        w.ops += w.entries;
        drop_table(w);
}

void memalign_64(worker &w) { aligned(w, 64, 200); }
void memalign_4096(worker &w) { aligned(w, 4096, 4096); }

} // namespace

pattern_list large_patterns()
{
        static constexpr pattern all[] = {
                {"big_256k", usual, 0, nullptr, big_256k, nullptr,
                 "256 KiB, allocated, touched and freed"},
                {"big_4m", few, 0, nullptr, big_4m, nullptr,
                 "4 MiB, allocated, touched and freed"},
                {"big_mixed", usual, 64, nullptr, big_mixed, drop_table,
                 "64 of 64 KiB to 2 MB, replaced at random"},
                {"malloc_large", few, 8, nullptr, malloc_large, drop_table,
                 "8 of 5 to 25 MiB, replaced at random, every page touched"},
                {"middle", usual, 512, nullptr, middle, drop_table,
                 "512 of 8 to 64 KiB, replaced at random"},
                {"calloc_1k", usual, 100000, nullptr, calloc_1k, nullptr,
                 "100,000 of 1 KiB from calloc"},
                {"calloc_1m", few, 0, nullptr, calloc_1m, nullptr,
                 "1 MiB from calloc, 64 bytes of it read"},
                {"realloc_double", usual, 0, nullptr, realloc_double, nullptr,
                 "realloc from 16 bytes to 1 MiB, doubled each time"},
                {"realloc_16", few, 0, nullptr, realloc_16, nullptr,
                 "realloc to 64 KiB in steps of 16 bytes"},
                {"append_1k", few, 0, nullptr, append_1k, nullptr,
                 "realloc to 2 MiB in steps of 1 KiB"},
                {"memalign_64", few, 300000, nullptr, memalign_64, nullptr,
                 "300,000 of 200 bytes, aligned to 64"},
                {"memalign_4096", few, 20000, nullptr, memalign_4096, nullptr,
                 "20,000 of 4 KiB, aligned to that"},
        };
        return {all, sizeof(all) / sizeof(*all)};
}

} // namespace patterns
