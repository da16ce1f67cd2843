/* The store as it was: malloc, and a lock that readers take, too. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "store.h"

struct user {
        struct user *next;
        size_t sessions;
        char name[USER_BYTES];
};

struct session {
        struct session *next;
        struct user *user;
        char token[TOKEN_BYTES];
};

static struct session *table[BUCKETS];
static struct user *users[USER_BUCKETS];
static size_t sessions_now, sessions_most;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

int store_open(size_t most)
{
        sessions_most = most;
        return 0;
}

static struct session **place_of(const char *token)
{
        struct session **place = &table[hash_of(token) % BUCKETS];

        while (*place && strcmp((*place)->token, token))
                place = &(*place)->next;
        return place;
}

static struct user **user_place(const char *name)
{
        struct user **place = &users[hash_of(name) % USER_BUCKETS];

        while (*place && strcmp((*place)->name, name))
                place = &(*place)->next;
        return place;
}

static void forget(struct session **place)
{
        struct session *session = *place;
        struct user *user = session->user;

        *place = session->next;
        free(session);
        sessions_now--;
        if (!--user->sessions) {
                *user_place(user->name) = user->next;
                free(user);
        }
}

static int login_locked(const char *name, char *const *tokens, size_t n)
{
        struct user **place, *user;
        size_t done = 0;
        int error = 0;

        if (sessions_now + n > sessions_most)
                return -ENOMEM;
        place = user_place(name);
        user = *place;
        if (!user) {
                user = calloc(1, sizeof(*user));
                if (!user)
                        return -ENOMEM;
                strcpy(user->name, name);
                *place = user;
        }
        user->sessions++;                       /* so that it stays while sessions are undone */
        for (; done < n; done++) {
                struct session **bucket = place_of(tokens[done]), *session;

                if (*bucket) {
                        error = -EEXIST;
                        break;
                }
                session = calloc(1, sizeof(*session));
                if (!session) {
                        error = -ENOMEM;
                        break;
                }
                strcpy(session->token, tokens[done]);
                session->user = user;
                *bucket = session;
                user->sessions++;
                sessions_now++;
        }
        while (error && done)
                forget(place_of(tokens[--done]));
        if (!--user->sessions) {
                *user_place(user->name) = user->next;
                free(user);
        }
        return error;
}

int store_login(const char *user, char *const *tokens, size_t n)
{
        int error;

        pthread_rwlock_wrlock(&lock);
        error = login_locked(user, tokens, n);
        pthread_rwlock_unlock(&lock);
        return error;
}

int store_who(const char *token, char *user)
{
        struct session *session;

        pthread_rwlock_rdlock(&lock);
        session = *place_of(token);
        if (session)
                memcpy(user, session->user->name, USER_BYTES);
        pthread_rwlock_unlock(&lock);
        return session ? 0 : -ENOENT;
}

int store_logout(const char *token)
{
        struct session **place;
        int error = -ENOENT;

        pthread_rwlock_wrlock(&lock);
        place = place_of(token);
        if (*place) {
                forget(place);
                error = 0;
        }
        pthread_rwlock_unlock(&lock);
        return error;
}

size_t store_sessions(void)
{
        size_t now;

        pthread_rwlock_rdlock(&lock);
        now = sessions_now;
        pthread_rwlock_unlock(&lock);
        return now;
}

void store_close(void)
{
        for (size_t i = 0; i < BUCKETS; i++) {
                while (table[i])
                        forget(&table[i]);
        }
}
