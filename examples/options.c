/* stook-options(3): options in the program, and changed while it runs. */
#include <stdio.h>
#include <stook/options.h>

const char *stook_options = "decay_ms=100";

static int show(const struct stook_option *option, void *data)
{
        (void)data;
        if (option->source != STOOK_OPTION_DEFAULT)
                printf("%s=%s\n", option->name, option->value);
        return 0;
}

int main(void)
{
        if (stook_option_set("thp", "never"))
                return 1;
        return stook_option_for_each(show, NULL);
}
