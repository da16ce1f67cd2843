/* A log keeps its last lines, without the blanks at their ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 4

struct log {
        char    *line[KEPT];
        unsigned next;
};

static const char *const messages[] = { "started  ", "connected\n", " \n", "stopped\n" };

static void trim_end(char *line)
{
        char *end = line + strlen(line) - 1;

#ifdef FIXED
        while (end >= line && (*end == ' ' || *end == '\n'))
                end--;
#else
        do
                end--;
        while (end[1] == ' ' || end[1] == '\n' || *end == ' ');
#endif
        end[1] = '\0';
}

static void log_add(struct log *log, const char *message)
{
        char **line = &log->line[log->next++ % KEPT];

        free(*line);
        *line = strdup(message);
        if (!*line)
                exit(1);
        trim_end(*line);
}

int main(void)
{
        struct log log = { .next = 0 };

        for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++)
                log_add(&log, messages[i]);
        for (unsigned i = 0; i < KEPT; i++) {
                printf("%s\n", log.line[i]);
                free(log.line[i]);
        }
        return 0;
}
