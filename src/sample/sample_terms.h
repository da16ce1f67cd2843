/*
 * Purpose: what a session of samples is to be like, as a text: of STOOK_SAMPLE, of `stook run
 * --sample` and of `stook profile --start`, which include this.
 *
 *      [on|off,][BYTES|interval=BYTES][,most=NUMBER][,guard[=NUMBER]][,lifetimes][,signal=NUMBER]
 *      [,file=FILE]
 *
 * in any order, but for `on` and `off`, which come first, and the file, which comes last, since its
 * name may have commas. Numbers may end with K or M.
 */
#ifndef STOOK_SAMPLE_TERMS_H
#define STOOK_SAMPLE_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STOOK_SAMPLE_INTERVAL (UINT64_C(2) << 20)       /* bytes, by default; as other allocators */
#define STOOK_SAMPLE_INTERVAL_MOST (UINT64_C(1) << 40)
#define STOOK_SAMPLE_MOST 200                           /* kept a second, by default */
#define STOOK_SAMPLE_MOST_MOST 1000000
#define STOOK_SAMPLE_GUARD 10                           /* guarded a second, by default */
#define STOOK_SAMPLE_SIGNAL_MOST 64

#define STOOK_SAMPLE_TERMS "[BYTES][,most=NUMBER][,guard[=NUMBER]][,lifetimes]"

struct stook_sample_terms {
        uint64_t interval;              /* bytes */
        uint64_t most;                  /* kept a second; 0: all */
        uint64_t guard;                 /* guarded a second (sample/guarded.c); 0: none */
        bool     lifetimes;             /* the stacks of frees, too */
        bool     off;                   /* not before the signal */
        int      signal;                /* that starts a session, or ends it; 0: none */
        const char *file;               /* of the profile; NULL: none */
};

static inline struct stook_sample_terms stook_sample_terms_usual(void)
{
        return (struct stook_sample_terms){ .interval = STOOK_SAMPLE_INTERVAL,
                                            .most = STOOK_SAMPLE_MOST };
}

/* *@text is moved behind @word if it begins with that. */
static inline bool stook_terms_skip(const char **text, const char *word)
{
        size_t n = strlen(word);

        if (strncmp(*text, word, n))
                return false;
        *text += n;
        return true;
}

/* Moves *@text behind a number of 1 to @most. False: there is none. */
static inline bool stook_terms_number(const char **text, uint64_t most, uint64_t *number)
{
        uint64_t n = 0;

        while (**text >= '0' && **text <= '9' && n <= most)
                n = n * 10 + (uint64_t)(*(*text)++ - '0');
        if (**text == 'K' || **text == 'M')
                n <<= *(*text)++ == 'K' ? 10 : 20;
        *number = n;
        return n && n <= most;
}

/* One term. False: it is none. */
static inline bool stook_sample_read_term(const char **text, struct stook_sample_terms *terms)
{
        uint64_t n;

        if (stook_terms_skip(text, "interval=") || (**text >= '0' && **text <= '9'))
                return stook_terms_number(text, STOOK_SAMPLE_INTERVAL_MOST, &terms->interval);
        if (stook_terms_skip(text, "most="))
                return stook_terms_number(text, STOOK_SAMPLE_MOST_MOST, &terms->most);
        if (stook_terms_skip(text, "guard="))
                return stook_terms_number(text, STOOK_SAMPLE_MOST_MOST, &terms->guard);
        if (stook_terms_skip(text, "guard")) {
                terms->guard = STOOK_SAMPLE_GUARD;
                return true;
        }
        if (stook_terms_skip(text, "lifetimes"))
                return terms->lifetimes = true;
        if (stook_terms_skip(text, "signal=")) {
                bool good = stook_terms_number(text, STOOK_SAMPLE_SIGNAL_MOST, &n);

                terms->signal = (int)n;
                return good;
        }
        if (!stook_terms_skip(text, "file=") || !**text)
                return false;
        terms->file = *text;
        *text += strlen(*text);
        return true;
}

/* @terms: the usual ones, which the text changes. False: something else than there may be. */
static inline bool stook_sample_read_terms(const char *text, struct stook_sample_terms *terms)
{
        if (stook_terms_skip(&text, "off"))
                terms->off = true;
        else if (!stook_terms_skip(&text, "on") && !stook_sample_read_term(&text, terms))
                return false;
        while (stook_terms_skip(&text, ","))
                if (!stook_sample_read_term(&text, terms))
                        return false;
        return !*text;
}

#endif
