/*
 * What this proves: a STOOK_* variable whose name is near that of one that is read is told in one
 * write, with the nearest name; right names, names that are near none, and other programs'
 * variables are not; nothing is told in a set-user-ID process; errno survives.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <cmocka.h>

#include "child.h"
#include "process/process.h"

#define NO_SUCH ": there is no such variable; the nearest is "

static const struct { const char *name, *nearest; } misspelt[] = {
        { "STOOK_CAPACTY", "STOOK_CAPACITY" },          /* a letter left out */
        { "STOOK_SSLOTS", "STOOK_SLOTS" },              /* added */
        { "STOOK_TIMY", "STOOK_TINY" },                 /* replaced */
        { "STOOK_TPH", "STOOK_THP" },                   /* two exchanged */
        { "STOOK_MAINTAINANCE", "STOOK_MAINTENANCE" },
        { "STOOK_ONFAULT", "STOOK_ON_FAULT" },
        { "STOOK_DECAYMS", "STOOK_DECAY_MS" },
        { "STOOK_MIANTAINANCE", "STOOK_MAINTENANCE" },  /* three slips */
        { "STOOK_SLOST", "STOOK_SLOTS" },               /* nearer than STATS */
        { "STOOK_DECAY", "STOOK_DECAY_MS" },            /* a word left out */
        { "STOOK_BACKLOG", "STOOK_RCU_BACKLOG" },
        { "STOOK_NUMA_STRICT_NUMA", "STOOK_STRICT_NUMA" },
        { "STOOK_MERGE_CACHES_THAT_ARE_OF_EQUAL_GEOMETRY", "STOOK_MERGE" },
        { "STOOK_slots", "STOOK_SLOTS" },
};

static const char *const silent[] = {
        "STOOK_SLOTS=locked", "STOOK_CAPACITY=many", "STOOK_STATS=", "STOOK_X=1", "STOOK_=1",
        "STOOK_VERBOSE=1", "STOOK_TI=1", "STOOK_TINYTINY=1", "STOOK_TOPOLOGICAL=1",
        "STOOK_SLOTSSLOTSSLOTSSLOTSSLOTSSLOTSSLOTS=1",
        "STOOK_SLOT", "TOOK_SLOT=1", "XSTOOK_SLOT=1", "STOOKSLOT=1", "stook_slot=1", "=", "",
};

static char *environment[64];
static int ends[2], real_stderr;

/* CHECK(), seen although stderr is a pipe. */
#define EXPECT(what)                            \
        do {                                    \
                int holds = (what);             \
                if (!holds)                     \
                        dup2(real_stderr, 2);   \
                CHECK(holds && #what);          \
        } while (0)

/* What was written, by one write; "" if nothing was. */
static const char *told(void)
{
        static char text[512];
        ssize_t n = read(ends[0], text, sizeof(text) - 1);

        text[n > 0 ? n : 0] = 0;
        return text;
}

/* Of a packet pipe, a read gives what one write put. */
static void open_pipe(void)
{
        real_stderr = dup(2);
        CHECK(!pipe2(ends, O_DIRECT | O_NONBLOCK) && dup2(ends[1], 2) == 2);
        environ = environment;
}

static void check_misspelt(void)
{
        char entry[128], wanted[256];

        open_pipe();
        for (size_t i = 0; i < sizeof(misspelt) / sizeof(misspelt[0]); i++) {
                snprintf(entry, sizeof(entry), "%s=1", misspelt[i].name);
                snprintf(wanted, sizeof(wanted), "stook: %s" NO_SUCH "%s\n", misspelt[i].name,
                         misspelt[i].nearest);
                environment[0] = entry;
                errno = 4711;
                stook_env_check_spelling();
                EXPECT(errno == 4711);
                EXPECT(!strcmp(told(), wanted));
                EXPECT(!*told());
        }
}

static void nearest_is_told(void **state)
{
        (void)state;
        assert_child_fine(check_misspelt);
}

static void check_silent(void)
{
        open_pipe();
        for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
                environment[i] = (char *)silent[i];
        stook_env_check_spelling();
        EXPECT(!*told());
        environ = NULL;
        stook_env_check_spelling();
        EXPECT(!*told());
}

static void others_are_not(void **state)
{
        (void)state;
        assert_child_fine(check_silent);
}

/* A line each; a long name is cut, and so is one that is not to be printed. */
static void check_foreign(void)
{
        static char long_name[5000];

        open_pipe();
        strcpy(long_name, "STOOK_SLOTS_");
        memset(long_name + 12, 'X', 4000);
        strcat(long_name, "=1");
        environment[0] = (char *)"STOOK_SLO\nTS=1";
        environment[1] = long_name;
        stook_env_check_spelling();
        EXPECT(!strcmp(told(), "stook: STOOK_SLO" NO_SUCH "STOOK_SLOTS\n"));
        EXPECT(strlen(told()) < 200);
        EXPECT(!*told());
}

static void foreign_names_are_cut(void **state)
{
        (void)state;
        assert_child_fine(check_foreign);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nearest_is_told),
                cmocka_unit_test(others_are_not),
                cmocka_unit_test(foreign_names_are_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
