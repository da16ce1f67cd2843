/* stook-debug(3): reports go to a log of the program, too. */
#include <stdio.h>
#include <stook/debug.h>

static void note(const struct stook_report *report, void *data)
{
        fprintf(data, "misuse %d: %s\n", (int)report->fault, report->text);
}

int main(void)
{
        struct stook_cache *cache = stook_cache_create("checked", 64, NULL);
        int faults;

        stook_on_report(note, stdout);
        faults = cache ? stook_cache_validate(cache) : -1;
        printf("faults: %d\n", faults);
        return faults || stook_cache_destroy(cache);
}
