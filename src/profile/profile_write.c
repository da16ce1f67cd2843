/*
 * Purpose: a heap profile as a file of pprof's format: the message Profile of its profile.proto, in
 * the encoding of protocol buffers, not compressed.
 *   sample_type   objects/count and space/bytes of alloc_, inuse_, peak_ and growth_
 *   sample        for each call stack; addresses are those of the calls, innermost first
 *   mapping       from /proc/self/maps: what is executable, and where each such file begins; and
 *                 files that were closed (stack_modules.c)
 *   location      its number is its address, and of a closed file its module, too; 1: the stack is
 *                 not known; 2: outer calls, left out
 * What pprof has no field for stands in fields that are not its own (profile_file.h), which readers
 * of the format skip.
 * Place: called by life, at the end of the process, on a signal, and for stook_profile_write().
 * Concurrency: one writer at a time, by a word that is only tried. The sums go on meanwhile.
 * Failure: -errno, and the file that was there before is as it was.
 */
#include <errno.h>
#include <string.h>

#include "os/os.h"
#include "process/process.h"
#include "profile/profile.h"
#include "profile/profile_file.h"
#include "report/report.h"
#include "stack/stack.h"

#define MAPPINGS_MAX  1024              /* more are left out: nearly no program has so many */
#define MESSAGE_BYTES 3200              /* of the longest: a pair of stacks */
#define UNKNOWN       1                 /* locations that are no addresses */
#define OUTER         2

struct message {
        size_t         bytes;
        unsigned char *text;            /* as much as its longest needs */
};
#define MESSAGE(name, most) \
        unsigned char name##_text[most]; struct message name = { 0, name##_text }
#define SMALL 320                       /* all but those below, and strings */

static struct {
        uint32_t busy;                  /* atomic: number of the process that writes; 0: none */
        uint64_t strings;               /* written so far */
        size_t   mapping_count;
        struct { uintptr_t start, end; } mappings[MAPPINGS_MAX];
        size_t   closed[STOOK_STACK_MODULES];         /* their mappings; 0: none */
        uint8_t  build[STOOK_STACK_BUILD_BYTES];      /* of the file that was mapped last */
        uint32_t build_bytes;
        unsigned char long_text[MESSAGE_BYTES], stack_text[MESSAGE_BYTES];
        uint64_t *locations;            /* a table of those that are written; 0: none */
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

static void put_bytes(struct message *m, unsigned field, const void *bytes, size_t n)
{
        put_number(m, field << 3 | 2);
        put_number(m, n);
        memcpy(m->text + m->bytes, bytes, n);
        m->bytes += n;
}

static void put_message(struct message *m, unsigned field, const struct message *part)
{
        put_bytes(m, field, part->text, part->bytes);
}

/* A field of Profile. */
static void write_number(unsigned field, uint64_t number)
{
        MESSAGE(m, SMALL);

        put_field(&m, field, number);
        stook_output_put(&writer.out, m.text, m.bytes);
}

static void write_bytes(unsigned field, const void *bytes, size_t n)
{
        MESSAGE(head, SMALL);

        put_number(&head, field << 3 | 2);
        put_number(&head, n);
        stook_output_put(&writer.out, head.text, head.bytes);
        stook_output_put(&writer.out, bytes, n);
}

static void write_message(unsigned field, const struct message *part)
{
        write_bytes(field, part->text, part->bytes);
}

/* Returns its number. */
static uint64_t write_string(const char *text)
{
        write_bytes(PROFILE_STRING, text, strlen(text));
        return writer.strings++;
}

static void write_type(unsigned field, const char *type, const char *unit)
{
        MESSAGE(m, SMALL);
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

/* Returns its number; 0: there is no room. */
static size_t add_mapping(uintptr_t start, uintptr_t end, uint64_t offset, const char *file,
                          const uint8_t *build, uint32_t build_bytes)
{
        static const char digits[] = "0123456789abcdef";
        char text[2 * STOOK_STACK_BUILD_BYTES + 1];
        MESSAGE(m, SMALL);

        if (writer.mapping_count == MAPPINGS_MAX)
                return 0;
        for (uint32_t i = 0; i < build_bytes; i++) {
                text[2 * i] = digits[build[i] >> 4];
                text[2 * i + 1] = digits[build[i] & 15];
        }
        text[2 * build_bytes] = '\0';
        writer.mappings[writer.mapping_count].start = start;
        writer.mappings[writer.mapping_count].end = end;
        put_field(&m, MAPPING_ID, ++writer.mapping_count);
        put_field(&m, MAPPING_START, start);
        put_field(&m, MAPPING_LIMIT, end);
        put_field(&m, MAPPING_OFFSET, offset);
        put_field(&m, MAPPING_FILE, write_string(file));
        if (build_bytes)
                put_field(&m, MAPPING_BUILD, write_string(text));
        write_message(PROFILE_MAPPING, &m);
        return writer.mapping_count;
}

/* A line of /proc/self/maps: START-END PERMISSIONS OFFSET DEVICE INODE FILE */
static bool write_mapping(const char *line, void *data)
{
        uint64_t start = hexadecimal(&line), end = (line++, hexadecimal(&line)), offset;
        const char *permissions = next_word(line), *file = next_word(permissions);
        bool executable = strnlen(permissions, 4) == 4 && permissions[2] == 'x';

        (void)data;
        offset = hexadecimal(&file);
        file = next_word(next_word(next_word(file)));
        if (!*file || (!executable && (offset || *file != '/')))
                return false;
        /* The id of what is mapped from a file's beginning on goes for its other mappings. */
        if (!offset && *file == '/')
                writer.build_bytes = stook_stack_build_id(start, false, writer.build);
        else if (!offset || *file != '/')
                writer.build_bytes = 0;
        return !add_mapping(start, end, offset, file, writer.build, writer.build_bytes);
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

/* Of a file that was closed. */
static uint64_t closed_mapping(unsigned module)
{
        const struct stook_stack_module *m = &stook_stack_modules[module];
        size_t number = writer.closed[module];

        if (!number) {
                number = add_mapping(m->start, m->end, 0, m->file, m->build, m->build_bytes);
                writer.closed[module] = number;
                /* No other address is found there. */
                if (number)
                        writer.mappings[number - 1].end = writer.mappings[number - 1].start;
        }
        return number;
}

/* ---- locations ---- */

static void count_frames(const struct stook_profile_bucket *bucket, void *data)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];

        (void)data;
        writer.frames += stook_stack_frames(bucket->stack, frames, STOOK_STACK_FRAMES_MOST);
}

static void count_frames_of_pair(const struct stook_profile_pair *pair, void *data)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];

        (void)data;
        writer.frames += stook_stack_frames(pair->died, frames, STOOK_STACK_FRAMES_MOST);
}

/* A table of twice as many places as there are frames, and as may come meanwhile. */
static bool make_location_table(void)
{
        size_t room = 4096;
        void *memory;

        writer.frames = 0;
        stook_profile_for_each(count_frames, NULL);
        stook_profile_for_each_pair(count_frames_of_pair, NULL);
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

/* @module: a closed one, or -1. */
static uint64_t location_of(uintptr_t address, int module)
{
        return module < 0 ? address : address ^ (uint64_t)(module + 1) << 48;
}

static void write_location(uintptr_t address, int module)
{
        MESSAGE(m, SMALL);
        uint64_t mapping = module < 0 ? mapping_of(address) : closed_mapping((unsigned)module);

        put_field(&m, LOCATION_ID, location_of(address, module));
        if (mapping)
                put_field(&m, LOCATION_MAPPING, mapping);
        put_field(&m, LOCATION_ADDRESS, address);
        write_message(PROFILE_LOCATION, &m);
}

/* Unless it is there already. False: the table is full. */
static bool need_location(uintptr_t address, int module)
{
        uint64_t id = location_of(address, module);
        size_t mask = writer.location_room - 1;
        size_t i = (id * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & mask;

        for (size_t tries = 0; tries < writer.location_room / 2; tries++, i = (i + 1) & mask) {
                if (writer.locations[i] == id)
                        return true;
                if (writer.locations[i])
                        continue;
                writer.locations[i] = id;
                write_location(address, module);
                return true;
        }
        return false;
}

/* A location that has a name instead of an address. */
static void write_named_location(uint64_t id, const char *name)
{
        MESSAGE(function, SMALL);
        MESSAGE(line, SMALL);
        MESSAGE(location, SMALL);

        put_field(&function, FUNCTION_ID, id);
        put_field(&function, FUNCTION_NAME, write_string(name));
        write_message(PROFILE_FUNCTION, &function);
        put_field(&line, LINE_FUNCTION, id);
        put_field(&location, LOCATION_ID, id);
        put_message(&location, LOCATION_LINE, &line);
        write_message(PROFILE_LOCATION, &location);
}

/* ---- samples ---- */

/* Calls begin one byte before the return address, at the latest. */
static void put_stack(struct message *sample, unsigned field, uint32_t stack)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];
        unsigned count = stook_stack_frames(stack, frames, STOOK_STACK_FRAMES_MOST);
        struct message locations = { 0, writer.stack_text };

        for (unsigned i = 0; i < count; i++) {
                uintptr_t call = frames[i] - 1;
                int module = stook_stack_closed_module(stack, call);

                if (need_location(call, module))
                        put_number(&locations, location_of(call, module));
        }
        if (count == STOOK_STACK_FRAMES_MOST)
                put_number(&locations, OUTER);
        if (!locations.bytes)
                put_number(&locations, UNKNOWN);
        put_message(sample, field, &locations);
}

/* Others change these words meanwhile, each by itself. */
static void copy_words(void *to, const void *from, size_t bytes)
{
        for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
                ((uint64_t *)to)[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

static void write_sample(const struct stook_profile_bucket *bucket, void *data)
{
        struct stook_profile_value v[STOOK_PROFILE_KINDS];
        struct message sample = { 0, writer.long_text };
        struct stook_profile_file_sample more;
        MESSAGE(values, SMALL);

        (void)data;
        stook_profile_values(&stook_profile, bucket, v);
        if (!v[STOOK_PROFILE_ALLOC].objects)
                return;
        put_stack(&sample, SAMPLE_LOCATION, bucket->stack);
        for (unsigned i = 0; i < STOOK_PROFILE_KINDS; i++) {
                put_number(&values, (uint64_t)v[i].objects);
                put_number(&values, (uint64_t)v[i].bytes);
                more.values[i].samples = v[i].samples;
                more.values[i].objects_variance = v[i].objects_variance;
                more.values[i].bytes_variance = v[i].bytes_variance;
        }
        copy_words(&more.windows, &bucket->windows, sizeof more.windows);
        put_message(&sample, SAMPLE_VALUE, &values);
        put_bytes(&sample, SAMPLE_STOOK, &more, sizeof more);
        write_message(PROFILE_SAMPLE, &sample);
}

static void write_pair(const struct stook_profile_pair *p, void *data)
{
        struct message pair = { 0, writer.long_text };
        struct stook_profile_file_pair more;

        (void)data;
        copy_words(&more, &p->samples, sizeof more);
        put_stack(&pair, PAIR_BORN, p->born);
        put_stack(&pair, PAIR_DIED, p->died);
        put_bytes(&pair, PAIR_VALUES, &more, sizeof more);
        write_message(PROFILE_PAIR, &pair);
}

static void write_session(uint64_t now)
{
        struct stook_profile_state s;
        struct stook_profile_file_session session;

        copy_words(&s, &stook_profile, sizeof s);
        session = (struct stook_profile_file_session){
                .version = STOOK_PROFILE_FILE_VERSION, .process = stook_process_id(),
                .ns = now - s.started,
                .peak_ns = s.peak_number ? s.peak_at - s.started : 0,
                .mark_ns = s.mark_number ? s.mark_at - s.started : 0,
                .lost = s.lost, .pairs_lost = s.pairs_lost, .lifetimes = s.lifetimes,
        };

        write_bytes(PROFILE_SESSION, &session, sizeof session);
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
        static const char *const types[] = STOOK_PROFILE_FILE_TYPES;
        uint64_t now = stook_os_clock_ns(), ns = stook_os_real_ns();

        writer.strings = 0;
        writer.mapping_count = 0;
        writer.build_bytes = 0;
        memset(writer.closed, 0, sizeof writer.closed);
        write_string("");
        for (unsigned i = 0; i < 2 * STOOK_PROFILE_KINDS; i++) {
                write_type(PROFILE_SAMPLE_TYPE, types[i], i % 2 ? "bytes" : "count");
                if (!strcmp(types[i], STOOK_PROFILE_FILE_DEFAULT))
                        write_number(PROFILE_DEFAULT_TYPE, writer.strings - 2);
        }
        write_type(PROFILE_PERIOD_TYPE, "space", "bytes");
        write_number(PROFILE_PERIOD, stook_profile_interval());
        write_number(PROFILE_TIME, ns);
        write_number(PROFILE_DURATION, now - stook_profile.started);
        write_session(now);
        stook_file_each_line("/proc/self/maps", write_mapping, NULL);
        write_named_location(UNKNOWN, "[no stack]");
        write_named_location(OUTER, "[outer calls]");
        stook_profile_for_each(write_sample, NULL);
        stook_profile_for_each_pair(write_pair, NULL);
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
