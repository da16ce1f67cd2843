/*
 * Purpose: where options come from: the program's own string, the environment; and what was given,
 * for readers. <stook/options.h> has the rules.
 * Place: life gathers at start, before anything reads an option. Where the environment is all that
 * there is, nothing is copied but for the readers. Else readers get a list of the library's own,
 * which stands in for the environment (os/env.c).
 * Concurrency: written at start, by one thread. Later values are life's (life/option_calls.c).
 */
#include <string.h>

#include "base/compiler.h"
#include "os/os.h"
#include "process/process.h"

#define TEXT_BYTES 2048                 /* of what the program's string becomes */
#define LOCK       "STOOK_OPTIONS"
#define LIST_MAX   128                  /* variables; arbitrary: several times what there are */

struct stook_option_state stook_option_states[STOOK_OPTIONS] STOOK_MOSTLY_UNUSED;

static char *list[LIST_MAX + 1] STOOK_MOSTLY_UNUSED;
static char text[TEXT_BYTES] STOOK_MOSTLY_UNUSED;
static bool locked = STOOK_OPTIONS_LOCKED;
static enum stook_option_source locked_by;

bool stook_options_are_locked(void)
{
        return locked;
}

static char upper(char c)
{
        return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int stook_option_index(const char *name, size_t bytes)
{
        for (int i = 0; i < STOOK_OPTIONS; i++) {
                const char *known = stook_option_names[i];
                size_t n = 0;

                while (n < bytes && known[n] && upper(name[n]) == known[n])
                        n++;
                if (n == bytes && !known[n])
                        return i;
        }
        return -1;
}

void stook_option_note(int index, const char *value, enum stook_option_source source)
{
        struct stook_option_state *state = &stook_option_states[index];
        size_t n = strnlen(value, sizeof(state->value) - 1);

        for (size_t i = 0; i < n; i++)
                __atomic_store_n(&state->value[i], value[i], __ATOMIC_RELAXED);
        __atomic_store_n(&state->value[n], 0, __ATOMIC_RELAXED);
        for (size_t i = 0; stook_option_names[index][i]; i++)
                __atomic_store_n(&state->name[i], lower(stook_option_names[index][i]),
                                 __ATOMIC_RELAXED);
        __atomic_store_n(&state->source, source, __ATOMIC_RELAXED);
}

/* @variable: STOOK_NAME=VALUE. */
static void note(const char *variable, enum stook_option_source source)
{
        const char *name = variable + sizeof(STOOK_ENV_PREFIX) - 1;
        size_t n = strcspn(name, "=");
        int index = name[n] ? stook_option_index(name, n) : -1;

        if (index < 0 || strncmp(name, stook_option_names[index], n) != 0)
                return;                 /* variables of the environment are in upper case */
        stook_option_note(index, name + n + 1, source);
        if (strncmp(variable, LOCK "=", sizeof(LOCK)) != 0)
                return;
        if (strcmp(name + n + 1, "off") != 0) {
                stook_os_env_refuse(LOCK, name + n + 1, "off");
                return;
        }
        locked = true;
        locked_by = source;
}

/* Which of the first @n of the list gives @variable, a NAME=VALUE? @n: none. */
static size_t place_of(size_t n, const char *variable)
{
        size_t bytes = strcspn(variable, "=") + 1, i = 0;

        while (i < n && strncmp(list[i], variable, bytes) != 0)
                i++;
        return i;
}

/* The option at @from as a variable, at @to. Return: the bytes of it, with a 0 at its end. */
static size_t to_variable(char *to, const char *from, size_t bytes)
{
        size_t name = strcspn(from, "="), at = sizeof(STOOK_ENV_PREFIX) - 1;

        memcpy(to, STOOK_ENV_PREFIX, at);
        for (size_t i = 0; i < bytes; i++)
                to[at++] = i < name ? upper(from[i]) : from[i];
        to[at] = 0;
        return at + 1;
}

/*
 * What the program's string gives, and the list has not, comes behind its first @n. Of an option
 * that stands there twice the last one counts.
 */
static size_t add_program(size_t n, const char *from)
{
        static const char blanks[] = " \t\n";
        size_t room = 0, first = n;

        while (*(from += strspn(from, blanks)) && n < LIST_MAX) {
                size_t bytes = strcspn(from, blanks), place;

                if (room + sizeof(STOOK_ENV_PREFIX) + bytes > sizeof(text)) {
                        stook_os_env_tell("stook_options", 13, ": is too long", "");
                        break;
                }
                list[n] = text + room;
                room += to_variable(list[n], from, bytes);
                place = place_of(n, list[n]);
                if (place >= first) {           /* else the environment goes before it */
                        list[place] = list[n];
                        note(list[place], STOOK_OPTION_PROGRAM);
                        n += place == n;
                }
                from += bytes;
        }
        return n;
}

/* Return: how many the environment has. */
static size_t add_environment(void)
{
        size_t n = 0;

        for (char **e = stook_os_env_first(); *e && n < LIST_MAX; e++)
                if (!strncmp(*e, STOOK_ENV_PREFIX, sizeof(STOOK_ENV_PREFIX) - 1))
                        list[n++] = *e;
        return n;
}

/* The environment does not count, and nothing of it was told. Return: how many are in the list. */
static size_t only_program(const char *program)
{
        memset(stook_option_states, 0, STOOK_OPTIONS * sizeof(stook_option_states[0]));
        stook_option_note(stook_option_index("OPTIONS", 7), "off", locked_by);
        return program ? add_program(0, program) : 0;
}

void stook_options_gather(void)
{
        const char *program = &stook_options ? stook_options : NULL;
        size_t n = 0;

        for (char **e = stook_os_env_first(); *e && !locked; e++)
                if (!strncmp(*e, STOOK_ENV_PREFIX, sizeof(STOOK_ENV_PREFIX) - 1))
                        note(*e, STOOK_OPTION_ENVIRONMENT);
        if (!program && !locked)
                return;
        if (!locked)
                n = add_program(add_environment(), program);
        if (locked)                     /* by the program's string itself, it may be */
                n = only_program(program);
        list[n] = NULL;
        stook_os_env_instead = list;
}
