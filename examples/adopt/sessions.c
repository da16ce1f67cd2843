/*
 * A server that knows which user is behind a token. A line on a connection is a request, and gets a
 * line:
 *
 *      LOGIN user token...     OK, EXISTS or FULL: all tokens become sessions of the user, or none
 *      WHO token               the user, or NOBODY
 *      LOGOUT token            OK or NOBODY
 *      COUNT                   how many sessions there are
 *
 *      sessions [MOST]             prints the port that it listens on, ends when its input does
 *      sessions --work THREADS MS  no server: threads that call the store, and what it took
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "store.h"

#define LINE_BYTES 2048

static void answer(FILE *to, char *line)
{
        char *words[TOKENS_MOST + 2], *rest = line, *word, user[USER_BYTES];
        size_t n = 0, longest = 0;

        while (n < TOKENS_MOST + 2 && (word = strsep(&rest, " \r\n"))) {
                if (*word)
                        words[n++] = word;
                if (strlen(word) > longest)
                        longest = strlen(word);
        }
        if (longest >= USER_BYTES) {
                fputs("WHAT\n", to);
        } else if (n >= 3 && !strcmp(words[0], "LOGIN")) {
                int error = store_login(words[1], words + 2, n - 2);

                fputs(!error ? "OK\n" : error == -EEXIST ? "EXISTS\n" : "FULL\n", to);
        } else if (n == 2 && !strcmp(words[0], "WHO")) {
                fprintf(to, "%s\n", store_who(words[1], user) ? "NOBODY" : user);
        } else if (n == 2 && !strcmp(words[0], "LOGOUT")) {
                fputs(store_logout(words[1]) ? "NOBODY\n" : "OK\n", to);
        } else if (n == 1 && !strcmp(words[0], "COUNT")) {
                fprintf(to, "%zu\n", store_sessions());
        } else {
                fputs("WHAT\n", to);
        }
}

static void *serve(void *argument)
{
        int client = (int)(intptr_t)argument;
        FILE *in = fdopen(client, "r"), *out = fdopen(dup(client), "w");
        char line[LINE_BYTES];

        while (in && out && fgets(line, sizeof(line), in)) {
                answer(out, line);
                if (fflush(out))
                        break;
        }
        if (out)
                fclose(out);
        if (in)
                fclose(in);
        else
                close(client);
        return NULL;
}

static int listen_to_all(void)
{
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t bytes = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct pollfd wait[] = { { .fd = listener, .events = POLLIN },
                                 { .fd = STDIN_FILENO, .events = POLLIN } };

        if (bind(listener, (struct sockaddr *)&address, bytes) || listen(listener, 16) ||
            getsockname(listener, (struct sockaddr *)&address, &bytes)) {
                perror("sessions");
                return 1;
        }
        printf("%u\n", ntohs(address.sin_port));
        fflush(stdout);
        for (;;) {
                pthread_t thread;
                char byte;

                if (poll(wait, 2, -1) < 0)
                        return 1;
                if (wait[1].revents && read(STDIN_FILENO, &byte, 1) <= 0)
                        return 0;
                if (wait[0].revents) {
                        int client = accept(listener, NULL, NULL);

                        if (client < 0)
                                continue;
                        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)client))
                                close(client);
                        else
                                pthread_detach(thread);
                }
        }
}

/* What the threads of --work do: each has sessions of its own, and asks for all. */
#define OF_EACH 50000

static int threads, stop;

struct worker {
        pthread_t thread;
        char (*tokens)[TOKEN_BYTES], (*users)[USER_BYTES];
        unsigned long asked, renewed;
};

static struct worker *workers;

static unsigned pick(unsigned *random)
{
        *random = *random * 1664525 + 1013904223;
        return *random >> 8;
}

static void *work(void *argument)
{
        struct worker *self = argument;
        unsigned random = (unsigned)(self - workers) * 7919 + 1;

        while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
                char user[USER_BYTES];

                for (int i = 0; i < 64; i++) {
                        struct worker *other = &workers[pick(&random) % (unsigned)threads];

                        store_who(other->tokens[pick(&random) % OF_EACH], user);
                }
                self->asked += 64;
                for (int i = 0; i < 4; i++) {
                        unsigned which = pick(&random) % OF_EACH;
                        char *tokens[] = { self->tokens[which] };

                        store_logout(tokens[0]);
                        store_login(self->users[which], tokens, 1);
                }
                self->renewed += 4;
        }
        return NULL;
}

static int make_sessions(struct worker *self)
{
        self->tokens = calloc(OF_EACH, sizeof(*self->tokens));
        self->users = calloc(OF_EACH, sizeof(*self->users));
        if (!self->tokens || !self->users)
                return -ENOMEM;
        for (unsigned i = 0; i < OF_EACH; i++) {
                char *tokens[] = { self->tokens[i] };

                snprintf(tokens[0], TOKEN_BYTES, "%08x%04x%08x", i * 2654435761u,
                         (unsigned)(self - workers) & 0xffff, i);
                snprintf(self->users[i], USER_BYTES, "user-%u", i % 5000);
                if (store_login(self->users[i], tokens, 1))
                        return -ENOMEM;
        }
        return 0;
}

static long resident_kib(void)
{
        long size = 0, resident = 0;
        FILE *statm = fopen("/proc/self/statm", "r");

        if (!statm || fscanf(statm, "%ld %ld", &size, &resident) != 2)
                resident = 0;
        if (statm)
                fclose(statm);
        return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int work_for(int milliseconds)
{
        struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000L };
        unsigned long asked = 0, renewed = 0;
        double cpu;

        workers = calloc((size_t)threads, sizeof(*workers));
        for (int t = 0; t < threads; t++) {
                if (!workers || make_sessions(&workers[t]))
                        return 1;
        }
        printf("%zu sessions, %ld KiB resident\n", store_sessions(), resident_kib());
        fflush(stdout);
        cpu = (double)clock();
        for (int t = 0; t < threads; t++)
                pthread_create(&workers[t].thread, NULL, work, &workers[t]);
        nanosleep(&time, NULL);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        for (int t = 0; t < threads; t++) {
                pthread_join(workers[t].thread, NULL);
                asked += workers[t].asked;
                renewed += workers[t].renewed;
        }
        cpu = ((double)clock() - cpu) / CLOCKS_PER_SEC;
        printf("%.0f requests a ms, %.0f ns of processor time each, %ld KiB resident\n",
               (double)(asked + renewed) / milliseconds, cpu * 1e9 / (double)(asked + renewed),
               resident_kib());
        for (int t = 0; t < threads; t++) {
                free(workers[t].tokens);
                free(workers[t].users);
        }
        free(workers);
        return store_sessions() != (size_t)threads * OF_EACH;
}

int main(int argc, char **argv)
{
        int status;

        if (store_open(argc == 2 ? strtoul(argv[1], NULL, 10) : 1000000)) {
                fputs("sessions: the store cannot be opened\n", stderr);
                return 1;
        }
        if (argc == 4 && !strcmp(argv[1], "--work")) {
                threads = atoi(argv[2]);
                status = work_for(atoi(argv[3]));
                store_close();
        } else {
                status = listen_to_all();       /* its connections may still be served */
        }
        return status;
}
