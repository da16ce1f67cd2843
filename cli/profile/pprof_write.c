/*
 * Purpose: see pprof_write.h.
 * Functions are those of all locations; equal ones (name and file) have one number. A stack keeps
 * the library's frames: what reads it leaves them out by their mapping or names.
 */
#include "cli/profile/pprof_write.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/profile/profile_type.h"

/* ---- the encoding ---- */

/* A message that grows. */
struct message {
        unsigned char *text;
        size_t         bytes, room;
        bool           failed;
};

static void put_byte(struct message *m, unsigned char byte)
{
        if (m->bytes == m->room) {
                size_t room = m->room ? 2 * m->room : 256;
                unsigned char *more = realloc(m->text, room);

                if (!more) {
                        m->failed = true;
                        return;
                }
                m->text = more;
                m->room = room;
        }
        m->text[m->bytes++] = byte;
}

static void put_number(struct message *m, uint64_t number)
{
        for (; number >= 0x80; number >>= 7)
                put_byte(m, (unsigned char)(number | 0x80));
        put_byte(m, (unsigned char)number);
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
        for (size_t i = 0; i < n; i++)
                put_byte(m, ((const unsigned char *)bytes)[i]);
}

/* The part is empty then. */
static void put_message(struct message *m, unsigned field, struct message *part)
{
        put_bytes(m, field, part->text, part->bytes);
        m->failed |= part->failed;
        part->bytes = 0;
}

/* ---- strings and functions, each once ---- */

struct writer {
        struct profile_names *names;
        struct message all, part, inner;
        char   **strings;               /* by number */
        size_t   string_count;
        uint32_t *table;                /* of numbers + 1, by the hash of the string */
        size_t   room;                  /* a power of two */
        struct { uint64_t name, file; } *functions;
        size_t   function_count, function_room;
};

static uint64_t hash_of(const char *text)
{
        uint64_t hash = UINT64_C(14695981039346656037);

        while (*text)
                hash = (hash ^ (unsigned char)*text++) * UINT64_C(1099511628211);
        return hash ^ hash >> 29;
}

static bool grow(struct writer *w)
{
        size_t room = w->room ? 2 * w->room : 1024;
        uint32_t *table = calloc(room, sizeof *table);
        char **strings = realloc(w->strings, room * sizeof *strings);

        if (strings)
                w->strings = strings;
        if (!table || !strings) {
                free(table);
                w->all.failed = true;
                return false;
        }
        for (size_t n = 0; n < w->string_count; n++) {
                size_t i = hash_of(strings[n]) & (room - 1);

                while (table[i])
                        i = (i + 1) & (room - 1);
                table[i] = (uint32_t)n + 1;
        }
        free(w->table);
        w->table = table;
        w->room = room;
        return true;
}

static uint64_t string(struct writer *w, const char *text)
{
        size_t i;

        text = text ? text : "";
        if (2 * w->string_count >= w->room && !grow(w))
                return 0;
        for (i = hash_of(text) & (w->room - 1); w->table[i]; i = (i + 1) & (w->room - 1))
                if (!strcmp(w->strings[w->table[i] - 1], text))
                        return w->table[i] - 1;
        w->strings[w->string_count] = strdup(text);
        if (!w->strings[w->string_count]) {
                w->all.failed = true;
                return 0;
        }
        put_bytes(&w->all, PROFILE_STRING, text, strlen(text));
        w->table[i] = (uint32_t)++w->string_count;
        return w->string_count - 1;
}

/* Its number, from 1 on. */
static uint64_t function(struct writer *w, const struct profile_function *f)
{
        uint64_t name = string(w, f->name), file = string(w, f->file);

        for (size_t i = w->function_count; i > 0; i--)
                if (w->functions[i - 1].name == name && w->functions[i - 1].file == file)
                        return i;
        if (w->function_count == w->function_room) {
                size_t room = w->function_room ? 2 * w->function_room : 256;
                void *more = realloc(w->functions, room * sizeof *w->functions);

                if (!more) {
                        w->all.failed = true;
                        return 1;
                }
                w->functions = more;
                w->function_room = room;
        }
        w->functions[w->function_count].name = name;
        w->functions[w->function_count++].file = file;
        put_field(&w->inner, FUNCTION_ID, w->function_count);
        put_field(&w->inner, FUNCTION_NAME, name);
        put_field(&w->inner, FUNCTION_SYSTEM_NAME, name);
        put_field(&w->inner, FUNCTION_FILE, file);
        put_message(&w->all, PROFILE_FUNCTION, &w->inner);
        return w->function_count;
}

/* ---- the fields of Profile ---- */

static void put_type(struct writer *w, unsigned field, const char *type, const char *unit)
{
        uint64_t name = string(w, type);

        put_field(&w->part, VALUE_TYPE, name);
        put_field(&w->part, VALUE_UNIT, string(w, unit));
        put_message(&w->all, field, &w->part);
}

static void put_mapping(struct writer *w, const struct pprof_mapping *m)
{
        const struct pprof *p = w->names->profile;

        put_field(&w->part, MAPPING_ID, m->id);
        put_field(&w->part, MAPPING_START, m->start);
        put_field(&w->part, MAPPING_LIMIT, m->end);
        put_field(&w->part, MAPPING_OFFSET, m->offset);
        put_field(&w->part, MAPPING_FILE, string(w, pprof_string(p, m->file)));
        put_field(&w->part, MAPPING_BUILD, string(w, pprof_string(p, m->build)));
        /* So that no reader looks for names in files of its own. */
        put_field(&w->part, MAPPING_HAS_FUNCTIONS, 1);
        put_field(&w->part, MAPPING_HAS_FILES, 1);
        put_field(&w->part, MAPPING_HAS_LINES, 1);
        put_field(&w->part, MAPPING_HAS_INLINED, 1);
        put_message(&w->all, PROFILE_MAPPING, &w->part);
}

static void put_location(struct writer *w, const struct pprof_location *at)
{
        const struct profile_place *place = profile_names_at(w->names, at->id);
        const struct pprof_mapping *mapping = pprof_mapping(w->names->profile, at);

        put_field(&w->part, LOCATION_ID, at->id);
        if (mapping)
                put_field(&w->part, LOCATION_MAPPING, mapping->id);
        put_field(&w->part, LOCATION_ADDRESS, at->address);
        for (size_t i = 0; place && i < place->count; i++) {
                struct message line = { 0 };

                put_field(&line, LINE_FUNCTION, function(w, &place->functions[i]));
                put_field(&line, LINE_NUMBER, (uint64_t)place->functions[i].line);
                put_message(&w->part, LOCATION_LINE, &line);
                free(line.text);
        }
        if (place && place->owner != FRAMES_PROGRAM)
                put_field(&w->part, LOCATION_OWNER, place->owner);
        if (place && place->headers)
                put_field(&w->part, LOCATION_HEADERS, place->headers);
        put_message(&w->all, PROFILE_LOCATION, &w->part);
}

static void put_stack(struct writer *w, unsigned field, const struct pprof_stack *stack)
{
        for (size_t i = 0; i < stack->count; i++)
                put_number(&w->inner, w->names->profile->stacks[stack->first + i]);
        put_message(&w->part, field, &w->inner);
}

static void put_sample(struct writer *w, const struct pprof_sample *s)
{
        put_stack(w, SAMPLE_LOCATION, &s->stack);
        for (size_t i = 0; i < w->names->profile->type_count; i++)
                put_number(&w->inner, (uint64_t)s->values[i]);
        put_message(&w->part, SAMPLE_VALUE, &w->inner);
        if (s->life_ns) {
                uint64_t key = string(w, "lifetime_ns");

                put_field(&w->inner, LABEL_KEY, key);
                put_field(&w->inner, LABEL_NUMBER, s->life_ns);
                put_field(&w->inner, LABEL_UNIT, string(w, "nanoseconds"));
                put_message(&w->part, SAMPLE_LABEL, &w->inner);
        }
        if (s->has_more)
                put_bytes(&w->part, SAMPLE_STOOK, &s->more, sizeof s->more);
        put_message(&w->all, PROFILE_SAMPLE, &w->part);
}

static void put_pair(struct writer *w, const struct pprof_pair *pair)
{
        put_stack(w, PAIR_BORN, &pair->born);
        put_stack(w, PAIR_DIED, &pair->died);
        put_bytes(&w->part, PAIR_VALUES, &pair->values, sizeof pair->values);
        put_message(&w->all, PROFILE_PAIR, &w->part);
}

static void put_all(struct writer *w, int type)
{
        const struct pprof *p = w->names->profile;

        string(w, "");
        for (size_t i = 0; i < p->type_count; i++)
                put_type(w, PROFILE_SAMPLE_TYPE, pprof_string(p, p->types[i]),
                         pprof_string(p, p->units[i]));
        put_field(&w->all, PROFILE_DEFAULT_TYPE, string(w, pprof_string(p, p->types[type])));
        put_type(w, PROFILE_PERIOD_TYPE, "space", "bytes");
        put_field(&w->all, PROFILE_PERIOD, p->period);
        put_field(&w->all, PROFILE_TIME, p->time_ns);
        put_field(&w->all, PROFILE_DURATION, p->duration_ns);
        if (p->has_session)
                put_bytes(&w->all, PROFILE_SESSION, &p->session, sizeof p->session);
        for (size_t i = 0; i < p->mapping_count; i++)
                put_mapping(w, &p->mappings[i]);
        for (size_t i = 0; i < p->location_count; i++)
                put_location(w, &p->locations[i]);
        for (size_t i = 0; i < p->sample_count; i++)
                put_sample(w, &p->samples[i]);
        for (size_t i = 0; i < p->pair_count; i++)
                put_pair(w, &p->pairs[i]);
}

int pprof_write(struct profile_names *names, int type, FILE *out)
{
        struct writer w = { .names = names };
        int error = 0;

        put_all(&w, type);
        if (w.all.failed || names->no_memory)
                error = -ENOMEM;
        else if (fwrite(w.all.text, 1, w.all.bytes, out) != w.all.bytes || fflush(out))
                error = errno ? -errno : -EIO;
        for (size_t i = 0; i < w.string_count; i++)
                free(w.strings[i]);
        free(w.strings);
        free(w.table);
        free(w.functions);
        free(w.all.text);
        free(w.part.text);
        free(w.inner.text);
        return error;
}

/* ---- a file ---- */

static int replace(struct profile_names *names, const char *path)
{
        char temporary[PATH_MAX + 10];
        struct stat st;
        FILE *out;
        int fd, error;

        if (lstat(path, &st))
                return -errno;
        if (!S_ISREG(st.st_mode) ||
            snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= PATH_MAX)
                return -EINVAL;
        fd = mkstemp(temporary);
        if (fd < 0)
                return -errno;
        fchmod(fd, st.st_mode & 0777);
        out = fdopen(fd, "w");
        error = out ? pprof_write(names, profile_type_default(names->profile), out) : -errno;
        if (out ? fclose(out) : close(fd))
                error = error ? error : -errno;
        if (!error && rename(temporary, path))
                error = -errno;
        if (error)
                unlink(temporary);
        return error;
}

bool pprof_symbolize(const char *path, char *message, size_t bytes)
{
        struct profile_names names;
        struct pprof p;
        bool done = pprof_read(&p, path, message, bytes);
        int error;

        if (done) {
                error = profile_names_open(&names, &p) ? replace(&names, path) : -ENOMEM;
                if (error)
                        snprintf(message, bytes, "%s: %s", path, strerror(-error));
                done = !error;
                profile_names_close(&names);
        }
        pprof_release(&p);
        return done;
}
