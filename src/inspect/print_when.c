/*
 * Purpose: STOOK_PRINT: print the statistics to standard error at exit, on a signal, or both.
 * Place: a constructor and a destructor of the library; print.c makes the text.
 * Invariants:
 *  I1 a signal that the program ignores or handles when the library starts is left alone. The
 *     program may install a handler of its own later; then the signal is the program's.
 *  I2 the handler uses nothing but its stack and the writes of print.c. It preserves errno.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "inspect/linked.h"
#include "inspect/print.h"
#include "os/os.h"

static const struct {
        const char *name;
        int number;
} signals[] = {
        { "HUP", SIGHUP }, { "QUIT", SIGQUIT }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
        { "URG", SIGURG }, { "WINCH", SIGWINCH }, { "IO", SIGIO },
};

#define TAKES \
        "exit, a signal (USR1, USR2, HUP, QUIT, URG, WINCH, IO, 34 to 64), or several with commas"

static bool at_exit;                    /* const after start */

static void put_to_stderr(const char *text, size_t bytes, void *data)
{
        (void)data;
        stook_os_write(text, bytes);
}

static void handle(int number)
{
        int before = errno;

        (void)number;
        stook_print_stats(put_to_stderr, NULL);
        errno = before;
}

static bool is_word(const char *text, size_t n, const char *word)
{
        return strlen(word) == n && !memcmp(text, word, n);
}

/* A name of the table, with or without SIG, or SIGRTMIN to SIGRTMAX by number. 0: none of them. */
static int signal_number(const char *text, size_t n)
{
        int number = 0;

        if (n > 3 && !memcmp(text, "SIG", 3)) {
                text += 3;
                n -= 3;
        }
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                if (is_word(text, n, signals[i].name))
                        return signals[i].number;
        for (size_t i = 0; i < n; i++) {
                if (text[i] < '0' || text[i] > '9' || number > 6)
                        return 0;
                number = number * 10 + (text[i] - '0');
        }
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                if (number == signals[i].number)
                        return number;
        return number >= 34 && number <= 64 ? number : 0;
}

static void install(int number)
{
        struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART | SA_ONSTACK };
        struct sigaction before;

        if (!sigaction(number, NULL, &before) && before.sa_handler == SIG_DFL)  /* I1 */
                sigaction(number, &action, NULL);
}

__attribute__((constructor)) static void start(void)
{
        const char *value = stook_os_env("STOOK_PRINT"), *c = value;

        for (; c; c = c[strcspn(c, ",")] ? c + strcspn(c, ",") + 1 : NULL) {
                size_t n = strcspn(c, ",");
                int number = signal_number(c, n);

                if (is_word(c, n, "exit")) {
                        at_exit = true;
                        stook_os_keep_stderr();
                } else if (number) {
                        install(number);
                } else {
                        stook_os_env_refuse("STOOK_PRINT", value, TAKES);
                }
        }
}

__attribute__((destructor)) void stook_print_end(void)
{
        if (at_exit)
                stook_print_stats(put_to_stderr, NULL);
}
