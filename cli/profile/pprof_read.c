/*
 * Purpose: see pprof_read.h. A message is a row of fields: a number (field << 3 | kind), and what
 * the kind says: 0 a number, 1 eight bytes, 2 a number of bytes and the bytes, 5 four bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/files/file_kind.h"
#include "cli/files/packed.h"
#include "cli/profile/pprof_read.h"

#define FILE_MOST ((off_t)1 << 30)

struct part {
        const unsigned char *at, *end;
};

struct field {
        unsigned    number;
        bool        is_number;
        uint64_t    value;
        struct part bytes;              /* if it is none */
};

/* ---- the encoding ---- */

static bool take_number(struct part *m, uint64_t *number)
{
        uint64_t n = 0;

        for (unsigned shift = 0; shift < 64 && m->at < m->end; shift += 7) {
                unsigned char byte = *m->at++;

                n |= (uint64_t)(byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *number = n;
                        return true;
                }
        }
        return false;
}

static bool take_bytes(struct part *m, uint64_t n, struct part *bytes)
{
        if (n > (size_t)(m->end - m->at))
                return false;
        *bytes = (struct part){ m->at, m->at + n };
        m->at += n;
        return true;
}

/* 1; 0: the end; -1: no message. */
static int take_field(struct part *m, struct field *f)
{
        uint64_t tag, n = 0;
        bool good;

        if (m->at == m->end)
                return 0;
        if (!take_number(m, &tag) || tag >> 3 > 1000)
                return -1;
        *f = (struct field){ .number = (unsigned)(tag >> 3), .is_number = !(tag & 7) };
        switch (tag & 7) {
        case 0:
                good = take_number(m, &f->value);
                break;
        case 1:
                good = take_bytes(m, 8, &f->bytes);
                break;
        case 2:
                good = take_number(m, &n) && take_bytes(m, n, &f->bytes);
                break;
        case 5:
                good = take_bytes(m, 4, &f->bytes);
                break;
        default:
                good = false;
        }
        return good ? 1 : -1;
}

/* The numbers of fields 0 to @count - 1 of a message, as far as they are numbers. */
static bool take_numbers(struct part m, uint64_t *numbers, unsigned count)
{
        struct field f;
        int got;

        memset(numbers, 0, count * sizeof *numbers);
        while ((got = take_field(&m, &f)) > 0)
                if (f.is_number && f.number < count)
                        numbers[f.number] = f.value;
        return !got;
}

/* One more item of @bytes at the end of an array. NULL: no memory. */
static void *one_more(void *array, size_t *count, size_t bytes)
{
        size_t n = *count;

        if (!(n & (n - 1))) {
                void *more = realloc(*(void **)array, (n ? 2 * n : 1) * bytes);

                if (!more)
                        return NULL;
                *(void **)array = more;
        }
        ++*count;
        return memset(*(char **)array + n * bytes, 0, bytes);
}

/* ---- the fields of Profile ---- */

static bool read_type(struct pprof *p, struct part m)
{
        uint64_t n[3];

        if (p->type_count == PPROF_VALUES_MAX || !take_numbers(m, n, 3))
                return false;
        p->types[p->type_count] = n[VALUE_TYPE];
        p->units[p->type_count++] = n[VALUE_UNIT];
        return true;
}

/* A structure of Stook's. Of another size it is another version's, and is left out. */
static bool take_structure(const struct field *f, void *to, size_t bytes)
{
        if (f->is_number || (size_t)(f->bytes.end - f->bytes.at) != bytes)
                return false;
        memcpy(to, f->bytes.at, bytes);
        return true;
}

/* Calls @each for each number of a field, packed or by itself. */
static bool take_list(struct field *f, bool (*each)(uint64_t number, void *data), void *data)
{
        uint64_t n;

        if (f->is_number)
                return each(f->value, data);
        while (f->bytes.at < f->bytes.end)
                if (!take_number(&f->bytes, &n) || !each(n, data))
                        return false;
        return true;
}

struct adding {
        struct pprof        *p;
        struct pprof_stack  *stack;
        struct pprof_sample *sample;
        size_t               values;
};

static bool add_to_stack(uint64_t id, void *data)
{
        struct adding *a = data;

        return pprof_add_to_stack(a->p, a->stack, id);
}

static bool add_value(uint64_t value, void *data)
{
        struct adding *a = data;

        if (a->values < PPROF_VALUES_MAX)
                a->sample->values[a->values++] = (int64_t)value;
        return true;
}

static bool read_sample(struct pprof *p, struct part m)
{
        struct pprof_sample *sample = pprof_add_sample(p);
        struct adding adding = { .p = p, .stack = sample ? &sample->stack : NULL,
                                 .sample = sample };
        struct field f;
        int got;

        if (!sample)
                return false;
        while ((got = take_field(&m, &f)) > 0) {
                bool good = true;

                if (f.number == SAMPLE_LOCATION)
                        good = take_list(&f, add_to_stack, &adding);
                else if (f.number == SAMPLE_VALUE)
                        good = take_list(&f, add_value, &adding);
                else if (f.number == SAMPLE_STOOK)
                        sample->has_more = take_structure(&f, &sample->more, sizeof sample->more);
                if (!good)
                        return false;
        }
        return !got;
}

static bool read_pair(struct pprof *p, struct part m)
{
        struct pprof_pair *pair = pprof_add_pair(p);
        struct adding adding = { .p = p };
        struct field f;
        int got;

        if (!pair)
                return false;
        while ((got = take_field(&m, &f)) > 0) {
                adding.stack = f.number == PAIR_BORN ? &pair->born : &pair->died;
                if (f.number == PAIR_VALUES)
                        take_structure(&f, &pair->values, sizeof pair->values);
                else if ((f.number == PAIR_BORN || f.number == PAIR_DIED) &&
                         !take_list(&f, add_to_stack, &adding))
                        return false;
        }
        return !got;
}

static bool read_mapping(struct pprof *p, struct part m)
{
        struct pprof_mapping *mapping = pprof_add_mapping(p);
        uint64_t n[7];

        if (!mapping || !take_numbers(m, n, 7))
                return false;
        *mapping = (struct pprof_mapping){ .id = n[MAPPING_ID], .start = n[MAPPING_START],
                                           .end = n[MAPPING_LIMIT], .offset = n[MAPPING_OFFSET],
                                           .file = n[MAPPING_FILE], .build = n[MAPPING_BUILD] };
        return true;
}

static bool read_location(struct pprof *p, struct part m)
{
        struct pprof_location *location = pprof_add_location(p);
        uint64_t n[3];
        struct field f;
        int got;

        if (!location)
                return false;
        location->first = p->line_count;
        while ((got = take_field(&m, &f)) > 0) {
                if (f.is_number && f.number == LOCATION_ID) {
                        location->id = f.value;
                } else if (f.is_number && f.number == LOCATION_MAPPING) {
                        location->mapping = f.value;
                } else if (f.is_number && f.number == LOCATION_ADDRESS) {
                        location->address = f.value;
                } else if (f.is_number && f.number == LOCATION_OWNER) {
                        location->owner = (uint32_t)f.value;
                } else if (f.is_number && f.number == LOCATION_HEADERS) {
                        location->headers = (uint32_t)f.value;
                } else if (!f.is_number && f.number == LOCATION_LINE) {
                        struct pprof_line *line = pprof_add_line(p);

                        if (!line || !take_numbers(f.bytes, n, 3))
                                return false;
                        *line = (struct pprof_line){ n[LINE_FUNCTION], n[LINE_NUMBER] };
                        location->count++;
                }
        }
        return !got;
}

static bool read_function(struct pprof *p, struct part m)
{
        struct pprof_function *function = pprof_add_function(p);
        uint64_t n[5];

        if (!function || !take_numbers(m, n, 5))
                return false;
        *function = (struct pprof_function){ n[FUNCTION_ID], n[FUNCTION_NAME], n[FUNCTION_FILE] };
        return true;
}

static bool read_string(struct pprof *p, struct part bytes)
{
        char **string = one_more(&p->strings, &p->string_count, sizeof *string);

        if (!string)
                return false;
        *string = strndup((const char *)bytes.at, (size_t)(bytes.end - bytes.at));
        return *string;
}

static bool read_field(struct pprof *p, const struct field *f)
{
        if (f->is_number) {
                if (f->number == PROFILE_PERIOD)
                        p->period = f->value;
                else if (f->number == PROFILE_TIME)
                        p->time_ns = f->value;
                else if (f->number == PROFILE_DURATION)
                        p->duration_ns = f->value;
                return true;
        }
        switch (f->number) {
        case PROFILE_SAMPLE_TYPE:
                return read_type(p, f->bytes);
        case PROFILE_SAMPLE:
                return read_sample(p, f->bytes);
        case PROFILE_MAPPING:
                return read_mapping(p, f->bytes);
        case PROFILE_LOCATION:
                return read_location(p, f->bytes);
        case PROFILE_FUNCTION:
                return read_function(p, f->bytes);
        case PROFILE_STRING:
                return read_string(p, f->bytes);
        case PROFILE_SESSION:
                p->has_session = take_structure(f, &p->session, sizeof p->session) &&
                                 p->session.version == STOOK_PROFILE_FILE_VERSION;
                return true;
        case PROFILE_PAIR:
                return read_pair(p, f->bytes);
        default:
                return true;
        }
}

/* ---- to make one ---- */

#define ADD(what, items, count) \
        struct pprof_##what *pprof_add_##what(struct pprof *p) \
        { \
                return one_more(&p->items, &p->count, sizeof *p->items); \
        }
ADD(sample, samples, sample_count)
ADD(pair, pairs, pair_count)
ADD(mapping, mappings, mapping_count)
ADD(location, locations, location_count)
ADD(function, functions, function_count)
ADD(line, lines, line_count)

bool pprof_add_to_stack(struct pprof *p, struct pprof_stack *stack, uint64_t location)
{
        uint64_t *last;

        if (!stack->count)
                stack->first = p->stack_count;
        last = one_more(&p->stacks, &p->stack_count, sizeof *last);
        if (!last)
                return false;
        *last = location;
        stack->count++;
        return stack->first + stack->count == p->stack_count;
}

uint64_t pprof_add_string(struct pprof *p, const char *text)
{
        char **string;

        if (!p->string_count && !(string = one_more(&p->strings, &p->string_count, sizeof *string)))
                return 0;
        if (!p->strings[0])
                p->strings[0] = strdup("");
        if (!*text)
                return 0;
        string = one_more(&p->strings, &p->string_count, sizeof *string);
        if (!string || !(*string = strdup(text)))
                return 0;
        return p->string_count - 1;
}

bool pprof_add_types(struct pprof *p)
{
        static const char *const types[] = STOOK_PROFILE_FILE_TYPES;

        for (p->type_count = 0; p->type_count < 2 * STOOK_PROFILE_KINDS; p->type_count++) {
                size_t i = p->type_count;

                p->types[i] = pprof_add_string(p, types[i]);
                p->units[i] = pprof_add_string(p, i % 2 ? "bytes" : "count");
                if (!p->types[i] || !p->units[i])
                        return false;
        }
        return true;
}

static int by_id(const void *a, const void *b)
{
        const struct pprof_location *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

static int function_by_id(const void *a, const void *b)
{
        const struct pprof_function *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

void pprof_sort(struct pprof *p)
{
        if (p->location_count)
                qsort(p->locations, p->location_count, sizeof *p->locations, by_id);
        if (p->function_count)
                qsort(p->functions, p->function_count, sizeof *p->functions, function_by_id);
}

/* ---- the file ---- */

static const char *parse(struct pprof *p, const unsigned char *bytes, size_t n)
{
        struct part m = { bytes, bytes + n };
        const char *fault = n ? NULL : "empty: no heap profile";
        struct field f;
        int got = 0;

        while (!fault && (got = take_field(&m, &f)) > 0)
                if (!read_field(p, &f))
                        fault = "damaged, or no heap profile";
        if (!fault && (got < 0 || !p->type_count))
                fault = "damaged, or no heap profile";
        if (!fault)
                pprof_sort(p);
        return fault;
}

static unsigned char *read_all(int fd, size_t *bytes)
{
        struct stat st;
        unsigned char *text;
        size_t got = 0;

        if (fstat(fd, &st))
                return NULL;
        errno = S_ISREG(st.st_mode) ? EFBIG : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        if (!S_ISREG(st.st_mode) || st.st_size > FILE_MOST)
                return NULL;
        text = malloc((size_t)st.st_size + 1);
        while (text && got < (size_t)st.st_size) {
                ssize_t n = read(fd, text + got, (size_t)st.st_size - got);

                if (n <= 0)
                        break;
                got += (size_t)n;
        }
        *bytes = got;
        return text;
}

/* What a program unpacks, at most FILE_MOST bytes. NULL: errno. */
static unsigned char *read_unpacked(FILE *in, size_t *bytes)
{
        size_t room = 1 << 16;
        unsigned char *text = malloc(room), *more;

        *bytes = 0;
        while (text && !feof(in) && !ferror(in)) {
                *bytes += fread(text + *bytes, 1, room - *bytes, in);
                if (*bytes < room)
                        continue;
                errno = EFBIG;
                more = room < FILE_MOST ? realloc(text, room *= 2) : NULL;
                if (!more)
                        free(text);
                text = more;
        }
        return text;
}

/* pprof's files are packed by gzip as a rule; ours are not. */
static unsigned char *unpack(const char *path, size_t *n, char *message, size_t bytes)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        pid_t pid;
        FILE *in = fd < 0 ? NULL : packed_open("gzip", fd, &pid);
        unsigned char *text = in ? read_unpacked(in, n) : NULL;

        if (!text)
                snprintf(message, bytes, "%s: %s", path, strerror(errno));
        if (in && !packed_close(in, pid, "gzip", path, text ? message : NULL, bytes)) {
                free(text);
                text = NULL;
        }
        return text;
}

static bool is_packed(const unsigned char *text, size_t n)
{
        const char *program = packed_by((const char *)text, n);

        return program && !strcmp(program, "gzip");
}

bool pprof_read(struct pprof *p, const char *path, char *message, size_t bytes)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        unsigned char *text;
        const char *fault, *kind;
        size_t n = 0;

        memset(p, 0, sizeof *p);
        text = fd < 0 ? NULL : read_all(fd, &n);
        if (text && is_packed(text, n)) {
                free(text);
                close(fd);
                fd = -1;
                text = unpack(path, &n, message, bytes);
                if (!text)
                        return false;
        }
        fault = text            ? parse(p, text, n)
                : errno == EINVAL ? "not a regular file"
                                  : strerror(errno);
        kind = fault && n ? file_kind((const char *)text, n) : NULL;
        if (kind)
                snprintf(message, bytes, "%s: no heap profile, but %s", path, kind);
        else if (fault)
                snprintf(message, bytes, "%s: %s", path, fault);
        free(text);
        if (fd >= 0)
                close(fd);
        return !fault;
}

void pprof_release(struct pprof *p)
{
        for (size_t i = 0; i < p->string_count; i++)
                free(p->strings[i]);
        free(p->strings);
        free(p->samples);
        free(p->pairs);
        free(p->stacks);
        free(p->locations);
        free(p->lines);
        free(p->mappings);
        free(p->functions);
        memset(p, 0, sizeof *p);
}

const char *pprof_string(const struct pprof *p, uint64_t string)
{
        return string < p->string_count ? p->strings[string] : NULL;
}

const struct pprof_location *pprof_location(const struct pprof *p, uint64_t id)
{
        struct pprof_location key = { .id = id };

        return p->location_count ? bsearch(&key, p->locations, p->location_count,
                                           sizeof key, by_id) : NULL;
}

const struct pprof_function *pprof_function(const struct pprof *p, uint64_t id)
{
        struct pprof_function key = { .id = id };

        return p->function_count ? bsearch(&key, p->functions, p->function_count, sizeof key,
                                           function_by_id) : NULL;
}

const struct pprof_mapping *pprof_mapping(const struct pprof *p, const struct pprof_location *at)
{
        for (size_t i = 0; i < p->mapping_count; i++) {
                const struct pprof_mapping *m = &p->mappings[i];

                if (at->mapping ? m->id == at->mapping : at->address - m->start < m->end - m->start)
                        return m;
        }
        return NULL;
}

int pprof_kind(const struct pprof *p, int type)
{
        static const char *const types[] = STOOK_PROFILE_FILE_TYPES;
        const char *name = type < 0 ? NULL : pprof_string(p, p->types[type]);

        for (int i = 0; name && i < 2 * STOOK_PROFILE_KINDS; i++)
                if (!strcmp(name, types[i]))
                        return i / 2;
        return -1;
}

bool pprof_is_bytes(const struct pprof *p, int type)
{
        const char *unit = pprof_string(p, p->units[type]);

        return unit && !strcmp(unit, "bytes");
}

int pprof_type(const struct pprof *p, const char *name)
{
        for (size_t i = 0; i < p->type_count; i++) {
                const char *type = pprof_string(p, p->types[i]);

                if (type && !strcmp(type, name))
                        return (int)i;
        }
        return -1;
}
