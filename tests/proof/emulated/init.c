/*
 * Purpose: the first process of an emulated machine. It mounts what programs look for, runs the
 * commands of /job one after the other, says how each ended, and switches the machine off.
 * Place: linked statically and put into the first file system by tools/machines/emulated-machine,
 * which writes /job. A line is a command, its words separated by tabs: seconds it may take,
 * NAME=VALUE..., program, arguments...
 * Answer: on the console "ENDED number status" for each command: 128 + the signal for one that was
 * killed, 124 for one out of time. The last line is "RESULT status", the first status that was
 * neither 0 nor 77. 77 says that a test cannot run here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define OUT_OF_TIME 124
#define CANNOT_RUN 77
#define WORDS 64

static void end(int result)
{
        printf("RESULT %d\n", result);
        fflush(stdout);
        tcdrain(1);
        reboot(RB_POWER_OFF);
        for (;;)                                        /* the first process must not end */
                pause();
}

static void mount_all(void)
{
        static const struct { const char *type, *at;
        } systems[] = {
                { "proc", "/proc" }, { "sysfs", "/sys" },     { "devtmpfs", "/dev" },
                { "tmpfs", "/tmp" }, { "tmpfs", "/dev/shm" },
        };

        for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++) {
                mkdir(systems[i].at, 0755);
                if (mount(systems[i].type, systems[i].at, systems[i].type, 0, NULL))
                        printf("no %s: %s\n", systems[i].at, strerror(errno));
        }
}

static void run_child(char **word)
{
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setsid();
        for (; *word && strchr(*word, '='); word++)
                putenv(*word);
        if (*word)
                execvp(*word, word);
        printf("%s: %s\n", *word ? *word : "no program", strerror(errno));
        fflush(stdout);
        _exit(127);
}

/* Reaps processes, orphans included, until the child has ended. */
static int wait_for(pid_t child, int seconds)
{
        struct timespec until, now;
        int status;
        pid_t ended;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += seconds;
        for (;;) {
                while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
                        if (ended == child)
                                return WIFEXITED(status) ? WEXITSTATUS(status)
                                                         : 128 + WTERMSIG(status);
                clock_gettime(CLOCK_MONOTONIC, &now);
                if (now.tv_sec > until.tv_sec)
                        return OUT_OF_TIME;
                usleep(20000);
        }
}

static int run(char *line, int number)
{
        char *word[WORDS + 1];
        int words = 0, seconds, status;
        pid_t child;

        for (char *at = strtok(line, "\t"); at && words < WORDS; at = strtok(NULL, "\t"))
                word[words++] = at;
        word[words] = NULL;
        seconds = words ? atoi(word[0]) : 0;
        printf("BEGUN %d\n", number);
        fflush(stdout);
        child = fork();
        if (!child)
                run_child(word + 1);
        status = child < 0 ? 126 : wait_for(child, seconds);
        if (status == OUT_OF_TIME)
                printf("out of time after %d s\n", seconds);
        kill(-1, SIGKILL);                              /* all but this process */
        while (waitpid(-1, NULL, 0) > 0)
                ;
        printf("ENDED %d %d\n", number, status);
        fflush(stdout);
        return status;
}

int main(void)
{
        int result = 0, number = 0;
        char *line = NULL;
        size_t room = 0;
        FILE *job;

        mount_all();
        job = fopen("/job", "re");
        if (!job)
                end(126);
        setenv("PATH", "/:/bin", 1);
        setenv("LD_LIBRARY_PATH", "/lib", 1);
        while (getline(&line, &room, job) > 0) {
                int status;

                line[strcspn(line, "\n")] = 0;
                status = run(line, number++);
                if (status && status != CANNOT_RUN && !result)
                        result = status;
        }
        end(result);
}
