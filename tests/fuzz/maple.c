/*
 * What this proves: no sequence of calls, whatever its bytes, breaks a maple tree: after each the
 * tree is valid and gives what an array of ranges gives.
 *
 * Under libFuzzer, built as below, the bytes come from it. Otherwise a main of its own draws them,
 * as a test:  maple [RUNS [SEED]]
 *      clang-19 -g -O1 -D_GNU_SOURCE -fno-strict-aliasing \
 *              -fsanitize=fuzzer,address,undefined -DLIBFUZZER -Iinclude \
 *              tests/fuzz/maple.c tests/maple/oracle.c tests/maple/fake_cache.c maple/m*.c \
 *              -o fuzz-maple
 * A call is 6 bytes: what to do, what entry, and two keys of 16 bits, which are spread over the key
 * space in one of four ways.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <stook/maple.h>
#include "../maple/fake_cache.h"
#include "../maple/oracle.h"

#define CALL_BYTES 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void failed(const char *what, int line)
{
        fprintf(stderr, "fuzz/maple.c:%d: not so: %s\n", line, what);
        abort();
}

static uint64_t spread(unsigned way, unsigned key)
{
        switch (way) {
        case 0: return key % 64;
        case 1: return key;
        case 2: return UINT64_MAX - key % 512;
        default: return key == 0xffff ? UINT64_MAX : (uint64_t)key << 48;
        }
}

static void compare(struct stook_maple *tree, const struct oracle *oracle)
{
        STOOK_MAPLE_CURSOR(cursor, tree, 0, 0);
        size_t i = 0;
        void *entry;

        expect(stook_maple_validate(tree) == 0);
        stook_maple_lock(tree);
        stook_maple_cursor_for_each(&cursor, entry, UINT64_MAX) {
                expect(i < oracle->n && cursor.first == oracle->ranges[i].first &&
                       cursor.last == oracle->ranges[i].last && entry == oracle->ranges[i].entry);
                i++;
        }
        expect(i == oracle->n);
        stook_maple_unlock(tree);
}

static void call(struct stook_maple *tree, struct oracle *oracle, const uint8_t *bytes,
                 unsigned way)
{
        uint64_t a = spread(way, bytes[2] | bytes[3] << 8),
                 b = spread(way, bytes[4] | bytes[5] << 8);
        uint64_t first = a < b ? a : b, last = a < b ? b : a, start, wanted;
        struct oracle_range range = oracle_range_of(oracle, a);
        void *entry = (void *)(uintptr_t)(8192 + bytes[1] * 4 + bytes[1] % 3);
        void *old = NULL;
        int error;

        fake_fail_in = bytes[0] >= 240 ? 1 : 0;
        switch (bytes[0] % 8) {
        case 0: case 1: case 2:
                entry = bytes[0] % 8 ? entry : NULL;
                error = stook_maple_store(tree, first, last, entry);
                expect(!error || (error == -ENOMEM && fake_fail_in));
                if (!error)
                        oracle_store(oracle, first, last, entry);
                break;
        case 3:                                 /* what is there, exactly, or its begin */
                error = stook_maple_store(tree, range.first, bytes[1] % 2 ? range.last : a, entry);
                expect(!error || (error == -ENOMEM && fake_fail_in));
                if (!error)
                        oracle_store(oracle, range.first, bytes[1] % 2 ? range.last : a, entry);
                break;
        case 4:
                error = stook_maple_insert(tree, first, last, entry);
                expect(error == (oracle_free(oracle, first, last) ? 0 : -EEXIST) ||
                       (error == -ENOMEM && fake_fail_in));
                if (!error)
                        oracle_store(oracle, first, last, entry);
                break;
        case 5:
                if (tree->flags & STOOK_MAPLE_RCU)
                        fake_fail_in = 0;
                error = stook_maple_erase(tree, a, &old);
                expect(error == (range.entry ? 0 : -ENOENT) && old == (error ? NULL : range.entry));
                if (range.entry)
                        oracle_store(oracle, range.first, range.last, NULL);
                break;
        case 6:
                start = 0;
                if (!(tree->flags & STOOK_MAPLE_GAPS)) {
                        expect(stook_maple_alloc(tree, entry, bytes[1], first, last, &start) ==
                               -EINVAL);
                        break;
                }
                if (!bytes[1]) {
                        expect(stook_maple_alloc_top(tree, entry, 0, first, last, &start) ==
                               -EINVAL);
                        break;
                }
                error = (a < b ? stook_maple_alloc : stook_maple_alloc_top)(tree, entry, bytes[1],
                                                                            first, last, &start);
                if (error == -ENOMEM && fake_fail_in)
                        break;
                expect(!error == (a < b ? oracle_lowest : oracle_highest)(oracle, first, last,
                                                                          bytes[1], &wanted));
                expect(!error ? start == wanted : error == -EBUSY);
                if (!error)
                        oracle_store(oracle, start, start + (bytes[1] - 1u), entry);
                break;
        case 7: {
                struct stook_maple copy;

                fake_fail_in = bytes[1] % 16;
                stook_maple_init(&copy, tree->flags);
                if (!stook_maple_dup(tree, &copy)) {
                        compare(&copy, oracle);
                        stook_maple_destroy(tree);
                        *tree = copy;
                }
        }
        }
        fake_fail_in = 0;
        expect(stook_maple_load(tree, b) == oracle_load(oracle, b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct oracle oracle = { 0, 0, NULL };
        struct stook_maple tree;
        unsigned way;

        if (!size)
                return 0;
        stook_maple_init(&tree, data[0] & 7);
        way = data[0] >> 3 & 3;
        for (size_t at = 1; at + CALL_BYTES <= size; at += CALL_BYTES) {
                call(&tree, &oracle, data + at, way);
                compare(&tree, &oracle);
        }
        stook_maple_destroy(&tree);
        fake_grace();
        expect(fake_live == 0);
        oracle_clear(&oracle);
        return 0;
}

#ifndef LIBFUZZER
int main(int argc, char **argv)
{
        uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
        long runs = argc > 1 ? atol(argv[1]) : 64;
        static uint8_t bytes[1 + CALL_BYTES * 500];

        printf("seed %" PRIu64 "\n", state);
        for (long run = 0; run < runs; run++) {
                for (size_t i = 0; i < sizeof(bytes); i++) {
                        state = state * UINT64_C(6364136223846793005) +
                                UINT64_C(1442695040888963407);
                        bytes[i] = (uint8_t)(state >> 56);
                }
                bytes[0] = (uint8_t)run;
                LLVMFuzzerTestOneInput(bytes, sizeof(bytes));
        }
        return 0;
}
#endif
