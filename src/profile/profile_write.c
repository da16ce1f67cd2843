/*
 * Purpose: a heap profile as a file of pprof's format: the message Profile of its profile.proto, in
 * the encoding of protocol buffers, not compressed.
 *   sample_type   alloc_objects/count, alloc_space/bytes, inuse_objects/count, inuse_space/bytes
 *   sample        for each call stack; addresses are those of the calls, innermost first
 *   mapping       from /proc/self/maps: what is executable, and where each such file begins
 *   location      its number is its address; 1: the stack is not known; 2: outer calls, left out
 * Place: called by life, at the end of the process, on a signal, and for stook_profile_write().
 * Concurrency: one writer at a time, by a word that is only tried. The sums go on meanwhile.
 * Failure: -errno, and the file that was there before is as it was.
 */
#include <errno.h>
#include <string.h>

#include "os/os.h"
#include "process/process.h"
#include "profile/profile.h"
#include "report/report.h"
#include "stack/stack.h"

#define MAPPINGS_MAX  1024              /* more are left out: nearly no program has so many */
#define MESSAGE_BYTES 768               /* of the longest: a sample, or a string */
#define UNKNOWN       1                 /* locations that are no addresses */
#define OUTER         2

/* Fields of profile.proto. */
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE, PROFILE_MAPPING, PROFILE_LOCATION,
       PROFILE_FUNCTION, PROFILE_STRING, PROFILE_TIME = 9, PROFILE_PERIOD_TYPE = 11,
       PROFILE_PERIOD, PROFILE_COMMENT, PROFILE_DEFAULT_TYPE };
enum { VALUE_TYPE = 1, VALUE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME };

struct message {
        size_t        bytes;
        unsigned char text[MESSAGE_BYTES];
};

static struct {
        uint32_t busy;                  /* atomic: number of the process that writes; 0: none */
        uint64_t strings;               /* written so far */
        size_t   mapping_count;
        struct { uintptr_t start, end; } mappings[MAPPINGS_MAX];
        uintptr_t *locations;           /* a table of those that are written; 0: none */
        size_t   location_room;         /* a power of two */
        size_t   frames;                /* of all stacks */
        struct stook_output out;
} writer STOOK_MOSTLY_UNUSED;

/* ---- the encoding ---- */

static void put_number(struct message *m, uint64_t number)
{
        for (; number >= 0x80; number >>= 7)
                m->text[m->bytes++] = (unsigned char)(number | 0x80);
        m->text[m->bytes++] = (unsigned char)number;
}

static void put_field(struct message *m, unsigned field, uint64_t number)
{
        put_number(m, field << 3);
        put_number(m, number);
}

static void put_message(struct message *m, unsigned field, const struct message *part)
{
        put_number(m, field << 3 | 2);
        put_number(m, part->bytes);
        memcpy(m->text + m->bytes, part->text, part->bytes);
        m->bytes += part->bytes;
}

/* A field of Profile. */
static void write_number(unsigned field, uint64_t number)
{
        struct message m = { .bytes = 0 };

        put_field(&m, field, number);
        stook_output_put(&writer.out, m.text, m.bytes);
}

static void write_message(unsigned field, const struct message *part)
{
        struct message head = { .bytes = 0 };

        put_number(&head, field << 3 | 2);
        put_number(&head, part->bytes);
        stook_output_put(&writer.out, head.text, head.bytes);
        stook_output_put(&writer.out, part->text, part->bytes);
}

/* Returns its number. */
static uint64_t write_string(const char *text)
{
        size_t bytes = strlen(text);
        struct message m = { .bytes = bytes < MESSAGE_BYTES ? bytes : MESSAGE_BYTES };

        memcpy(m.text, text, m.bytes);
        write_message(PROFILE_STRING, &m);
        return writer.strings++;
}

static void write_type(unsigned field, const char *type, const char *unit)
{
        struct message m = { .bytes = 0 };
        uint64_t type_string = write_string(type);

        put_field(&m, VALUE_TYPE, type_string);
        put_field(&m, VALUE_UNIT, write_string(unit));
        write_message(field, &m);
}

/* ---- mappings ---- */

static uint64_t hexadecimal(const char **text)
{
        uint64_t n = 0;

        for (;; ++*text) {
                char c = **text;

                if (c >= '0' && c <= '9')
                        n = n << 4 | (uint64_t)(c - '0');
                else if (c >= 'a' && c <= 'f')
                        n = n << 4 | (uint64_t)(c - 'a' + 10);
                else
                        return n;
        }
}

static const char *next_word(const char *text)
{
        while (*text && *text != ' ')
                text++;
        while (*text == ' ')
                text++;
        return text;
}

/* A line of /proc/self/maps: START-END PERMISSIONS OFFSET DEVICE INODE FILE */
static bool write_mapping(const char *line, void *data)
{
        struct message m = { .bytes = 0 };
        uint64_t start = hexadecimal(&line), end = (line++, hexadecimal(&line)), offset;
        const char *permissions = next_word(line), *file = next_word(permissions);
        bool executable = strnlen(permissions, 4) == 4 && permissions[2] == 'x';

        (void)data;
        offset = hexadecimal(&file);
        file = next_word(next_word(next_word(file)));
        if (!*file || (!executable && (offset || *file != '/')))
                return false;
        if (writer.mapping_count == MAPPINGS_MAX)
                return true;
        writer.mappings[writer.mapping_count].start = start;
        writer.mappings[writer.mapping_count].end = end;
        put_field(&m, MAPPING_ID, ++writer.mapping_count);
        put_field(&m, MAPPING_START, start);
        put_field(&m, MAPPING_LIMIT, end);
        put_field(&m, MAPPING_OFFSET, offset);
        put_field(&m, MAPPING_FILE, write_string(file));
        write_message(PROFILE_MAPPING, &m);
        return false;
}

/* 0: none. */
static uint64_t mapping_of(uintptr_t address)
{
        for (size_t i = 0; i < writer.mapping_count; i++)
                if (address - writer.mappings[i].start <
                    writer.mappings[i].end - writer.mappings[i].start)
                        return i + 1;
        return 0;
}

/* ---- locations ---- */

static void count_frames(const struct stook_profile_bucket *bucket, void *data)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];

        (void)data;
        writer.frames += stook_stack_frames(bucket->stack, frames, STOOK_STACK_FRAMES_MOST);
}

/* A table of twice as many places as there are frames, and as may come meanwhile. */
static bool make_location_table(void)
{
        size_t room = 4096;
        void *memory;

        writer.frames = 0;
        stook_profile_for_each(count_frames, NULL);
        while (room < 2 * writer.frames + 1024)
                room *= 2;
        if (room <= writer.location_room) {
                memset(writer.locations, 0, writer.location_room * sizeof *writer.locations);
                return true;
        }
        memory = stook_os_zeroed(room * sizeof *writer.locations);
        if (!memory)
                return false;
        writer.locations = memory;
        writer.location_room = room;
        return true;
}

static void write_location(uintptr_t address)
{
        struct message m = { .bytes = 0 };
        uint64_t mapping = mapping_of(address);

        put_field(&m, LOCATION_ID, address);
        if (mapping)
                put_field(&m, LOCATION_MAPPING, mapping);
        put_field(&m, LOCATION_ADDRESS, address);
        write_message(PROFILE_LOCATION, &m);
}

/* Unless it is there already. False: the table is full. */
static bool need_location(uintptr_t address)
{
        size_t mask = writer.location_room - 1;
        size_t i = (address * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & mask;

        for (size_t tries = 0; tries < writer.location_room / 2; tries++, i = (i + 1) & mask) {
                if (writer.locations[i] == address)
                        return true;
                if (writer.locations[i])
                        continue;
                writer.locations[i] = address;
                write_location(address);
                return true;
        }
        return false;
}

/* A location that has a name instead of an address. */
static void write_named_location(uint64_t id, const char *name)
{
        struct message function = { .bytes = 0 }, line = { .bytes = 0 }, location = { .bytes = 0 };

        put_field(&function, FUNCTION_ID, id);
        put_field(&function, FUNCTION_NAME, write_string(name));
        write_message(PROFILE_FUNCTION, &function);
        put_field(&line, LINE_FUNCTION, id);
        put_field(&location, LOCATION_ID, id);
        put_message(&location, LOCATION_LINE, &line);
        write_message(PROFILE_LOCATION, &location);
}

/* ---- samples ---- */

/* The sums are in parts. Their atomic words are read one by one: the later ones may be newer. */
static uint64_t whole(const uint64_t *parts, const uint64_t *less)
{
        uint64_t taken_off = less ? __atomic_load_n(less, __ATOMIC_RELAXED) : 0;
        uint64_t sum = __atomic_load_n(parts, __ATOMIC_RELAXED);

        sum = sum > taken_off ? sum - taken_off : 0;
        return (sum + (1 << STOOK_PROFILE_PART_BITS) / 2) >> STOOK_PROFILE_PART_BITS;
}

/* Calls begin one byte before the return address, at the latest. */
static void put_stack(struct message *sample, uint32_t stack)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];
        unsigned count = stook_stack_frames(stack, frames, STOOK_STACK_FRAMES_MOST);
        struct message locations = { .bytes = 0 };

        for (unsigned i = 0; i < count; i++)
                if (need_location(frames[i] - 1))
                        put_number(&locations, frames[i] - 1);
        if (count == STOOK_STACK_FRAMES_MOST)
                put_number(&locations, OUTER);
        if (!locations.bytes)
                put_number(&locations, UNKNOWN);
        put_message(sample, SAMPLE_LOCATION, &locations);
}

static void write_sample(const struct stook_profile_bucket *bucket, void *data)
{
        struct message sample = { .bytes = 0 }, values = { .bytes = 0 };

        (void)data;
        if (!whole(&bucket->allocated.objects, NULL))
                return;
        put_stack(&sample, bucket->stack);
        put_number(&values, whole(&bucket->allocated.objects, NULL));
        put_number(&values, whole(&bucket->allocated.bytes, NULL));
        put_number(&values, whole(&bucket->allocated.objects, &bucket->freed.objects));
        put_number(&values, whole(&bucket->allocated.bytes, &bucket->freed.bytes));
        put_message(&sample, SAMPLE_VALUE, &values);
        write_message(PROFILE_SAMPLE, &sample);
}

static void write_lost(void)
{
        char text[100];

        if (!stook_profile_lost())
                return;
        stook_report_format(text, sizeof text, "%u samples found no room and are not in use here",
                            stook_profile_lost());
        write_number(PROFILE_COMMENT, write_string(text));
}

static void write_profile(void)
{
        writer.strings = 0;
        writer.mapping_count = 0;
        write_string("");
        write_type(PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
        write_type(PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
        write_type(PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
        write_type(PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
        write_number(PROFILE_DEFAULT_TYPE, writer.strings - 2);
        write_type(PROFILE_PERIOD_TYPE, "space", "bytes");
        write_number(PROFILE_PERIOD, stook_profile_interval());
        write_number(PROFILE_TIME, stook_os_real_ns());
        stook_file_each_line("/proc/self/maps", write_mapping, NULL);
        write_named_location(UNKNOWN, "[no stack]");
        write_named_location(OUTER, "[outer calls]");
        stook_profile_for_each(write_sample, NULL);
        write_lost();
}

int stook_profile_write_to(const char *path)
{
        uint32_t self = stook_process_id(), other = __atomic_load_n(&writer.busy, __ATOMIC_RELAXED);
        int error;

        /* The writer's thread of a process that forked is not in its child. */
        if (other == self || !__atomic_compare_exchange_n(&writer.busy, &other, self, false,
                                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                return -EBUSY;
        error = stook_output_begin(&writer.out, path);
        if (!error) {
                bool room = make_location_table();

                if (room)
                        write_profile();
                error = stook_output_end(&writer.out, room);
                if (!room)
                        error = -ENOMEM;
        }
        __atomic_store_n(&writer.busy, 0, __ATOMIC_RELEASE);
        return error;
}
