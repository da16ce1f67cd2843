/*
 * What the session server keeps: which user is behind a token. Each of store_malloc.c and
 * store_caches.c is a whole store; docs/ADOPT.md goes from the first to the second.
 *
 * All calls may be made by any thread. They return 0 or a negative error number.
 */
#ifndef STORE_H
#define STORE_H

#include <stddef.h>

#define TOKEN_BYTES  25         /* of a text with its end; callers pass no longer one */
#define USER_BYTES   25
#define TOKENS_MOST  32         /* of one login */
#define BUCKETS      65536      /* of the table of tokens, a power of two; users have 1,024 */
#define USER_BUCKETS 1024

/* @most: sessions that there may be */
int store_open(size_t most);

/*
 * store_login() - all @n tokens become sessions of the user, or none does
 *   -EEXIST  a token has a session already
 *   -ENOMEM  no memory, or there would be more sessions than there may be
 */
int store_login(const char *user, char *const *tokens, size_t n);

/* @user: USER_BYTES, written if the call returns 0. -ENOENT: no such session */
int store_who(const char *token, char *user);

/* -ENOENT: no such session. A user without sessions is gone. */
int store_logout(const char *token);

size_t store_sessions(void);

/* All sessions end. */
void store_close(void);

static inline size_t hash_of(const char *text)
{
        size_t hash = 14695981039346656037u;

        for (; *text; text++)
                hash = (hash ^ (unsigned char)*text) * 1099511628211u;
        return hash ^ hash >> 32;
}

#endif
