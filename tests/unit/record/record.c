/*
 * What this proves: what is recorded is in the file, byte for byte by the format: blocks with their
 * checksums and in sequence, caches named in each block that speaks of them, allocations, frees,
 * frees by RCU and resizes with their addresses and sizes, in order. More than a block is several
 * blocks, each of which reads by itself: with stacks, it gives those of its events, and the files
 * of their frames. After the end nothing is recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "record/record.h"
#include "record/trace_format.h"
#include "stack/stack.h"

#define MANY   40000                    /* events of 5 bytes and more: several blocks */
#define STACKS 700                      /* more than a buffer remembers */

struct event {
        unsigned kind, flags;
        uint64_t address, to, cache, bytes, stack;
};

static char path[40];
static struct event wanted[MANY + 100], seen[MANY + 100];
static size_t wanted_count, seen_count, blocks;
static const struct stook_record_cache conn = { .index = 5, .object_bytes = 200, .stride = 208,
                                                .born = 1, .name = "conn" };
static const struct stook_record_cache large = { .index = STOOK_TRACE_LARGE };

/* ---- stacks: number n is 0x400000 + n in a file, and 0x9000 in none ---- */

#define CODE 3

static uint32_t stack_now;              /* what a walk gives; 0: none */

struct stook_stack_module stook_stack_modules[STOOK_STACK_MODULES] = {
        [CODE] = { .start = 0x400000, .end = 0x500000, .build = { 0xab, 0xcd }, .build_bytes = 2,
                   .file = "/bin/prog" },
};

uint32_t stook_stack_here(unsigned skip)
{
        assert_int_equal(skip, 0);
        return stack_now;
}

unsigned stook_stack_frames(uint32_t id, uintptr_t *frames, unsigned most)
{
        assert_true(id == stack_now && most >= 2);
        frames[0] = 0x400000 + id;
        frames[1] = 0x9000;
        return 2;
}

int stook_stack_module(uint32_t id, uintptr_t address)
{
        assert_int_equal(id, stack_now);
        return address == 0x400000 + id - 1 ? CODE : -1;
}

/* ---- a reader of its own ---- */

struct reader {
        const unsigned char *at, *end;
        uint64_t address;
        bool names_conn, names_code, names_stack[STACKS + 1];
};

static uint64_t number(struct reader *r)
{
        uint64_t n = 0;
        unsigned shift = 0;

        do {
                assert_true(r->at < r->end && shift < 64);
                n |= (uint64_t)(*r->at & 0x7f) << shift;
                shift += 7;
        } while (*r->at++ & 0x80);
        return n;
}

static uint64_t difference(struct reader *r)
{
        uint64_t n = number(r);

        return n & 1 ? ~(n >> 1) : n >> 1;
}

static void skip_name(struct reader *r, const char *name)
{
        size_t n = number(r);

        assert_true(n <= STOOK_TRACE_NAME_MAX && n <= (size_t)(r->end - r->at));
        if (name)
                assert_memory_equal(r->at, name, n);
        r->at += n;
}

static void skip_bytes(struct reader *r, const void *bytes, size_t n)
{
        assert_int_equal(number(r), n);
        assert_true(n <= (size_t)(r->end - r->at));
        assert_memory_equal(r->at, bytes, n);
        r->at += n;
}

static void read_stack(struct reader *r, unsigned first)
{
        uint64_t id = number(r);

        if (first & STOOK_TRACE_CODE) {
                assert_int_equal(id, CODE + 1);
                assert_int_equal(number(r), 0x400000);
                assert_int_equal(number(r), 0x100000);
                skip_bytes(r, "\xab\xcd", 2);
                skip_bytes(r, "/bin/prog", 9);
                assert_false(r->names_code);
                r->names_code = true;
                return;
        }
        assert_in_range(id, 1, STACKS);
        assert_int_equal(number(r), 2);
        assert_int_equal(number(r), CODE + 1);
        assert_true(r->names_code);
        assert_int_equal(difference(r), 0x400000 + id);
        assert_int_equal(number(r), 0);
        assert_true(difference(r) == 0x9000 - (0x400000 + id));
        r->names_stack[id] = true;
}

static void read_event(struct reader *r, unsigned first)
{
        struct event *e = &seen[seen_count];

        *e = (struct event){ .kind = first & STOOK_TRACE_KIND, .flags = first & ~7u };
        number(r);                      /* ns */
        e->address = r->address += difference(r);
        if (e->kind == STOOK_TRACE_ALLOC) {
                e->cache = number(r);
                e->bytes = number(r);
                assert_true(e->cache != conn.index || r->names_conn);
        } else if (e->kind == STOOK_TRACE_RESIZE) {
                e->to = r->address += difference(r);
                e->bytes = number(r);
        }
        if (e->kind != STOOK_TRACE_FREE && (first & STOOK_TRACE_STACKS)) {
                e->stack = number(r);
                assert_true(e->stack <= STACKS && r->names_stack[e->stack]);
        }
        seen_count++;
        assert_true(seen_count < MANY + 100);
}

static void read_record(struct reader *r, unsigned first)
{
        switch (first & STOOK_TRACE_KIND) {
        case STOOK_TRACE_THREAD:
                number(r);
                number(r);
                break;
        case STOOK_TRACE_CACHE:
                assert_int_equal(number(r), conn.index);
                assert_int_equal(number(r), conn.object_bytes);
                assert_int_equal(number(r), conn.stride);
                skip_name(r, "conn");
                r->names_conn = true;
                break;
        case STOOK_TRACE_PROCESS:
                assert_int_equal(number(r), getppid());
                number(r);
                skip_name(r, NULL);
                break;
        case STOOK_TRACE_STACK:
                read_stack(r, first);
                break;
        default:
                read_event(r, first);
        }
}

static void read_block(unsigned char *block, size_t bytes)
{
        struct stook_trace_block *head = (void *)block;
        uint64_t checksum = head->checksum;
        struct reader r = { .at = block + sizeof(*head), .end = block + bytes };

        head->checksum = 0;
        assert_int_equal(stook_trace_checksum((uint64_t *)block, bytes), checksum);
        assert_int_equal(head->version, stook_recording_stacks ? 2 : 1);
        assert_int_equal(head->pid, getpid());
        assert_int_equal(head->missed, 0);
        assert_int_equal(head->sequence, blocks);       /* one thread: one buffer */
        assert_int_equal(*r.at & STOOK_TRACE_KIND, STOOK_TRACE_PROCESS);
        while (r.at < r.end && *r.at) {
                unsigned first = *r.at++;

                read_record(&r, first);
        }
        while (r.at < r.end)
                assert_int_equal(*r.at++, 0);
        blocks++;
}

static void read_file(void)
{
        static uint64_t block[STOOK_TRACE_BLOCK_BYTES / 8];
        struct stook_trace_block *head = (void *)block;
        FILE *file = fopen(path, "r");

        assert_non_null(file);
        while (fread(block, 1, sizeof(*head), file) == sizeof(*head)) {
                assert_true(head->magic == STOOK_TRACE_MAGIC);
                assert_true(head->bytes <= sizeof(block) && head->bytes % 8 == 0);
                assert_int_equal(fread(head + 1, 1, head->bytes - sizeof(*head), file),
                                 head->bytes - sizeof(*head));
                read_block((unsigned char *)block, head->bytes);
        }
        fclose(file);
}

/* ---- what is recorded ---- */

static void want(struct event event)
{
        if (event.kind != STOOK_TRACE_FREE && stack_now) {
                event.flags |= STOOK_TRACE_STACKS;
                event.stack = stack_now;
        }
        wanted[wanted_count++] = event;
}

static void alloc(const struct stook_record_cache *cache, uintptr_t address, size_t bytes)
{
        stook_record_alloc(cache, (void *)address, bytes);
        want((struct event){ .kind = STOOK_TRACE_ALLOC, .address = address, .cache = cache->index,
                             .bytes = bytes == cache->object_bytes ? 0 : bytes });
}

static void release(uintptr_t address, bool by_rcu)
{
        stook_record_free((void *)address, by_rcu);
        want((struct event){ .kind = STOOK_TRACE_FREE, .address = address,
                             .flags = by_rcu ? STOOK_TRACE_BY_RCU : 0 });
}

/* In place it is one event; if it moves the object, a free and an allocation; none if it fails. */
static void resize(uintptr_t from, uintptr_t to, size_t bytes)
{
        struct stook_record_buffer *b = stook_record_resize_begin();

        stook_record_resize_end(b, (void *)from, (void *)to, bytes);
        if (to == from) {
                want((struct event){ .kind = STOOK_TRACE_RESIZE, .address = from, .to = to,
                                     .bytes = bytes });
        } else if (to) {
                want((struct event){ .kind = STOOK_TRACE_FREE, .address = from });
                want((struct event){ .kind = STOOK_TRACE_ALLOC, .address = to, .bytes = bytes });
        }
}

static void record_all(void)
{
        alloc(&conn, 0x7f0000001000, 200);
        alloc(&conn, 0x7f0000000f30, 150);
        release(0x7f0000001000, false);
        release(0x7f0000000f30, true);
        alloc(&large, 0x600000000000, 1 << 20);
        resize(0x600000000000, 0x600000000000, 2 << 20);
        resize(0x600000000000, 0x500000000000, 3 << 20);
        resize(0x500000000000, 0, 1 << 30);     /* it failed */
        release(0x500000000000, false);
        for (unsigned i = 0; i < MANY / 2; i++) {
                stack_now = stook_recording_stacks ? 1 + i * 7 % STACKS : 0;
                alloc(&conn, 0x7f0000001000 + 208 * i, 200);
                release(0x7f0000001000 + 208 * i, i % 3 == 0);
        }
}

static void record_and_read(bool stacks)
{
        int fd = mkstemp(strcpy(path, "/tmp/stook-record-XXXXXX"));

        assert_true(fd >= 0);
        close(fd);
        wanted_count = seen_count = blocks = 0;
        assert_false(stook_recording);
        assert_true(stook_record_start(path, stacks));
        stack_now = stacks ? STACKS : 0;
        assert_true(stook_recording);
        record_all();
        stook_record_end();
        assert_false(stook_recording);
        read_file();
        unlink(path);
        assert_true(blocks > 2);
        assert_int_equal(seen_count, wanted_count);
        for (size_t i = 0; i < seen_count; i++) {
                assert_int_equal(seen[i].kind, wanted[i].kind);
                assert_int_equal(seen[i].flags, wanted[i].flags);
                assert_true(seen[i].address == wanted[i].address && seen[i].to == wanted[i].to);
                assert_true(seen[i].cache == wanted[i].cache);
                assert_int_equal(seen[i].bytes, wanted[i].bytes);
                assert_int_equal(seen[i].stack, wanted[i].stack);
        }
}

static void test_all(void **unused)
{
        (void)unused;
        record_and_read(false);
}

static void test_stacks(void **unused)
{
        (void)unused;
        record_and_read(true);
}

int main(void)
{
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_all),
                                                   cmocka_unit_test(test_stacks) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
