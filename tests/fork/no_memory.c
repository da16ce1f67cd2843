/*
 * Proves: a child that is forked while another thread is in the function of stook_on_no_memory()
 * has its own malloc call that function again. The program has no cache: each object is large.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stook/stook.h>

/* No machine has so much. Not known to the compiler. */
static volatile size_t much = (size_t)1 << 46;
static atomic_int inside, leave, calls;

static int wait_inside(void *data)
{
        (void)data;
        calls++;
        inside = 1;
        while (!leave)
                usleep(1000);
        return 0;
}

static void *ask(void *unused)
{
        if (stook_malloc(much))
                return &inside;
        return unused;
}

static int child(void)
{
        leave = 1;
        return stook_malloc(much) || calls != 2;
}

int main(void)
{
        pthread_t thread;
        void *answer;
        int status;
        pid_t pid;

        stook_on_no_memory(wait_inside, NULL);
        if (pthread_create(&thread, NULL, ask, NULL))
                return 1;
        while (!inside)
                usleep(1000);
        pid = fork();
        if (!pid)
                _exit(child());
        if (waitpid(pid, &status, 0) != pid || status) {
                printf("the child ended with %#x: its malloc did not ask\n", (unsigned)status);
                return 1;
        }
        leave = 1;
        if (pthread_join(thread, &answer) || answer || calls != 1)
                return 1;
        return 0;
}
