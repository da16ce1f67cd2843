/*
 * Purpose: `stook top --web`: the page of `stook report`, which asks for the heap again and again.
 * The page has nothing of the process, and may be had by anyone; the heap takes the token. Whoever
 * asks within half the time between two looks gets the same answer, so that many cost one look.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/info/info.h"
#include "cli/page/page.h"
#include "cli/server/listen.h"
#include "cli/server/server.h"
#include "cli/text/plain_text.h"
#include "cli/top/top.h"

#define TOKEN_BYTES 16

struct web {
        struct target *target;
        double  every, looked_at;
        char   *page, *heap;            /* heap: the last look; NULL: none */
        size_t  page_bytes, heap_bytes;
};

static double seconds(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Return: 0; -errno. */
static int make_page(struct web *w)
{
        struct page page;
        char name[512];
        FILE *out = open_memstream(&w->page, &w->page_bytes);
        int error = out ? 0 : -ENOMEM;

        target_name(w->target, target_next(w->target, NULL), name, sizeof name);
        if (!error && !page_begin(&page, name))
                error = -ENOMEM;
        else if (!error) {
                json_number(&page.json, "live", w->every);
                error = page_end(&page, out);
        }
        if (out && fclose(out))
                error = -ENOMEM;
        return error;
}

/* Return: 0; -errno: the process is gone, as a rule. */
static int look(struct web *w)
{
        struct json json;
        char why[160];
        FILE *out;
        int error = 0;

        free(w->heap);
        w->heap = NULL;
        for (unsigned i = 0; i < w->target->count && !error; i++)
                if (w->target->libraries[i].readable)
                        error = library_read(&w->target->memory, &w->target->libraries[i]);
        if (!error && !target_next(w->target, NULL))
                error = -ESRCH;
        out = error ? NULL : open_memstream(&w->heap, &w->heap_bytes);
        if (!out)
                return error ? error : -ENOMEM;
        json_begin(&json, out);
        error = info_json_all(w->target, &json, why);
        json_end(&json);
        if (fclose(out))
                error = -ENOMEM;
        if (error) {
                free(w->heap);
                w->heap = NULL;
        }
        w->looked_at = seconds();
        return error;
}

static bool answer(void *data, struct MHD_Connection *connection, const char *url)
{
        struct web *w = data;

        if (!strcmp(url, "/"))
                return server_send(connection, "text/html; charset=utf-8", w->page, w->page_bytes);
        if (strcmp(url, "/heap"))
                return server_refuse(connection, 404, "/ and /heap\n");
        if ((!w->heap || seconds() - w->looked_at > w->every / 2) && look(w))
                return server_refuse(connection, 410, "the process is gone\n");
        return server_send(connection, "application/json", w->heap, w->heap_bytes);
}

int top_web(struct target *target, double every, const char *listen)
{
        struct web w = { .target = target, .every = every };
        struct server_options options = { .command = "top", .open = "/" };
        struct listen_request request = {
                "top", "--web", listen, "takes ADDRESS:PORT or [ADDRESS]:PORT",
                "it listens at loopback alone; from elsewhere: ssh -L",
        };
        unsigned char random[TOKEN_BYTES];
        char said[96], token[2 * TOKEN_BYTES + 1], url[160];
        int status = 0;

        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
                fputs("stook top: no random numbers for a token\n", stderr);
                return STATUS_CANNOT;
        }
        for (unsigned i = 0; i < TOKEN_BYTES; i++)
                snprintf(token + 2 * i, 3, "%02x", random[i]);
        options.socket = listen_at_port(&request, said, sizeof said);
        if (options.socket < 0)
                return STATUS_CANNOT;
        snprintf(url, sizeof url, "http://%s/#%s", said, token);
        options.listen = url;
        options.token = token;
        if (make_page(&w)) {
                fputs("stook top: no memory\n", stderr);
                close(options.socket);
                status = STATUS_CANNOT;
        } else {
                status = server_run(&options, answer, &w);
        }
        free(w.page);
        free(w.heap);
        return status;
}
