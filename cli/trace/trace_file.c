/*
 * Purpose: see trace_file.h.
 * The file is read by pread, never mapped: it may be cut while it is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/trace/trace_file.h"

/* ---- failures ---- */

static bool fail(struct trace_file *file, const char *what)
{
        snprintf(file->message, file->message_bytes, "%s: %s", file->path, what);
        return false;
}

void trace_file_leave_out(struct trace_file *file, uint64_t at, uint64_t bytes, const char *what)
{
        if (!file->damage.bytes)
                file->damage = (struct trace_damage){ .at = at, .what = what };
        file->damage.bytes += bytes;
}

bool trace_file_no_memory(struct trace_file *file)
{
        return fail(file, "no memory to read it");
}

/* One more item of an array. False: no memory. */
static bool room_for(void *array, size_t count, size_t *room, size_t bytes)
{
        void *more;

        if (count < *room)
                return true;
        more = realloc(*(void **)array, (*room ? 2 * *room : 64) * bytes);
        if (!more)
                return false;
        *(void **)array = more;
        *room = *room ? 2 * *room : 64;
        return true;
}

/* ---- what a block is made of ---- */

bool trace_take_number(struct trace_cursor *c, uint64_t *number)
{
        uint64_t n = 0;

        for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
                unsigned char byte = *c->at++;

                if (shift == 63 && byte > 1)
                        return false;
                n |= (uint64_t)(byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *number = n;
                        return true;
                }
        }
        return false;
}

bool trace_take_difference(struct trace_cursor *c, uint64_t *from)
{
        uint64_t n;

        if (!trace_take_number(c, &n))
                return false;
        *from += n >> 1 ^ -(n & 1);
        return true;
}

bool trace_take_bytes(struct trace_cursor *c, size_t most, const unsigned char **bytes, size_t *n)
{
        uint64_t count;

        if (!trace_take_number(c, &count) || count > most || count > (size_t)(c->end - c->at))
                return false;
        *bytes = c->at;
        *n = (size_t)count;
        c->at += count;
        return true;
}

bool trace_take_name(struct trace_cursor *c, char name[STOOK_TRACE_NAME_MAX + 1])
{
        const unsigned char *bytes;
        size_t n;

        if (!trace_take_bytes(c, STOOK_TRACE_NAME_MAX, &bytes, &n))
                return false;
        for (size_t i = 0; i < n; i++)
                name[i] = bytes[i] >= ' ' && bytes[i] < 0x7f ? (char)bytes[i] : '?';
        name[n] = '\0';
        return true;
}

/* ---- blocks ---- */

static ssize_t read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
        size_t got = 0;

        while (got < bytes) {
                ssize_t n = pread(fd, (char *)out + got, bytes - got, (off_t)(offset + got));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -1;
                if (!n)
                        break;
                got += (size_t)n;
        }
        return (ssize_t)got;
}

static bool checks(uint64_t *words)
{
        struct stook_trace_block *head = (void *)words;
        uint64_t sum = head->checksum;

        head->checksum = 0;
        head->checksum = stook_trace_checksum(words, head->bytes);
        return head->checksum == sum;
}

static const char ends_early[] = "a block that ends early", no_block[] = "no block begins here";

/* What is wrong with the block that @n bytes begin with; NULL: nothing, all of it is there. */
static const char *fault_of(uint64_t *words, size_t n)
{
        const struct stook_trace_block *head = (void *)words;

        if (n < sizeof *head)
                return ends_early;
        if (head->magic != STOOK_TRACE_MAGIC)
                return no_block;
        if (head->version < 1 || head->version > STOOK_TRACE_VERSION)
                return "a version that this stook does not read";
        if (head->bytes % 8 || head->bytes <= sizeof *head || head->bytes > STOOK_TRACE_BLOCK_BYTES)
                return "a block of an impossible size";
        if (head->bytes > n)
                return ends_early;
        return checks(words) ? NULL : "a block's checksum is wrong";
}

bool trace_file_load(struct trace_file *file, uint32_t block, uint64_t *words)
{
        const struct trace_block_at *at = &file->blocks[block];
        ssize_t n = read_at(file->fd, words, at->bytes, at->offset);

        if (n < 0)
                return fail(file, strerror(errno));
        if (fault_of(words, (size_t)n) || ((struct stook_trace_block *)words)->bytes != at->bytes)
                return fail(file, "it changed while it was read");
        return true;
}

/* ---- the first look ---- */

/* The process of a block, which may be new. False: *@fault says why, or there is no memory. */
static bool process_of(struct trace_file *file, const struct stook_trace_block *head,
                       uint32_t *process, const char **fault)
{
        struct trace_cursor c = { (const unsigned char *)(head + 1),
                                  (const unsigned char *)head + head->bytes };
        unsigned char tag = *c.at++;
        struct trace_process new = { .pid = head->pid, .forked = tag & STOOK_TRACE_FORKED };
        uint64_t parent;
        size_t i = file->process_count;

        /* The last one most often wrote this block, too. */
        while (i && file->images[i - 1] != head->image)
                i--;
        if (i) {
                *process = (uint32_t)(i - 1);
                return true;
        }
        if ((tag & STOOK_TRACE_KIND) != STOOK_TRACE_PROCESS || !trace_take_number(&c, &parent) ||
            !trace_take_number(&c, &new.began_ns) || !trace_take_name(&c, new.program)) {
                *fault = "a block that names no process";
                return false;
        }
        new.parent = (uint32_t)parent;
        i = file->process_room;
        if (!room_for(&file->processes, file->process_count, &file->process_room, sizeof new) ||
            !room_for(&file->images, file->process_count, &i, sizeof *file->images))
                return trace_file_no_memory(file);
        file->images[file->process_count] = head->image;
        file->processes[file->process_count] = new;
        *process = (uint32_t)file->process_count++;
        return true;
}

static struct trace_stream *stream_of(struct trace_file *file, uint32_t process, uint32_t buffer)
{
        struct trace_stream new = { .process = process, .buffer = buffer, .first = TRACE_NO_BLOCK,
                                    .last = TRACE_NO_BLOCK };

        for (size_t i = file->stream_count; i--;)
                if (file->streams[i].process == process && file->streams[i].buffer == buffer)
                        return &file->streams[i];
        if (!room_for(&file->streams, file->stream_count, &file->stream_room, sizeof new))
                return NULL;
        file->streams[file->stream_count] = new;
        return &file->streams[file->stream_count++];
}

/* False: as process_of. */
static bool add_block(struct trace_file *file, const struct stook_trace_block *head,
                      uint64_t offset, const char **fault)
{
        struct trace_block_at new = { .offset = offset, .at_ns = head->at_ns, .bytes = head->bytes,
                                      .next = TRACE_NO_BLOCK };
        uint32_t process = 0, at = (uint32_t)file->block_count;
        struct trace_stream *stream;

        if (!process_of(file, head, &process, fault))
                return false;
        stream = stream_of(file, process, head->buffer);
        if (!stream || file->block_count >= TRACE_NO_BLOCK ||
            !room_for(&file->blocks, file->block_count, &file->block_room, sizeof new))
                return trace_file_no_memory(file);
        if (stream->last != TRACE_NO_BLOCK) {
                if (head->sequence <= stream->sequence ||
                    head->at_ns < file->blocks[stream->last].at_ns) {
                        *fault = "a block out of its order";
                        return false;
                }
                file->blocks[stream->last].next = at;
        } else {
                stream->first = at;
        }
        stream->last = at;
        stream->sequence = head->sequence;
        file->blocks[file->block_count++] = new;
        file->processes[process].blocks++;
        if (head->missed > file->processes[process].missed)
                file->processes[process].missed = head->missed;
        return true;
}

/* How far it is to the next place where a block may begin, of @n bytes from one that is none. */
static size_t to_next(const uint64_t *words, size_t n)
{
        static const uint64_t magic = STOOK_TRACE_MAGIC;
        const char *at = (const char *)words;
        const char *next = memmem(at + 1, n - 1, &magic, sizeof magic);

        if (next)
                return (size_t)(next - at);
        return n < STOOK_TRACE_BLOCK_BYTES ? n : n - sizeof magic + 1;
}

/* There is not a single whole block: why. */
static bool fail_empty(struct trace_file *file)
{
        char text[100];

        if (file->cut)
                return fail(file, "too short: no trace, or not a single whole block");
        if (!file->damage.bytes)
                return fail(file, "empty: no trace");
        if (file->damage.what == no_block)
                return fail(file, "not a trace of stook record");
        snprintf(text, sizeof text, "damaged at byte 0: %s", file->damage.what);
        return fail(file, text);
}

/*
 * What is no block is left out, up to where the next whole one begins. If none does, a piece of a
 * block is the end of an unfinished trace.
 */
static bool look(struct trace_file *file)
{
        uint64_t *words = malloc(STOOK_TRACE_BLOCK_BYTES), offset = 0, bad = 0;
        const char *first = NULL;               /* what is wrong with the @bad bytes before */
        ssize_t n = 0;

        while (words && (n = read_at(file->fd, words, STOOK_TRACE_BLOCK_BYTES, offset)) > 0) {
                const char *fault = fault_of(words, (size_t)n);
                size_t step;

                if (!fault && add_block(file, (void *)words, offset, &fault)) {
                        if (bad)
                                trace_file_leave_out(file, offset - bad, bad, first);
                        bad = 0;
                        offset += ((struct stook_trace_block *)words)->bytes;
                        continue;
                }
                if (!fault)
                        break;
                if (!bad)
                        first = fault;
                step = to_next(words, (size_t)n);
                bad += step;
                offset += step;
        }
        free(words);
        if (n)
                return n < 0 ? fail(file, strerror(errno)) : false;
        if (!words)
                return trace_file_no_memory(file);
        if (bad && first == ends_early)
                file->cut = bad;
        else if (bad)
                trace_file_leave_out(file, offset - bad, bad, first);
        return file->block_count || fail_empty(file);
}

bool trace_file_open(struct trace_file *file, const char *path, char *message, size_t bytes)
{
        struct stat st;

        memset(file, 0, sizeof *file);
        file->message = message;
        file->message_bytes = bytes;
        snprintf(file->path, sizeof file->path, "%s", path);
        /* NONBLOCK: a fifo of that name must not hang. */
        file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (file->fd < 0 || fstat(file->fd, &st))
                return fail(file, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return fail(file, "not a regular file");
        return look(file);
}

void trace_file_release(struct trace_file *file)
{
        if (file->fd >= 0)
                close(file->fd);
        free(file->blocks);
        free(file->streams);
        free(file->processes);
        free(file->images);
        file->fd = -1;
}
