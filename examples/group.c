/* stook-group(3): what one request of a server may use. */
#include <stdio.h>
#include <stook/group.h>
#include <stook/malloc.h>

/* Its malloc fails beyond the limit. */
static int work(void)
{
        void *small = stook_malloc(1 << 20), *large = stook_malloc(128 << 20);
        int error = !small || large;

        stook_free(small);
        stook_free(large);
        return error;
}

static int serve(void)
{
        struct stook_group *request = stook_group_create("request", NULL, 64 << 20);
        struct stook_group_stats stats = { .stats_size = sizeof(stats) };
        struct stook_group *before;
        int error;

        if (!request)
                return -1;
        before = stook_group_enter(request);
        error = work();                         /* its malloc fails beyond 64 MiB */
        stook_group_enter(before);
        if (stook_group_get_stats(request, &stats) == 0)
                printf("refused: %llu\n", (unsigned long long)stats.refusals);
        stook_group_destroy(request);
        return error;
}

int main(void)
{
        return serve() != 0;
}
