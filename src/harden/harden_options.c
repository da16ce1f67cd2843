/*
 * Purpose: STOOK_HARDEN: names with commas between them; or 1, which chooses for the user; or all;
 * or 0.
 * Place: called by life at start. `stook run --harden` takes the same (cli/run/run_debug.c).
 * Failure: a text with a name that is none is refused by one line, and means nothing.
 */
#include <string.h>

#include "harden/harden.h"
#include "os/os.h"

#define VARIABLE "STOOK_HARDEN"
#define TAKES "0, 1, all, or double, random, guard, zero-free, zero-alloc with commas between them"

/* What finds or stops faults. Zeros hide what a program left behind, and cost with the size. */
#define USUAL (STOOK_HARDEN_DOUBLE | STOOK_HARDEN_RANDOM | STOOK_HARDEN_GUARD)
#define ALL   (USUAL | STOOK_HARDEN_ZERO_FREE | STOOK_HARDEN_ZERO_ALLOC)

uint32_t stook_hardened;

static const struct {
        const char *name;
        int by;
} names[] = {
        { "double", STOOK_HARDEN_DOUBLE },
        { "random", STOOK_HARDEN_RANDOM },
        { "guard", STOOK_HARDEN_GUARD },
        { "zero-free", STOOK_HARDEN_ZERO_FREE },
        { "zero-alloc", STOOK_HARDEN_ZERO_ALLOC },
        { "all", ALL },
        { "1", USUAL },
        { "0", 0 },
};

/* -1: the first @n bytes are no name. */
static int of_name(const char *text, size_t n)
{
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(names); i++)
                if (strlen(names[i].name) == n && !memcmp(names[i].name, text, n))
                        return names[i].by;
        return -1;
}

int stook_harden_parse(const char *text)
{
        int all = 0;

        for (;; text++) {
                size_t n = strcspn(text, ",");
                int by = of_name(text, n);

                if (by < 0)
                        return -1;
                all |= by;
                text += n;
                if (!*text)
                        return all;
        }
}

void stook_harden_read_options(void)
{
        const char *value = stook_os_env(VARIABLE);
        int by = value && *value ? stook_harden_parse(value) : 0;

        if (by < 0)
                stook_os_env_refuse(VARIABLE, value, TAKES);
        else
                stook_hardened = (uint32_t)by;
}
