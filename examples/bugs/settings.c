/* A parser of "key = value" lines. Keys and values are strings of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef FIXED
#define STRING_BYTES(n) ((n) + 1)
#else
#define STRING_BYTES(n) (n)
#endif

struct setting {
        struct setting *next;
        char *key, *value;
};

static const char *const lines[] = { "user = www", "listen = 127.0.0.1:8080", "workers = 4" };

static char *copy_part(const char *from, const char *to)
{
        size_t n = (size_t)(to - from);
        char *copy = malloc(STRING_BYTES(n));

        if (!copy)
                exit(1);
        memcpy(copy, from, n);
        copy[n] = '\0';
        return copy;
}

static struct setting *parse_line(const char *line, struct setting *next)
{
        const char *equals = strstr(line, " = ");
        struct setting *setting = malloc(sizeof(*setting));

        if (!setting)
                exit(1);
        setting->key = copy_part(line, equals);
        setting->value = copy_part(equals + 3, line + strlen(line));
        setting->next = next;
        return setting;
}

static void forget(struct setting *setting)
{
        free(setting->key);
        free(setting->value);
        free(setting);
}

int main(void)
{
        struct setting *all = NULL;

        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                all = parse_line(lines[i], all);
        while (all) {
                struct setting *next = all->next;

                printf("%s is %s\n", all->key, all->value);
                forget(all);
                all = next;
        }
        return 0;
}
