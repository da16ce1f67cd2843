/*
 * A server whose every request has a heap, which ends with it, and whose figures a scraper reads:
 *
 *      GET /words/a+few+words    the words in reverse order, built of objects of the request's heap
 *      GET /metrics              the process's metrics, for Prometheus
 *
 * It prints the port that it listens on, and ends when its standard input does.
 */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <stook/heap.h>
#include <stook/stats.h>

#define REQUEST_BYTES 4096

struct word {
        struct word *next;
        char text[];
};

/* Of one request, or the server is full: all requests together have at most 64 MiB. */
static struct stook_group *requests;

static void answer(int to, const char *kind, const char *text, size_t bytes)
{
        dprintf(to, "HTTP/1.0 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", kind,
                bytes);
        while (bytes) {
                ssize_t n = write(to, text, bytes);

                if (n <= 0)
                        return;
                text += n;
                bytes -= (size_t)n;
        }
}

static void tell_metrics(int to)
{
        char *text = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&text, &bytes);

        if (!out)
                return;
        stook_metrics_write(out, STOOK_METRICS_PROMETHEUS);
        if (!fclose(out))
                answer(to, "text/plain; version=0.0.4", text, bytes);
        free(text);
}

/* Nothing of it is freed: the heap is. */
static void turn_words(int to, struct stook_heap *heap, char *line)
{
        struct word *words = NULL;
        char *rest = line, *piece, *text, *end;
        size_t bytes = strlen(line) + 2;

        while ((piece = strsep(&rest, "+"))) {
                struct word *word = stook_heap_alloc(heap, sizeof(*word) + strlen(piece) + 1);

                if (!word)
                        return;
                strcpy(word->text, piece);
                word->next = words;
                words = word;
        }
        end = text = stook_heap_alloc(heap, bytes);
        if (!text)
                return;
        for (struct word *word = words; word; word = word->next)
                end = stpcpy(stpcpy(end, word->text), word->next ? " " : "\n");
        answer(to, "text/plain", text, (size_t)(end - text));
}

static void serve(int client)
{
        struct stook_heap *heap = stook_heap_create("request", STOOK_HEAP_ARGS(.group = requests));
        char *line = heap ? stook_heap_alloc(heap, REQUEST_BYTES) : NULL, *end;
        ssize_t n = line ? read(client, line, REQUEST_BYTES - 1) : 0;

        if (n > 0) {
                line[n] = '\0';
                end = strchr(line, '\r');
                if (end)
                        *end = '\0';
                end = strstr(line, " HTTP/");
                if (end)
                        *end = '\0';
                if (!strcmp(line, "GET /metrics"))
                        tell_metrics(client);
                else if (!strncmp(line, "GET /words/", 11))
                        turn_words(client, heap, line + 11);
                else
                        dprintf(client, "HTTP/1.0 404 Not Found\r\n\r\n");
        }
        stook_heap_destroy(heap);
        close(client);
}

int main(void)
{
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t bytes = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct pollfd wait[] = { { .fd = listener, .events = POLLIN },
                                 { .fd = STDIN_FILENO, .events = POLLIN } };

        requests = stook_group_create("requests", NULL, 64 << 20);
        if (!requests || bind(listener, (struct sockaddr *)&address, bytes) ||
            listen(listener, 16) || getsockname(listener, (struct sockaddr *)&address, &bytes)) {
                perror("server");
                return 1;
        }
        printf("%u\n", ntohs(address.sin_port));
        fflush(stdout);
        for (;;) {
                char byte;

                if (poll(wait, 2, -1) < 0)
                        return 1;
                if (wait[1].revents && read(STDIN_FILENO, &byte, 1) <= 0)
                        break;
                if (wait[0].revents) {
                        int client = accept(listener, NULL, NULL);

                        if (client >= 0)
                                serve(client);
                }
        }
        stook_group_destroy(requests);
        return 0;
}
