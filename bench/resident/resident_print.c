/*
 * bench/resident/resident_print.c - the table of resident pages, as text or JSON
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "resident.h"

static const struct {
        const char *name, *text;
} causes[] = {
#define X(name, text) { #name, text },
        STOOK_RESIDENT_CAUSES(X)
#undef X
};

struct out {
        int  fd;
        bool ok;
};

__attribute__((format(printf, 2, 3))) static void put(struct out *out, const char *format, ...)
{
        char line[512];
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(line, sizeof(line), format, arguments);
        va_end(arguments);
        if (n >= (int)sizeof(line))
                n = sizeof(line) - 1;
        for (ssize_t done = 0, part; out->ok && done < n; done += part) {
                part = write(out->fd, line + done, (size_t)(n - done));
                out->ok = part > 0;
        }
}

static const char *name_of(const struct stook_resident_cache *cache)
{
        return cache->name ? cache->name : "(others)";
}

static bool is_used(const struct stook_resident_cache *c)
{
        return c->objects_live || c->objects_sheaf || c->pages[0] || c->pages[1] || c->pages[2];
}

static void print_text(const struct stook_resident *r, struct out *out)
{
        put(out, "resident, KiB\n");
        for (unsigned i = 0; i < STOOK_RESIDENT_KINDS; i++)
                if (r->bytes[i])
                        put(out, "%10zu  %s\n", r->bytes[i] >> 10, causes[i].text);
        put(out, "%10zu  together (the kernel counts %zu)\n\n", r->total >> 10, r->rss >> 10);
        put(out, "pages with objects in use hold, KiB: %zu in use, %zu in sheaves, ",
            r->live_bytes >> 10, r->sheaf_bytes >> 10);
        put(out, "%zu free or never used\n\n", r->free_bytes >> 10);
        put(out, "%-24s %10s %10s %10s %10s | %s\n", "cache", "in use", "KiB", "in sheaves", "KiB",
            "KiB resident: in use, in sheaves, free");
        for (unsigned i = 0; i < r->caches; i++) {
                const struct stook_resident_cache *c = &r->cache[i];

                if (!is_used(c))
                        continue;
                put(out, "%-24s %10zu %10zu %10zu %10zu", name_of(c), c->objects_live,
                    c->live_bytes >> 10, c->objects_sheaf, c->sheaf_bytes >> 10);
                put(out, " | %8zu %8zu %8zu\n", c->pages[0] >> 10, c->pages[1] >> 10,
                    c->pages[2] >> 10);
        }
}

/* A name in JSON: what is not plain becomes '?'. */
static void put_name(struct out *out, const char *name)
{
        put(out, "\"");
        for (; *name; name++) {
                bool plain = *name >= ' ' && *name < 127 && *name != '"' && *name != '\\';

                put(out, "%c", plain ? *name : '?');
        }
        put(out, "\"");
}

static void print_json(const struct stook_resident *r, struct out *out)
{
        const char *comma = "";

        put(out, "{\"total_KiB\": %zu, \"rss_KiB\": %zu, ", r->total >> 10, r->rss >> 10);
        put(out, "\"causes\": {");
        for (unsigned i = 0; i < STOOK_RESIDENT_KINDS; i++)
                put(out, "%s\"%s_KiB\": %zu", i ? ", " : "", causes[i].name, r->bytes[i] >> 10);
        put(out, "}, \"in_pages_with_objects\": {\"live_KiB\": %zu, \"sheaf_KiB\": %zu, ",
            r->live_bytes >> 10, r->sheaf_bytes >> 10);
        put(out, "\"free_KiB\": %zu}, ", r->free_bytes >> 10);
        put(out, "\"caches\": [");
        for (unsigned i = 0; i < r->caches; i++) {
                const struct stook_resident_cache *c = &r->cache[i];

                if (!is_used(c))
                        continue;
                put(out, "%s{\"name\": ", comma);
                put_name(out, name_of(c));
                put(out, ", \"live\": %zu, \"live_bytes\": %zu", c->objects_live, c->live_bytes);
                put(out, ", \"in_sheaves\": %zu, \"sheaf_bytes\": %zu", c->objects_sheaf,
                    c->sheaf_bytes);
                put(out, ", \"pages_live_KiB\": %zu, \"pages_sheaf_KiB\": %zu", c->pages[0] >> 10,
                    c->pages[1] >> 10);
                put(out, ", \"pages_free_KiB\": %zu}", c->pages[2] >> 10);
                comma = ", ";
        }
        put(out, "]}\n");
}

bool stook_resident_print(const struct stook_resident *resident, int fd, bool json)
{
        struct out out = { .fd = fd, .ok = true };

        (json ? print_json : print_text)(resident, &out);
        return out.ok;
}
