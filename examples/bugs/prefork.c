/* A server that forks: the child has a copy of what the parent prepared. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct state {
        char *greeting;
        int   served;
};

static struct state state;

static void clean_up(void)
{
        free(state.greeting);
#ifdef FIXED
        state.greeting = NULL;
#endif
}

static int serve(void)
{
        state.served++;
        clean_up();                     /* the child is done with it */
        return state.served == 1 ? 0 : 1;
}

int main(void)
{
        pid_t child;
        int status;

        state.greeting = calloc(1, 600);
        if (!state.greeting)
                return 1;
        snprintf(state.greeting, 600, "220 ready");
        atexit(clean_up);
        child = fork();
        if (!child)
                exit(serve());
        if (child < 0 || waitpid(child, &status, 0) != child)
                return 1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
