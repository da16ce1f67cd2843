/*
 * Purpose: see record_buffer.h: buffers taken and given, blocks begun and written out.
 * Concurrency: I1 of record.h. A buffer whose holder was jumped out of, or stopped for ever, stays
 *  busy: its block is lost, and one buffer less is used.
 *  M1: give's release of `busy` pairs with the acquire in take.
 */
#include <string.h>

#include "base/thread.h"
#include "os/os.h"
#include "process/process.h"
#include "record/record_buffer.h"
#include "report/report.h"

/* A block is written after so long, so that a killed program loses little. Arbitrary. */
#define BLOCK_NS UINT64_C(1000000000)
/* The last flush waits so often, a millisecond each, for a call that has a buffer. */
#define FLUSH_WAITS 100

/* Wiped by a fork, as the buffers behind it. */
struct process {
        uint64_t image;                 /* atomic; 0: a process that has written nothing yet */
        uint64_t missed;                /* atomic, relaxed */
};

static struct process *process;         /* const after the start, and the next two */
static struct stook_record_buffer *buffers;
static uint64_t first_image;            /* of the process that started */

/* ---- processes ---- */

/* Random numbers are the same in all children of a process: what differs is mixed in. */
static uint64_t new_image(void)
{
        uint64_t x = stook_os_random() ^ (uint64_t)stook_process_id() << 32 ^ stook_os_clock_ns();

        x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
        return (x ^ x >> 29) | 1;
}

static uint64_t image(void)
{
        uint64_t seen = __atomic_load_n(&process->image, __ATOMIC_RELAXED), fresh;

        if (STOOK_LIKELY(seen != 0))
                return seen;
        fresh = new_image();
        return __atomic_compare_exchange_n(&process->image, &seen, fresh, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED) ? fresh : seen;
}

bool stook_record_buffers_start(void)
{
        size_t head = stook_os_whole_pages(sizeof(struct process));
        size_t bytes = head + stook_os_whole_pages(STOOK_RECORD_BUFFERS * sizeof *buffers);
        char *memory = stook_os_reserve(bytes, stook_os_page_bytes());

        if (!memory || !stook_os_commit(memory, bytes) ||
            !stook_os_advise(memory, bytes, STOOK_OS_WIPEONFORK))
                return false;
        stook_os_advise(memory, bytes, STOOK_OS_DONTDUMP);
        process = (void *)memory;
        buffers = (void *)(memory + head);
        first_image = image();
        return true;
}

/* ---- what a block is made of ---- */

void stook_record_put_byte(struct stook_record_buffer *b, unsigned byte)
{
        b->block.bytes_of[b->bytes++] = (unsigned char)byte;
}

void stook_record_put_number(struct stook_record_buffer *b, uint64_t number)
{
        for (; number >= 0x80; number >>= 7)
                stook_record_put_byte(b, (number & 0x7f) | 0x80);
        stook_record_put_byte(b, (unsigned)number);
}

void stook_record_put_difference(struct stook_record_buffer *b, uint64_t difference)
{
        stook_record_put_number(b, difference << 1 ^ -(difference >> 63));
}

void stook_record_put_address(struct stook_record_buffer *b, const void *address)
{
        stook_record_put_difference(b, (uintptr_t)address - b->address);
        b->address = (uintptr_t)address;
}

void stook_record_put_bytes(struct stook_record_buffer *b, const void *bytes, size_t n)
{
        stook_record_put_number(b, n);
        for (size_t i = 0; i < n; i++)
                stook_record_put_byte(b, ((const unsigned char *)bytes)[i]);
}

void stook_record_put_name(struct stook_record_buffer *b, const char *name)
{
        stook_record_put_bytes(b, name, name ? strnlen(name, STOOK_TRACE_NAME_MAX) : 0);
}

/* ---- blocks ---- */

static void begin_block(struct stook_record_buffer *b, uint64_t now)
{
        uint64_t mine = image();

        b->block.head = (struct stook_trace_block){
                .magic = STOOK_TRACE_MAGIC, .image = mine,
                .version = stook_recording_stacks ? STOOK_TRACE_VERSION : 1,
                .pid = stook_process_id(), .buffer = (uint32_t)(b - buffers),
                .sequence = b->sequence, .at_ns = now,
        };
        b->bytes = sizeof b->block.head;
        b->begun_ns = b->at_ns = now;
        b->address = 0;
        b->thread = 0;
        stook_record_put_byte(b, STOOK_TRACE_PROCESS |
                                 (mine == first_image ? 0 : STOOK_TRACE_FORKED));
        stook_record_put_number(b, stook_process_parent_id());
        stook_record_put_number(b, stook_os_real_ns());
        stook_record_put_name(b, stook_process_name());
}

static void end_block(struct stook_record_buffer *b)
{
        while (b->bytes % 8)
                stook_record_put_byte(b, STOOK_TRACE_END);
        b->block.head.bytes = b->bytes;
        b->block.head.missed = __atomic_load_n(&process->missed, __ATOMIC_RELAXED);
        b->block.head.checksum = stook_trace_checksum(b->block.words, b->bytes);
        if (!stook_trace_file_write(b->block.words, b->bytes)) {
                stook_report_note(STOOK_NOTE_CUT);
                __atomic_store_n(&stook_recording, false, __ATOMIC_RELAXED);
        }
        b->bytes = 0;
        b->sequence++;
}

/* ---- buffers ---- */

static bool try_take(struct stook_record_buffer *b)
{
        return !__atomic_load_n(&b->busy, __ATOMIC_RELAXED) &&
               !__atomic_exchange_n(&b->busy, 1, __ATOMIC_ACQUIRE);
}

void stook_record_give(struct stook_record_buffer *b)
{
        __atomic_store_n(&b->busy, 0, __ATOMIC_RELEASE);
}

static struct stook_record_buffer *take_any(void)
{
        size_t home = ((uintptr_t)stook_self * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

        for (size_t i = 0; i < STOOK_RECORD_BUFFERS; i++) {
                struct stook_record_buffer *b = &buffers[(home + i) % STOOK_RECORD_BUFFERS];

                if (STOOK_LIKELY(try_take(b)))
                        return b;
        }
        __atomic_fetch_add(&process->missed, 1, __ATOMIC_RELAXED);
        return NULL;
}

/*
 * Is the last event's thread this one? A new thread may have the thread record of one that ended;
 * it enrols, or has not enrolled yet.
 */
static bool is_same_thread(const struct stook_record_buffer *b, uint32_t enrolled)
{
        return b->thread && b->self == stook_self && b->enrolled == enrolled && stook_self->rseq;
}

static void name_thread(struct stook_record_buffer *b)
{
        uint32_t enrolled = __atomic_load_n(&stook_threads_enrolled, __ATOMIC_RELAXED);
        uint32_t thread = is_same_thread(b, enrolled) ? b->thread : stook_process_thread_id();
        uint32_t cpu = stook_os_cpu();

        b->self = stook_self;
        b->enrolled = enrolled;
        if (STOOK_LIKELY(thread == b->thread && cpu == b->cpu))
                return;
        b->thread = thread;
        b->cpu = cpu;
        stook_record_put_byte(b, STOOK_TRACE_THREAD);
        stook_record_put_number(b, thread);
        stook_record_put_number(b, cpu);
}

struct stook_record_buffer *stook_record_take(uint64_t *ns)
{
        struct stook_record_buffer *b;
        uint64_t now;

        if (!__atomic_load_n(&stook_recording, __ATOMIC_RELAXED))
                return NULL;
        b = take_any();
        if (STOOK_UNLIKELY(!b))
                return NULL;
        now = stook_os_clock_ns();
        if (b->bytes && (b->bytes > STOOK_TRACE_BLOCK_BYTES - STOOK_RECORD_EVENT_MAX ||
                         now - b->begun_ns > BLOCK_NS))
                end_block(b);
        if (!b->bytes)
                begin_block(b, now);
        name_thread(b);
        *ns = now - b->at_ns;
        b->at_ns = now;
        return b;
}

void stook_record_flush_all(void)
{
        for (size_t i = 0; i < STOOK_RECORD_BUFFERS; i++) {
                struct stook_record_buffer *b = &buffers[i];
                unsigned waits = 0;

                while (!try_take(b) && waits++ < FLUSH_WAITS)
                        stook_os_futex_wait(&b->busy, 1, 1000000);
                if (waits > FLUSH_WAITS)
                        continue;
                if (b->bytes)
                        end_block(b);
                stook_record_give(b);
        }
}
