/*
 * Purpose: STOOK_DEBUG, in the grammar of the kernel's slab_debug:
 *
 *      BLOCK[;BLOCK...]        BLOCK: LETTERS[,NAME...]
 *
 * LETTERS are of F Z P U T A O C, Q or Q=BYTES[K|M|G], and Z=BYTES or Z=guard; none of them: FZPU;
 * a single `-`: no mode. What follows `=` is of all blocks: the last that is given counts.
 * A NAME is a cache's, and may end with `*`. The first block with a name that matches counts. If
 * none matches, the last block without names does.
 * Place: called by life at start and at exit, and by cache for each cache that is made.
 * Concurrency: the text is const after the start. Bits of names that matched are set atomically.
 * Failure: a text that breaks the grammar is refused by one line, and means nothing.
 */
#include <string.h>

#include "debug/debug_modes.h"
#include "os/os.h"
#include "process/checker.h"
#include "process/process.h"

#define VARIABLE "STOOK_DEBUG"
#define TEXT_MAX 1024
#define NAMES_MAX 64                    /* names that are told at exit; arbitrary */
#define DEFAULT_MODES (STOOK_CACHE_CHECK | STOOK_CACHE_RED_ZONE | STOOK_CACHE_POISON | \
                       STOOK_CACHE_STORE_USER)
/* Enough for a pause between a free and a late write in most programs. Arbitrary. */
#define QUARANTINE_BYTES ((uint64_t)1 << 20)
/* Memory checkers have as much for malloc's objects, or more. */
#define QUARANTINE_CHECKED ((uint64_t)16 << 20)
#define QUARANTINE_MOST  ((uint64_t)1 << 40)
#define ZONE_BYTES 16                   /* of a red zone; the state behind it is aligned */
#define ZONE_MOST  4096                 /* with Z=BYTES; arbitrary */
#define TAKES "LETTERS[,CACHE...][;...], letters of FZ[=BYTES|=guard]PUTAOC and Q[=BYTES], or -"

static char text[TEXT_MAX] STOOK_MOSTLY_UNUSED; /* not empty: asked */
static bool asked;                      /* const after the start */
static uint64_t quarantine, zone;       /* 0: the text does not say */
static bool guards;
static uint64_t matched;                /* atomic: bit i: name i */
/* Atomic, relaxed: the process that first had a use for the modes: children tell nothing. */
static uint32_t first_user;

static const struct {
        char letter;
        uint64_t flag;
} modes[] = {
        { 'F', STOOK_CACHE_CHECK }, { 'Z', STOOK_CACHE_RED_ZONE }, { 'P', STOOK_CACHE_POISON },
        { 'U', STOOK_CACHE_STORE_USER }, { 'T', STOOK_CACHE_TRACE }, { 'A', STOOK_CACHE_MAY_FAIL },
        { 'O', STOOK_DEBUG_O }, { 'Q', STOOK_CACHE_QUARANTINE }, { 'C', STOOK_DEBUG_C },
};

static uint64_t flag_of(char letter)
{
        if (letter >= 'a' && letter <= 'z')
                letter = (char)(letter - 'a' + 'A');
        for (size_t i = 0; i < STOOK_ARRAY_SIZE(modes); i++)
                if (modes[i].letter == letter)
                        return modes[i].flag;
        return 0;
}

static bool ends(char c)
{
        return !c || c == ',' || c == ';';
}

/* "=BYTES" at *@at, which moves behind it. False: no such number, or one above @most. */
static bool read_bytes(const char **at, uint64_t most, uint64_t *bytes)
{
        static const char suffixes[] = "KMG";
        const char *c = *at + 1, *suffix;
        uint64_t n = 0;

        if (*c < '0' || *c > '9')
                return false;
        for (; *c >= '0' && *c <= '9'; c++)
                if ((n = n * 10 + (uint64_t)(*c - '0')) > QUARANTINE_MOST)
                        return false;
        suffix = *c ? strchr(suffixes, *c) : NULL;
        if (suffix) {
                n <<= 10 * (suffix - suffixes + 1);
                c++;
        }
        if (!n || n > most)
                return false;
        *bytes = n;
        *at = c;
        return true;
}

/* What follows Z=. False: neither bytes nor "guard". */
static bool read_zone(const char **at)
{
        static const char word[] = "=guard";

        if (strncmp(*at, word, sizeof(word) - 1))
                return read_bytes(at, ZONE_MOST, &zone);
        guards = true;
        *at += sizeof(word) - 1;
        return true;
}

/* The letters at *@at, which moves behind them. False: one of them is unknown. */
static bool read_letters(const char **at, uint64_t *flags)
{
        const char *first = *at;

        *flags = ends(*first) ? DEFAULT_MODES : 0;
        if (*first == '-') {
                ++*at;
                return ends(**at);
        }
        while (!ends(**at)) {
                uint64_t flag = flag_of(*(*at)++);

                *flags |= flag;
                if (!flag)
                        return false;
                if (**at != '=')
                        continue;
                if (!(flag == STOOK_CACHE_QUARANTINE && read_bytes(at, QUARANTINE_MOST,
                                                                   &quarantine)) &&
                    !(flag == STOOK_CACHE_RED_ZONE && read_zone(at)))
                        return false;
        }
        return true;
}

bool stook_debug_name_fits(const char *asked_for, size_t n, const char *name)
{
        if (n && asked_for[n - 1] == '*')
                return !strncmp(asked_for, name, n - 1);
        return strlen(name) == n && !strncmp(asked_for, name, n);
}

/* A name at *@at, which moves behind it. Does @name match? */
static bool read_name(const char **at, const char *name)
{
        const char *first = *at;

        while (!ends(**at))
                ++*at;
        return stook_debug_name_fits(first, (size_t)(*at - first), name);
}

/*
 * What the text says of @name; *@fits: the text is by the grammar. @note: a name that matches is
 * noted.
 */
static uint64_t look_up(const char *name, bool note, bool *fits)
{
        uint64_t answer = 0, flags;
        unsigned names = 0;
        const char *at = text;

        for (*fits = true; *at; at += *at == ';') {
                bool named = false;

                if (!read_letters(&at, &flags))
                        return *fits = false;
                for (; *at == ','; names++, named = true) {
                        at++;
                        *fits &= !ends(*at);
                        if (!read_name(&at, name))
                                continue;
                        if (note && names < NAMES_MAX)
                                __atomic_fetch_or(&matched, UINT64_C(1) << names, __ATOMIC_RELAXED);
                        return flags;
                }
                if (!named)
                        answer = flags;
        }
        return answer;
}

void stook_debug_read_options(void)
{
        const char *value = stook_os_env(VARIABLE);
        bool fits = true;

        if (!value || !*value)
                return;
        stook_debug_note_process();
        if (strlen(value) < sizeof(text))
                strcpy(text, value);
        /* A name that no cache has matches no block, so that all blocks are read. */
        if (*text)
                look_up("\n", false, &fits);
        asked = *text && fits;
        if (!asked)
                stook_os_env_refuse(VARIABLE, value, TAKES);
}

/* Of threads that are here at once each stores the same. */
void stook_debug_note_process(void)
{
        if (!__atomic_load_n(&first_user, __ATOMIC_RELAXED))
                __atomic_store_n(&first_user, stook_process_id(), __ATOMIC_RELAXED);
}

bool stook_debug_is_child(void)
{
        return __atomic_load_n(&first_user, __ATOMIC_RELAXED) != stook_process_id();
}

bool stook_debug_is_asked(void)
{
        return asked;
}

uint64_t stook_debug_wanted(const char *name)
{
        bool fits;

        return asked ? look_up(name, true, &fits) : 0;
}

size_t stook_debug_zone_bytes(void)
{
        return zone > ZONE_BYTES ? (zone + ZONE_BYTES - 1) & ~(uint64_t)(ZONE_BYTES - 1)
                                 : ZONE_BYTES;
}

bool stook_debug_guards(void)
{
        return guards && asked;
}

uint64_t stook_debug_quarantine_bytes(void)
{
        if (quarantine)
                return quarantine;
        return stook_checker_is_on() ? QUARANTINE_CHECKED : QUARANTINE_BYTES;
}

void stook_debug_tell_unused(void)
{
        uint64_t had = __atomic_load_n(&matched, __ATOMIC_RELAXED), flags;
        const char *at = text;

        if (!asked || stook_debug_is_child())
                return;
        for (unsigned names = 0; *at; at += *at == ';') {
                read_letters(&at, &flags);
                for (; *at == ','; names++) {
                        const char *first = ++at;

                        read_name(&at, "");
                        if (names < NAMES_MAX && !(had >> names & 1))
                                stook_os_env_tell(first, (size_t)(at - first),
                                                  " in " VARIABLE ": no cache had that name", "");
                }
        }
}
