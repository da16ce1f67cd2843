/* stook-control(3): how the process runs, and memory given back. */
#include <stdio.h>
#include <stook/control.h>

int main(void)
{
        struct stook_mode mode = { .mode_size = sizeof(mode) };

        if (stook_get_mode(&mode))
                return 1;
        printf("%s, %u slots, version %s\n", mode.backend, mode.slots, stook_version());
        stook_maintain();                       /* in a program that idles: now and then */
        stook_trim(16 << 20);                   /* keep about 16 MiB */
        return 0;
}
