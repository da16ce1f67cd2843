/*
 * The store on caches. Readers take no lock: what they may see is freed when they have left. What
 * a login needs is there before it takes the lock, so nothing has to be undone.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <stook/stook.h>
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

static struct session *table[BUCKETS];          /* written under the lock, atomically */
static struct user *users[USER_BUCKETS];        /* under the lock */
static size_t sessions_now, sessions_most;      /* under the lock */
static struct stook_cache *session_cache, *user_cache;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int store_open(size_t most)
{
        if (stook_rcu_use(&stook_rcu_epoch))
                return -ENOTSUP;
        sessions_most = most;
        session_cache = stook_cache_create("session", sizeof(struct session), NULL);
        user_cache = stook_cache_create("user", sizeof(struct user), NULL);
        return session_cache && user_cache ? 0 : -ENOMEM;
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

/* The object is free once the readers that may see it have left. -EAGAIN: too many wait already. */
static void free_later(struct stook_cache *cache, void *object)
{
        if (stook_cache_free_rcu(cache, object) == -EAGAIN) {
                stook_epoch_synchronize();
                stook_cache_free(cache, object);
        }
}

/* A reader may be at the session still, or at its user, and goes on from there. */
static void forget(struct session **place)
{
        struct session *session = *place;
        struct user *user = session->user;

        __atomic_store_n(place, session->next, __ATOMIC_RELEASE);
        free_later(session_cache, session);
        sessions_now--;
        if (!--user->sessions) {
                *user_place(user->name) = user->next;
                free_later(user_cache, user);
        }
}

/* Takes the user that was made, if it is needed. Once it changes something it cannot fail. */
static int login_locked(const char *name, char *const *tokens, size_t n, void **sessions,
                        struct user **made)
{
        struct user **place = user_place(name), *user = *place;

        if (sessions_now + n > sessions_most)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (*place_of(tokens[i]))
                        return -EEXIST;
                for (size_t k = 0; k < i; k++) {
                        if (!strcmp(tokens[k], tokens[i]))
                                return -EEXIST;
                }
        }
        if (!user) {
                user = *made;
                *made = NULL;
                strcpy(user->name, name);
                *place = user;
        }
        for (size_t i = 0; i < n; i++) {
                struct session *session = sessions[i];
                struct session **bucket = &table[hash_of(tokens[i]) % BUCKETS];

                strcpy(session->token, tokens[i]);
                session->user = user;
                session->next = *bucket;
                __atomic_store_n(bucket, session, __ATOMIC_RELEASE);
                user->sessions++;
        }
        sessions_now += n;
        return 0;
}

int store_login(const char *user, char *const *tokens, size_t n)
{
        struct user *made;
        void *sessions[TOKENS_MOST];
        int error = -ENOMEM;

        if (n > TOKENS_MOST || stook_cache_alloc_bulk(session_cache, STOOK_ALLOC_ZERO, n, sessions))
                return -ENOMEM;
        made = stook_cache_zalloc(user_cache);
        if (made) {
                pthread_mutex_lock(&lock);
                error = login_locked(user, tokens, n, sessions, &made);
                pthread_mutex_unlock(&lock);
        }
        if (error)
                stook_cache_free_bulk(session_cache, n, sessions);
        stook_cache_free(user_cache, made);
        return error;
}

int store_who(const char *token, char *user)
{
        struct session *session;

        stook_epoch_read_lock();
        session = __atomic_load_n(&table[hash_of(token) % BUCKETS], __ATOMIC_ACQUIRE);
        while (session && strcmp(session->token, token))
                session = __atomic_load_n(&session->next, __ATOMIC_ACQUIRE);
        if (session)
                memcpy(user, session->user->name, USER_BYTES);
        stook_epoch_read_unlock();
        return session ? 0 : -ENOENT;
}

int store_logout(const char *token)
{
        struct session **place;
        int error = -ENOENT;

        pthread_mutex_lock(&lock);
        place = place_of(token);
        if (*place) {
                forget(place);
                error = 0;
        }
        pthread_mutex_unlock(&lock);
        return error;
}

size_t store_sessions(void)
{
        size_t now;

        pthread_mutex_lock(&lock);
        now = sessions_now;
        pthread_mutex_unlock(&lock);
        return now;
}

/* A session that is left would be reported by the destroy, which waits for readers. */
void store_close(void)
{
        for (size_t i = 0; i < BUCKETS; i++) {
                while (table[i])
                        forget(&table[i]);
        }
        stook_cache_destroy(session_cache);
        stook_cache_destroy(user_cache);
}
