/*
 * What this proves: no sequence of calls of malloc's family and of heaps, whatever its bytes, hands
 * out memory that overlaps, is too small, is not aligned or not zero where it must be, or loses
 * what a resize must keep; what is refused is refused with the errors that the headers name; and
 * afterwards all is whole.
 *
 * Under libFuzzer, built as below, the bytes come from it. Otherwise a main of its own draws them,
 * as a test:  calls [RUNS [SEED]]
 *      CC=clang-19 meson setup fuzz -Dc_args=-fsanitize=fuzzer-no-link
 *      ninja -C fuzz libstook.a
 *      clang-19 -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer -DLIBFUZZER -Iinclude -Ifuzz/include \
 *              tests/fuzz/calls.c fuzz/libstook.a -o fuzz-calls
 * A call is 5 bytes: what to do, with which object, and three for sizes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stook/stook.h>

#define CALL_BYTES 5
#define LIVE       64
#define HEAPS      2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define expect(cond) do { if (!(cond)) failed(#cond, __LINE__); } while (0)

static void failed(const char *what, int line)
{
        fprintf(stderr, "fuzz/calls.c:%d: not so: %s\n", line, what);
        abort();
}

/* What the caller owns: all of its bytes are @fill. */
static struct object {
        unsigned char *at;
        size_t bytes, align;
        struct stook_heap *heap;
        unsigned char fill;
} live[LIVE];
static struct stook_heap *heaps[HEAPS];

/* Mostly small, some large, some absurd. */
static size_t size_of(const uint8_t *bytes)
{
        size_t n = bytes[0] | (size_t)bytes[1] << 8;

        switch (bytes[2] % 16) {
        case 0:  return n << 6;
        case 1:  return SIZE_MAX - n;
        case 2:  return (size_t)PTRDIFF_MAX + 1 - n;
        case 3: case 4: case 5: return n;
        default: return n % 600;
        }
}

static void check(const struct object *o, size_t bytes)
{
        for (size_t i = 0; i < bytes; i += i < 64 || i + 64 > bytes ? 1 : 61)
                expect(o->at[i] == o->fill);
}

static void check_new(const struct object *o, bool zero)
{
        expect(((uintptr_t)o->at & (o->align - 1)) == 0);
        expect(stook_owns(o->at) && stook_usable_size(o->at) >= o->bytes);
        expect(stook_heap_of(o->at) == o->heap);
        for (size_t i = 0; zero && i < o->bytes; i += i < 64 ? 1 : 61)
                expect(!o->at[i]);
        for (unsigned k = 0; k < LIVE; k++)
                if (live[k].at && &live[k] != o)
                        expect(live[k].at + live[k].bytes <= o->at ||
                               o->at + o->bytes <= live[k].at);
}

static void fill(struct object *o, uint8_t with)
{
        o->fill = with;
        memset(o->at, with, o->bytes);
}

/* Refused only where it may be. */
static void expect_refusal(size_t size)
{
        expect(size > ((size_t)1 << 30));
        expect(errno == ENOMEM);
}

static void take(struct object *o, const uint8_t *bytes)
{
        size_t size = size_of(bytes + 2), align = 16;
        bool zero = false;

        *o = (struct object){ .heap = bytes[1] & 1 ? heaps[bytes[1] >> 1 & 1] : NULL };
        errno = 0;
        switch (bytes[0] >> 3 & 3) {
        case 0:
                o->at = o->heap ? stook_heap_alloc(o->heap, size) : stook_malloc(size);
                break;
        case 1:
                zero = true;
                o->at = o->heap ? stook_heap_calloc(o->heap, 1, size) : stook_calloc(1, size);
                break;
        case 2:
                align = (size_t)16 << (bytes[1] >> 2) % 10;
                o->at = o->heap ? stook_heap_aligned_alloc(o->heap, align, size)
                                : stook_aligned_alloc(align, size);
                break;
        default: {
                size_t got = 0;

                o->heap = NULL;
                o->at = stook_malloc_at_least(size, &got);
                if (o->at) {
                        expect(got >= size);
                        size = got;
                }
        }
        }
        if (!o->at) {
                expect_refusal(size);
                return;
        }
        o->bytes = size;
        o->align = size < 16 && align == 16 ? 8 : align;
        check_new(o, zero);
        fill(o, bytes[1]);
}

static void resize(struct object *o, const uint8_t *bytes)
{
        size_t size = size_of(bytes + 2), kept = o->bytes < size ? o->bytes : size;
        unsigned char *to;

        if (!size)
                size = kept = 1;
        if (bytes[0] & 8) {
                if (stook_try_expand(o->at, size) && size > o->bytes) {
                        check(o, o->bytes);
                        o->bytes = size;
                        check_new(o, false);
                        fill(o, bytes[1]);
                }
                return;
        }
        errno = 0;
        to = o->heap ? stook_heap_realloc(o->heap, o->at, size) : stook_realloc(o->at, size);
        if (!to) {
                expect_refusal(size);
                check(o, o->bytes);
                return;
        }
        o->at = to;
        o->align = 8;
        check(o, kept);
        o->bytes = size;
        check_new(o, false);
        fill(o, bytes[1]);
}

static void give(struct object *o, uint8_t how)
{
        check(o, o->bytes);
        if (o->heap)
                how & 8 ? stook_heap_free(o->heap, o->at) : stook_free(o->at);
        else if (how & 8)
                stook_free_nolock(o->at);
        else
                stook_free(o->at);
        o->at = NULL;
}

static void end_heap(unsigned which, bool reset)
{
        for (unsigned k = 0; k < LIVE; k++)
                if (live[k].at && live[k].heap == heaps[which]) {
                        check(&live[k], live[k].bytes);
                        live[k].at = NULL;
                }
        if (reset) {
                expect(stook_heap_reset(heaps[which]) == 0);
                return;
        }
        expect(stook_heap_destroy(heaps[which]) == 0);
        expect((heaps[which] = stook_heap_create("fuzz", NULL)) != NULL);
}

static void call(const uint8_t *bytes)
{
        struct object *o = &live[bytes[1] % LIVE];

        switch (bytes[0] & 7) {
        case 0: case 1: case 2:
                if (!o->at) {
                        take(o, bytes);
                        return;
                }
                /* fall through */
        case 3: case 4:
                if (o->at)
                        give(o, bytes[0]);
                return;
        case 5: case 6:
                if (o->at)
                        resize(o, bytes);
                return;
        default:
                if (bytes[0] >= 248)
                        end_heap(bytes[1] & 1, bytes[2] & 1);
                else if (bytes[0] >= 240)
                        stook_trim((size_t)bytes[2] << 12);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        for (unsigned h = 0; h < HEAPS; h++)
                if (!heaps[h])
                        expect((heaps[h] = stook_heap_create("fuzz", NULL)) != NULL);
        for (size_t at = 0; at + CALL_BYTES <= size; at += CALL_BYTES)
                call(data + at);
        for (unsigned k = 0; k < LIVE; k++)
                if (live[k].at)
                        give(&live[k], 0);
        expect(stook_validate_all() == 0);
        return 0;
}

#ifndef LIBFUZZER
int main(int argc, char **argv)
{
        uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
        long runs = argc > 1 ? atol(argv[1]) : 100;
        static uint8_t bytes[CALL_BYTES * 500];

        printf("seed %" PRIu64 "\n", state);
        for (long run = 0; run < runs; run++) {
                for (size_t i = 0; i < sizeof(bytes); i++) {
                        state = state * UINT64_C(6364136223846793005) +
                                UINT64_C(1442695040888963407);
                        bytes[i] = (uint8_t)(state >> 56);
                }
                LLVMFuzzerTestOneInput(bytes, sizeof(bytes));
        }
        return 0;
}
#endif
