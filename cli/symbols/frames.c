/*
 * Purpose: see frames.h.
 * Which frames are left out: at the inner end, those of the library, up to the program's call. They
 * are known by their module, or by their names where the library is linked statically; its static
 * functions in between have names of their own. Elsewhere a name tells nothing: it may be the
 * program's stook_wrapper_free. What counts is the function that a frame is of, not what was
 * inlined into it: <stook/inline.h> puts functions of the library into the program's. These are
 * left out where the stack begins with them. At the outer end, the frames that call main or begin a
 * thread are left out.
 */
#include "cli/symbols/frames.h"
#include "cli/text/plain_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STATIC_MOST 3                   /* static functions of the library in a row */

size_t frames_read(struct symbols *symbols, char *line, uint64_t *addresses)
{
        size_t count = 0;
        char *end, *plus;

        while (count < FRAMES_MOST) {
                uint64_t start = 0, address;

                line += strspn(line, " ");
                plus = *line == '/' ? strchr(line, '+') : NULL;
                if (plus) {
                        *plus = '\0';
                        start = symbols_add_file(symbols, line);
                        line = plus + 1;
                }
                address = strtoull(line, &end, 16);
                if (end == line)
                        break;
                addresses[count++] = start + address;
                line = end;
        }
        return count;
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static bool has_own_name(const struct symbol *symbol)
{
        return symbol->function && !strncmp(symbol->function, "stook_", 6);
}

/* Is it a function of a header of the library's (stook/NAME.h), inlined into the program? */
static bool is_from_header(const struct symbol *symbol)
{
        const char *name, *folder;
        size_t n;

        if (!symbol->is_inlined || !has_own_name(symbol) || !symbol->file)
                return false;
        name = base_name(symbol->file);
        n = strlen(name);
        folder = name - strlen("stook/");
        return n > 2 && !strcmp(name + n - 2, ".h") && folder >= symbol->file &&
               !strncmp(folder, "stook/", 6) && (folder == symbol->file || folder[-1] == '/');
}

/* What the kernel has put below a signal handler: the library's own, if it is the first. */
static bool is_return_of_handler(const struct symbol *symbol)
{
        return symbol->function && !strcmp(symbol->function, "__restore_rt");
}

void frames_judge(struct frames_judgement *j, const struct symbol *symbol)
{
        if (j->headers == j->count++ && is_from_header(symbol))
                j->headers++;
        if ((symbol->module && !strncmp(base_name(symbol->module), "libstook", 8)) ||
            is_return_of_handler(symbol))
                j->owner = FRAMES_LIBRARY;
        else if (!symbol->is_inlined && has_own_name(symbol) &&
                 symbols_have_library(j->symbols, j->at))
                j->owner = FRAMES_NAMED;
        else if (j->headers && symbols_have_library(j->symbols, j->at))
                j->owner = FRAMES_INLINED;
        else
                j->owner = FRAMES_PROGRAM;
}

/*
 * What follows the library's own module is the program's: it may be a callback, and then frames of
 * the library follow. A library that is linked statically is known only by some of its functions,
 * so STATIC_MOST others may precede one.
 */
size_t frames_first(enum frames_owner (*owner_of)(size_t i, void *data), void *data, size_t count)
{
        size_t first = 0, ahead = STATIC_MOST;

        for (size_t i = 0; i < count && i <= first + ahead; i++) {
                enum frames_owner owner = owner_of(i, data);

                if (owner == FRAMES_LIBRARY && i == first) {
                        first = i + 1;
                        ahead = 0;
                } else if (owner == FRAMES_NAMED) {
                        first = i + 1;
                        ahead = STATIC_MOST;
                } else if (owner == FRAMES_INLINED) {
                        first = i;
                }
        }
        return first < count ? first : 0;
}

struct stack {
        struct symbols *symbols;
        const uint64_t *addresses;
};

static void judge(const struct symbol *symbol, void *data)
{
        frames_judge(data, symbol);
}

static enum frames_owner owner_of(size_t i, void *data)
{
        const struct stack *stack = data;
        struct frames_judgement j = { .symbols = stack->symbols, .at = stack->addresses[i] - 1 };

        symbols_find(stack->symbols, stack->addresses[i], true, judge, &j);
        return j.owner;
}

static bool begins_all(const char *function)
{
        static const char *const names[] = { "__libc_start_call_main", "__libc_start_main",
                                             "__libc_start_main_impl", "_start", "start_thread",
                                             "clone3", "clone", "__clone3", "__clone" };

        for (size_t i = 0; function && i < sizeof names / sizeof names[0]; i++)
                if (!strcmp(function, names[i]))
                        return true;
        return false;
}

struct writer {
        FILE    *out;
        uint64_t address;
        unsigned count;
        bool     ended;
};

static void put_frame(const struct symbol *symbol, void *data)
{
        struct writer *writer = data;

        if (!writer->count && is_from_header(symbol))
                return;
        if (writer->ended || (writer->count && begins_all(symbol->function))) {
                writer->ended = true;
                return;
        }
        if (symbol->function)
                say(writer->out, "%s", symbol->function);
        else
                say(writer->out, "0x%llx", (unsigned long long)writer->address);
        if (symbol->function && symbol->file)
                say(writer->out, " %s:%d", symbol->file, symbol->line);
        else if (symbol->module)
                say(writer->out, " in %s+0x%llx", base_name(symbol->module),
                    (unsigned long long)symbol->offset);
        fputs(symbol->is_inlined ? " (inlined)\n" : "\n", writer->out);
        writer->count++;
        writer->ended = symbol->function && !strcmp(symbol->function, "main") &&
                        !symbol->is_inlined;
}

int frames_of(struct symbols *symbols, const uint64_t *addresses, size_t count,
              struct frames *frames)
{
        struct stack stack = { symbols, addresses };
        struct writer writer = { 0 };
        size_t bytes;

        writer.out = open_memstream(&frames->lines, &bytes);
        if (!writer.out)
                return -ENOMEM;
        for (size_t i = frames_first(owner_of, &stack, count); i < count && !writer.ended; i++) {
                writer.address = addresses[i];
                symbols_find(symbols, addresses[i], true, put_frame, &writer);
        }
        frames->count = writer.count;
        if (!fclose(writer.out))
                return 0;
        free(frames->lines);
        return -ENOMEM;
}

void frames_release(struct frames *frames)
{
        free(frames->lines);
        frames->lines = NULL;
}

static bool matches(const char *line, const char *pattern)
{
        size_t n = strlen(pattern), function = strcspn(line, " \n");

        if (n && pattern[n - 1] == '*')
                return function >= n - 1 && !strncmp(line, pattern, n - 1);
        return function == n && !strncmp(line, pattern, n);
}

bool frames_have_function(const struct frames *frames, const char *pattern)
{
        for (const char *line = frames->lines; *line; line = strchr(line, '\n') + 1)
                if (matches(line, pattern))
                        return true;
        return false;
}
