/* stook-sampling(3): samples of a while of the program. */
#include <stdio.h>
#include <stook/stook.h>

static void work(void)
{
        for (int i = 0; i < 100000; i++)
                stook_free(stook_malloc(1000));
}

int main(void)
{
        struct stook_sampling_stats stats = { .stats_size = sizeof(stats) };

        if (stook_sampling_start(NULL))
                return 1;
        work();
        if (stook_sampling_get_stats(&stats))
                return 1;
        printf("%llu samples\n", (unsigned long long)stats.kept);
        stook_sampling_stop();
        return 0;
}
