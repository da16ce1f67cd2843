/* Sessions by user. A session that has expired is closed, and said. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/stook.h>

#define SESSIONS 6

struct session {
        int  expires;
        char user[24];
};

static struct stook_cache *cache;
static struct session *sessions[SESSIONS];

static struct session *session_open(const char *user, int expires)
{
        struct session *session = stook_cache_zalloc(cache);

        if (!session)
                exit(1);
        snprintf(session->user, sizeof(session->user), "%s", user);
        session->expires = expires;
        return session;
}

static void close_expired(int now)
{
        for (unsigned i = 0; i < SESSIONS; i++) {
                struct session *session = sessions[i];

                if (!session || session->expires > now)
                        continue;
                sessions[i] = NULL;
#ifdef FIXED
                printf("%.24s has left\n", session->user);
                stook_cache_free(cache, session);
#else
                stook_cache_free(cache, session);
                printf("%.24s has left\n", session->user);
#endif
        }
}

int main(void)
{
        static const char *const users[SESSIONS] = { "ada", "ben", "cleo", "dan", "eve", "fay" };

        cache = stook_cache_create("session", sizeof(struct session), NULL);
        if (!cache)
                return 1;
        for (int i = 0; i < SESSIONS; i++)
                sessions[i] = session_open(users[i], 10 * i);
        for (int now = 0; now < 100; now += 20)
                close_expired(now);
        return stook_cache_destroy(cache) ? 1 : 0;
}
