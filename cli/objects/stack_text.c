/*
 * Purpose: see stack_text.h.
 */
#include "cli/objects/stack_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "cli/heap/heap_object.h"
#include "cli/text/plain_text.h"

void stack_text_open(struct stack_text *text, struct memory *memory, const struct library *library)
{
        FILE *maps = memory->maps(memory);

        *text = (struct stack_text){ .memory = memory, .root = &library->root,
                                     .symbols = maps ? symbols_of_maps(maps) : NULL };
        if (maps)
                fclose(maps);
        text->modules = calloc(STOOK_STACK_MODULES, sizeof *text->modules);
        if (text->modules &&
            memory_read(memory, (uint64_t)(uintptr_t)text->root->stack_modules, text->modules,
                        STOOK_STACK_MODULES * sizeof *text->modules))
                memset(text->modules, 0, STOOK_STACK_MODULES * sizeof *text->modules);
}

void stack_text_close(struct stack_text *text)
{
        if (text->symbols)
                symbols_release(text->symbols);
        free(text->modules);
}

static const char *file_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* Where the code of a frame lies: of a file that was closed since, where it is taken to be. */
static uint64_t place_of(const struct stack_text *text, uint64_t address, uint32_t modules)
{
        const char *now = symbols_file_at(text->symbols, address - 1);
        uint64_t start;

        for (uint32_t i = modules < STOOK_STACK_MODULES ? modules : STOOK_STACK_MODULES; i-- > 0;) {
                struct stook_stack_module *m = &text->modules[i];

                if (!m->start || address - 1 - m->start >= m->end - m->start)
                        continue;
                m->file[sizeof m->file - 1] = '\0';
                if (m->is_program || (now && !strcmp(file_name(now), file_name(m->file))))
                        return address;
                start = symbols_add_file(text->symbols, m->file);
                return start ? start + (address - m->start) : address;
        }
        return address;
}

/* Without libdw: addresses alone. */
static int plain_frames(const uint64_t *addresses, size_t count, struct frames *frames)
{
        size_t bytes;
        FILE *out = open_memstream(&frames->lines, &bytes);

        if (!out)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                fprintf(out, "%#" PRIx64 "\n", addresses[i]);
        frames->count = (unsigned)count;
        if (!fclose(out))
                return 0;
        free(frames->lines);
        return -ENOMEM;
}

int stack_text_frames(const struct stack_text *text, uint32_t number, struct frames *frames)
{
        uint64_t addresses[STOOK_STACK_FRAMES_MOST];
        uint32_t modules;
        unsigned count = heap_stack(text->memory, text->root, number, addresses, &modules);

        for (unsigned i = 0; text->symbols && text->modules && i < count; i++)
                addresses[i] = place_of(text, addresses[i], modules);
        return text->symbols ? frames_of(text->symbols, addresses, count, frames)
                             : plain_frames(addresses, count, frames);
}

void stack_text_print(const struct frames *frames, FILE *out)
{
        unsigned number = 0;

        for (const char *line = frames->lines; *line; line = strchr(line, '\n') + 1) {
                say(out, "    #%u ", number++);
                fwrite(line, 1, strcspn(line, "\n") + 1, out);
        }
        if (!number)
                fputs("    unknown calls\n", out);
}

void stack_text_json(const struct frames *frames, const char *key, struct json *json)
{
        json_array(json, key);
        for (char *line = frames->lines, *end; *line; line = end + 1) {
                end = strchr(line, '\n');
                *end = '\0';
                json_string(json, NULL, line);
                *end = '\n';
        }
        json_array_end(json);
}
