/*
 * Purpose: tells of STOOK_* variables that look like misspelt ones. Such a variable would be
 * ignored in silence, and the program would run otherwise than its user believes.
 *
 * Place: called once, at start. `stook_option_names` is the one list of variables that are read;
 * tests/tools/variables.py compares it with the sources and with stook-env(7).
 * Which names are told: those that are near a name of the list, no others. Programs, scripts and
 * stook's own tests may have STOOK_* variables of their own; a line about those would be noise.
 * Near is a name that becomes the other one by a few changes: a letter added, left out, replaced,
 * or two neighbours exchanged. Near is, too, a name that lacks the first or the last words of the
 * other one, or has too many. Case does not matter.
 * Nothing here allocates or reads files: the process may not have a working malloc yet.
 */
#include <stdbool.h>
#include <string.h>

#include "os/os.h"
#include "process/process.h"

#define PREFIX       STOOK_ENV_PREFIX
#define PREFIX_BYTES (sizeof(PREFIX) - 1)
#define KNOWN_MAX    16                 /* bytes of the longest name in the list, or more */
#define NAME_MAX     32                 /* longer ones are near by their words alone */
#define FAR          255u

/* Behind the prefix. */
const char *const stook_option_names[] = {
        "CAPACITY", "CHECKER", "DEBUG", "DECAY_MS", "FAIL", "GROUP_LIMIT", "HARDEN", "LEAKS",
        "MAINTENANCE", "MAP_NAMES", "MERGE", "NOTES", "ON_FAULT", "OPTIONS", "PRINT", "PROFILE",
        "RCU_BACKLOG", "RECORD", "REPORT_JSON", "SAMPLE", "SLOTS", "STATS", "STRICT_NUMA",
        "SUPPRESS", "SYMBOLIZER", "THP", "TINY", "TOKENS", "TOPOLOGY",
};
_Static_assert(sizeof(stook_option_names) / sizeof(stook_option_names[0]) == STOOK_OPTIONS,
               "as many as there are states of options");

static char upper(char c)
{
        return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool same(const char *a, const char *b, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (upper(a[i]) != upper(b[i]))
                        return false;
        return true;
}

/* Is the short name the first or the last words of the long one? */
static bool has_words(const char *words, size_t n, const char *few, size_t few_n)
{
        if (!few_n || n < few_n + 2)
                return false;
        return (words[few_n] == '_' && same(words, few, few_n)) ||
               (words[n - few_n - 1] == '_' && same(words + n - few_n, few, few_n));
}

static unsigned least(unsigned a, unsigned b)
{
        return a < b ? a : b;
}

/*
 * The least number of changes that make the one name the other: optimal string alignment. A row has
 * the distances of one beginning of @name to each beginning of @known.
 */
static unsigned distance(const char *name, size_t name_n, const char *known, size_t known_n)
{
        unsigned char rows[3][KNOWN_MAX + 1], *spare;
        unsigned char *before = rows[0], *above = rows[1], *row = rows[2];

        if (name_n > NAME_MAX || known_n > KNOWN_MAX)
                return FAR;
        for (size_t j = 0; j <= known_n; j++)
                above[j] = (unsigned char)j;
        for (size_t i = 1; i <= name_n; i++) {
                row[0] = (unsigned char)i;
                for (size_t j = 1; j <= known_n; j++) {
                        char mine = upper(name[i - 1]), wanted = known[j - 1];
                        unsigned changes = least(above[j], row[j - 1]) + 1u;

                        changes = least(changes, above[j - 1] + (mine != wanted));
                        if (i > 1 && j > 1 && mine == known[j - 2] && upper(name[i - 2]) == wanted)
                                changes = least(changes, before[j - 2] + 1u);
                        row[j] = (unsigned char)changes;
                }
                spare = before;
                before = above;
                above = row;
                row = spare;
        }
        return above[known_n];
}

/* Changes that still count as a slip. Short names are near to too many others. Arbitrary. */
static unsigned slips(size_t known_n)
{
        return known_n <= 4 ? 1 : known_n <= 8 ? 2 : 3;
}

/* The nearest name, which this one may have been meant to be. NULL: it is right, or near none. */
static const char *meant(const char *name, size_t n)
{
        unsigned nearest = FAR;
        const char *found = NULL;

        for (size_t i = 0; i < STOOK_OPTIONS; i++) {
                const char *one = stook_option_names[i];
                size_t known_n = strlen(one);
                unsigned changes;

                if (n == known_n && !memcmp(name, one, n))
                        return NULL;
                changes = distance(name, n, one, known_n);
                if (changes > slips(known_n))
                        changes = FAR;
                if (has_words(name, n, one, known_n) || has_words(one, known_n, name, n))
                        changes = least(changes, 1);
                if (changes < nearest) {
                        nearest = changes;
                        found = one;
                }
        }
        return found;
}

static bool is_known(const char *name, size_t n)
{
        int index = stook_option_index(name, n);

        return index >= 0 && !memcmp(name, stook_option_names[index], n);
}

void stook_env_for_each(void (*each)(const char *name, size_t name_bytes, const char *value,
                                        bool known, void *data), void *data)
{
        for (char **e = stook_os_env_first(); *e; e++) {
                size_t n = strcspn(*e, "=");

                if (!strncmp(*e, PREFIX, PREFIX_BYTES) && (*e)[n])
                        each(*e, n, *e + n + 1, is_known(*e + PREFIX_BYTES, n - PREFIX_BYTES),
                             data);
        }
}

void stook_env_check_spelling(void)
{
        static const char says[] = ": there is no such variable; the nearest is " PREFIX;
        const char *known;

        for (char **e = stook_os_env_first(); *e; e++) {
                const char *name = *e + PREFIX_BYTES;
                size_t n;

                if (strncmp(*e, PREFIX, PREFIX_BYTES))
                        continue;
                n = strcspn(name, "=");
                known = name[n] ? meant(name, n) : NULL;
                if (known)
                        stook_os_env_tell(*e, PREFIX_BYTES + n, says, known);
        }
}
