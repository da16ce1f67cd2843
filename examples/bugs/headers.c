/* The header of a message: names and values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct header {
        struct header *next;
        char          *name, *value;
};

static struct header *header_new(const char *name, const char *value)
{
        struct header *header = malloc(sizeof(*header));

        if (!header)
                return NULL;
        header->next = NULL;
        header->name = strdup(name);
        header->value = strdup(value);
#ifdef FIXED
        if (!header->name || !header->value) {
                free(header->name);
                free(header->value);
                free(header);
                return NULL;
        }
#endif
        return header;
}

static size_t header_bytes(const struct header *header)
{
        return strlen(header->name) + 2 + strlen(header->value) + 2;
}

static void header_free(struct header *header)
{
        while (header) {
                struct header *next = header->next;

                free(header->name);
                free(header->value);
                free(header);
                header = next;
        }
}

int main(void)
{
        struct header *host = header_new("Host", "example.org");
        struct header *accept = header_new("Accept", "text/html");
        size_t bytes;

        if (!host || !accept) {
                header_free(host);
                header_free(accept);
                return 1;
        }
        host->next = accept;
        bytes = header_bytes(host) + header_bytes(accept);
        header_free(host);
        return bytes != 38;
}
