/* stook-malloc(3): a line that grows. */
#include <stdio.h>
#include <string.h>
#include <stook/malloc.h>

int main(void)
{
        char *line = stook_malloc(80), *longer;

        if (!line)
                return 1;
        strcpy(line, "a line");
        longer = stook_realloc(line, 160);      /* may move it */
        if (longer)
                line = longer;
        printf("%s: %zu bytes\n", line, stook_usable_size(line));
        stook_free(line);
        return 0;
}
