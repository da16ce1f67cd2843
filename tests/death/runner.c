/*
 * What this proves: a misuse is reported by exactly the line that its file promises, and ends as
 * that file says.
 *
 * Each misuse is a file of its own, linked with this one. Its first line is
 *      // aborts: TEXT         or      // goes on: TEXT
 * Numbers that differ from run to run are written as 0x*. Further // lines are further lines of the
 * report. The line that names the program, process and thread is not among them: it is held against
 * what they are, and a report that aborts has one. Nor are the calls that noticed the misuse. The
 * misuse runs in a child.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one_cpu.h"

void misuse(void);

static char expected[16384], seen[16384];
static int  aborts;

/* Addresses out: 0x7f12 becomes 0x*. */
static void normalise(char *text)
{
        char *to = text;

        for (const char *from = text; *from;) {
                *to++ = *from++;
                if (to - text >= 2 && to[-2] == '0' && to[-1] == 'x') {
                        from += strspn(from, "0123456789abcdef");
                        *to++ = '*';
                }
        }
        *to = 0;
}

/* Takes out the lines that name the program. Returns how many. */
static int take_program_lines(const char *program, pid_t pid)
{
        const char *name = strrchr(program, '/');
        char line[200], *at;
        int count = 0;

        snprintf(line, sizeof(line), "  program %s (pid %d), thread %d\n",
                 name ? name + 1 : program, (int)pid, (int)pid);
        for (; (at = strstr(seen, line)); count++)
                memmove(at, at + strlen(line), strlen(at + strlen(line)) + 1);
        return count;
}

/* Takes out the calls that noticed the misuse, which STOOK_DEBUG has in every report. */
static void take_calls(void)
{
        char *at = strstr(seen, "  found here\n"), *end;

        if (!at)
                return;
        end = at + strcspn(at, "\n") + 1;
        while (!strncmp(end, "    #", 5))
                end += strcspn(end, "\n") + (strchr(end, '\n') != NULL);
        memmove(at, end, strlen(end) + 1);
}

static int read_expected(const char *path)
{
        FILE *f = fopen(path, "r");
        char  line[1000];

        if (!f)
                return -1;
        for (int i = 0; fgets(line, sizeof(line), f) && !strncmp(line, "// ", 3); i++) {
                char *text = line + 3;

                if (!i) {
                        aborts = !strncmp(text, "aborts: ", 8);
                        if (!aborts && strncmp(text, "goes on: ", 9))
                                break;
                        text += aborts ? 8 : 9;
                }
                strcat(expected, text);
        }
        fclose(f);
        return *expected ? 0 : -1;
}

int main(int argc, char **argv)
{
        size_t  n = 0;
        ssize_t r;
        int     out[2], status, programs;
        pid_t   pid;

        (void)argc;
        if (read_expected(DEATH_SOURCE) || pipe(out)) {
                printf("%s: no first line to expect\n", DEATH_SOURCE);
                return 1;
        }
        pid = fork();
        if (!pid) {
                dup2(out[1], 2);
                stay_on_one_cpu();
                misuse();
                _exit(0);
        }
        close(out[1]);
        while (n < sizeof(seen) / 2 && (r = read(out[0], seen + n, sizeof(seen) / 2 - n)) > 0)
                n += (size_t)r;
        waitpid(pid, &status, 0);
        programs = take_program_lines(argv[0], pid);
        take_calls();
        normalise(seen);
        if (aborts && programs != 1) {
                printf("%d lines name the program, which is %s (pid %d)\n", programs, argv[0],
                       (int)pid);
                return 1;
        }
        if (strcmp(seen, expected)) {
                printf("expected: %sseen:     %s", expected, seen);
                return 1;
        }
        if (aborts ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT : status != 0) {
                printf("it ended with status 0x%x\n", status);
                return 1;
        }
        return 0;
}
