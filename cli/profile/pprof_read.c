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
        p->types[p->type_count] = n[1];
        p->units[p->type_count++] = n[2];
        return true;
}

static bool add_stack(struct pprof *p, struct pprof_sample *sample, uint64_t id)
{
        uint64_t *last = one_more(&p->stacks, &p->stack_count, sizeof *last);

        if (!last)
                return false;
        *last = id;
        sample->count++;
        return true;
}

/* Locations (1) and values (2), packed or each a field of its own. */
static bool read_sample(struct pprof *p, struct part m)
{
        struct pprof_sample *sample = one_more(&p->samples, &p->sample_count, sizeof *sample);
        size_t values = 0;
        struct field f;
        int got;

        if (!sample)
                return false;
        sample->first = p->stack_count;
        while ((got = take_field(&m, &f)) > 0) {
                bool more = true;

                if (f.number != 1 && f.number != 2)
                        continue;
                while (more) {
                        uint64_t n = f.value;

                        if (!f.is_number && f.bytes.at == f.bytes.end)
                                break;
                        if (!f.is_number && !take_number(&f.bytes, &n))
                                return false;
                        if (f.number == 1 && !add_stack(p, sample, n))
                                return false;
                        if (f.number == 2 && values < PPROF_VALUES_MAX)
                                sample->values[values++] = n;
                        more = !f.is_number;
                }
        }
        return !got;
}

static bool read_mapping(struct pprof *p, struct part m)
{
        struct pprof_mapping *mapping = one_more(&p->mappings, &p->mapping_count, sizeof *mapping);
        uint64_t n[6];

        if (!mapping || !take_numbers(m, n, 6))
                return false;
        *mapping = (struct pprof_mapping){ .start = n[2], .end = n[3], .offset = n[4],
                                           .file = n[5] };
        return true;
}

static bool read_location(struct pprof *p, struct part m)
{
        struct pprof_location *location = one_more(&p->locations, &p->location_count,
                                                   sizeof *location);
        uint64_t line[2];
        struct field f;
        int got;

        if (!location)
                return false;
        while ((got = take_field(&m, &f)) > 0) {
                if (f.is_number && f.number == 1)
                        location->id = f.value;
                else if (f.is_number && f.number == 3)
                        location->address = f.value;
                else if (!f.is_number && f.number == 4 && !location->function) {
                        if (!take_numbers(f.bytes, line, 2))
                                return false;
                        location->function = line[1];
                }
        }
        return !got;
}

static bool read_function(struct pprof *p, struct part m)
{
        struct pprof_function *function = one_more(&p->functions, &p->function_count,
                                                   sizeof *function);
        uint64_t n[3];

        if (!function || !take_numbers(m, n, 3))
                return false;
        *function = (struct pprof_function){ n[1], n[2] };
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
                if (f->number == 12)
                        p->period = f->value;
                return true;
        }
        switch (f->number) {
        case 1:
                return read_type(p, f->bytes);
        case 2:
                return read_sample(p, f->bytes);
        case 3:
                return read_mapping(p, f->bytes);
        case 4:
                return read_location(p, f->bytes);
        case 5:
                return read_function(p, f->bytes);
        case 6:
                return read_string(p, f->bytes);
        default:
                return true;
        }
}

/* ---- the file ---- */

static int by_id(const void *a, const void *b)
{
        const struct pprof_location *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

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
                qsort(p->locations, p->location_count, sizeof *p->locations, by_id);
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
        free(p->stacks);
        free(p->locations);
        free(p->mappings);
        free(p->functions);
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

const char *pprof_function_name(const struct pprof *p, uint64_t id)
{
        for (size_t i = 0; id && i < p->function_count; i++)
                if (p->functions[i].id == id)
                        return pprof_string(p, p->functions[i].name);
        return NULL;
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
