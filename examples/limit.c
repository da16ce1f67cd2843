/* stook-limit(3): a cache with a limit, whose objects that can be spared are freed at the limit. */
#include <stdio.h>
#include <stook/cache.h>

struct session { int socket; char buffer[500]; };

/* Sessions that have nothing to do. */
static struct idle {
        struct session *session[8];
        size_t count;
} idle;

static size_t end_idle(struct stook_cache *sessions, size_t wanted, void *data)
{
        struct idle *idle = data;
        size_t freed = 0;

        for (; freed < wanted && idle->count; freed++)
                stook_cache_free(sessions, idle->session[--idle->count]);
        return freed;
}

static int use_sessions(void)
{
        struct stook_cache *sessions = stook_cache_create("session", sizeof(struct session),
                STOOK_CACHE_ARGS(.limit_objects = 8, .reclaim = end_idle, .limit_data = &idle));
        struct session *ninth;

        if (!sessions)
                return -1;
        while (idle.count < 8) {
                idle.session[idle.count] = stook_cache_alloc(sessions);
                if (!idle.session[idle.count])
                        return -1;
                idle.count++;
        }
        ninth = stook_cache_alloc(sessions);            /* an idle one has ended for it */
        if (!ninth || idle.count != 7)
                return -1;
        stook_cache_free(sessions, ninth);
        end_idle(sessions, 7, &idle);
        return stook_cache_destroy(sessions);
}

int main(void)
{
        int error = use_sessions();

        printf("sessions: %d\n", error);
        return error != 0;
}
