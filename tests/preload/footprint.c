/*
 * Proves what the drop-in costs a program that does nothing, and one that allocates much and frees
 * all: resident memory, bytes of a core dump, memory that mlockall takes, mappings, system calls.
 * A child runs as the program, with the drop-in preloaded and without.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB (1024 * 1024)

struct footprint {
        size_t resident, written, dumpable, locked, mappings;
        size_t own;                     /* KiB of the drop-in's file, but for its variables */
};

static char smaps[4 << 20];

static size_t number_after(const char *text, const char *key)
{
        const char *found = strstr(text, key);

        return found ? strtoul(found + strlen(key), NULL, 10) : 0;
}

/* Reads /proc/self/smaps without allocating: what is measured should not measure itself. */
static struct footprint measure(void)
{
        struct footprint f = {0};
        size_t bytes = 0;
        ssize_t got;
        int fd = open("/proc/self/smaps", O_RDONLY);

        memset(smaps, 0, sizeof(smaps));                /* its own pages count in both runs */
        while (fd >= 0 && (got = read(fd, smaps + bytes, sizeof(smaps) - 1 - bytes)) > 0)
                bytes += (size_t)got;
        close(fd);
        for (char *at = smaps, *flags, *end; (flags = strstr(at, "VmFlags:")); at = end + 1) {
                end = strchr(flags, '\n');
                *end = '\0';                            /* one mapping is one string now */
                f.mappings++;
                f.resident += number_after(at, "\nRss:") * 1024;
                f.written += number_after(at, "\nAnonymous:") * 1024;
                if (strstr(at, "libstook-malloc.so"))
                        f.own += number_after(at, "\nRss:") - number_after(at, "\nAnonymous:");
                f.locked += number_after(at, "\nLocked:") * 1024;
                /*
                 * The kernel dumps private mappings whole as soon as one page of theirs was
                 * touched.
                 */
                if (!strstr(flags, " dd") && number_after(at, "\nAnonymous:"))
                        f.dumpable += number_after(at, "\nSize:") * 1024;
        }
        return f;
}

static void child_main(const char *what)
{
        if (!strcmp(what, "nothing"))
                _exit(0);
        if (!strcmp(what, "mlockall") && mlockall(MCL_CURRENT | MCL_FUTURE))
                _exit(77);
        if (!strcmp(what, "churn")) {
                enum { OBJECTS = 4000 };
                static void *held[OBJECTS];
                uint64_t seed = 1;

                for (unsigned step = 0; step < 400000; step++) {
                        seed = seed * 6364136223846793005u + 1442695040888963407u;
                        unsigned i = (unsigned)(seed >> 40) % OBJECTS;
                        size_t   size = (seed >> 20) % ((seed >> 50) % 512 == 0 ? 3 * MIB
                                                        : (seed >> 50) % 16 == 0 ? 100000 : 2000);

                        if (held[i] && seed >> 63)
                                held[i] = realloc(held[i], size + 1);
                        else
                                free(held[i]), held[i] = malloc(size + 1);
                        if (!held[i])
                                _exit(95);
                        ((char *)held[i])[size / 2] = 1;
                }
                for (unsigned i = 0; i < OBJECTS; i++)
                        free(held[i]);
        }
        struct footprint f = measure();

        if (write(STDOUT_FILENO, &f, sizeof(f)) != sizeof(f))
                _exit(94);
        _exit(0);
}

/* The footprint of a child of our own program, with the drop-in or without. */
static struct footprint footprint_of(const char *what, bool preload)
{
        struct footprint f = {0};
        char  setting[4096];
        int   status, ends[2];
        pid_t child;

        snprintf(setting, sizeof(setting), "%s/libstook-malloc.so", getenv("STOOK_BUILD"));
        assert_int_equal(pipe(ends), 0);
        child = fork();
        assert_true(child >= 0);
        if (!child) {
                if (preload)
                        setenv("LD_PRELOAD", setting, 1);
                dup2(ends[1], STDOUT_FILENO);
                close(ends[0]), close(ends[1]);
                execl("/proc/self/exe", "footprint", what, (char *)NULL);
                _exit(93);
        }
        close(ends[1]);
        ssize_t got = read(ends[0], &f, sizeof(f));

        close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip();
        assert_int_equal(status, 0);
        assert_int_equal(got, sizeof(f));
        return f;
}

/*
 * Where the loader puts a file decides how its pages fall into the windows by which the kernel maps
 * files: the least of several children is the file's own.
 */
static size_t least_of_file(void)
{
        size_t least = SIZE_MAX;

        for (unsigned n = 0; n < 12; n++) {
                struct footprint with = footprint_of("idle", true);

                least = with.own < least ? with.own : least;
        }
        return least;
}

static size_t over(size_t with, size_t without)
{
        return with > without ? with - without : 0;
}

static void test_a_program_that_does_nothing(void **state)
{
        struct footprint without = footprint_of("idle", false), with = footprint_of("idle", true);

        (void)state;
        print_message("idle: resident +%zu KiB, written +%zu KiB, core +%zu KiB, mappings +%zu\n",
                      over(with.resident, without.resident) / 1024,
                      over(with.written, without.written) / 1024,
                      over(with.dumpable, without.dumpable) / 1024,
                      over(with.mappings, without.mappings));
        assert_true(with.mappings > without.mappings);          /* it is there at all */
        /* Resident says less: pages of files come in by windows that depend on the addresses. */
        assert_true(with.written < without.written + 200 * 1024);
        assert_true(with.dumpable < without.dumpable + 4 * MIB);
        assert_true(with.mappings < without.mappings + 40);
}

/* KiB that the kernel maps of the drop-in's file where one byte is touched. */
static size_t mapped_by_a_touch(void)
{
        char path[4096];
        struct stat file;
        const volatile char *bytes;
        size_t own;
        int fd;

        snprintf(path, sizeof(path), "%s/libstook-malloc.so", getenv("STOOK_BUILD"));
        fd = open(path, O_RDONLY);
        assert_int_equal(fstat(fd, &file), 0);
        bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        close(fd);
        assert_true(bytes != MAP_FAILED);
        (void)bytes[file.st_size / 2];
        own = measure().own;
        munmap((void *)bytes, (size_t)file.st_size);
        return own;
}

/*
 * Linux maps files by windows of 64 KiB, and the file begins at any page. What a start touches
 * (src/order.ld) is a little more than two windows, so it is in four windows at most. Where a touch
 * maps more, by larger pages, this says nothing of the order.
 */
#define WINDOW_KIB     64
#define START_MOST_KIB (4 * WINDOW_KIB)

static void test_code_of_a_start_is_together(void **state)
{
        size_t touch = mapped_by_a_touch(), own = least_of_file();

        (void)state;
        print_message("idle: %zu KiB of the library's file, %zu by a touch\n", own, touch);
        assert_true(own > 0 && touch > 0);
        if (touch > WINDOW_KIB)
                skip();
#ifndef __GLIBC__
        skip();                         /* musl starts by other code than what was put together */
#endif
        assert_true(own <= START_MOST_KIB);
}

/* System calls of a child that ends at once, the loader's among them; 0: it cannot be traced. */
static size_t system_calls_of(bool preload)
{
        char   setting[4096];
        size_t stops = 0;
        int    status;
        pid_t  child;

        snprintf(setting, sizeof(setting), "%s/libstook-malloc.so", getenv("STOOK_BUILD"));
        child = fork();
        assert_true(child >= 0);
        if (!child) {
                if (preload)
                        setenv("LD_PRELOAD", setting, 1);
                if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
                        _exit(77);
                execl("/proc/self/exe", "footprint", "nothing", (char *)NULL);
                _exit(93);
        }
        while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
                stops++;
                ptrace(PTRACE_SYSCALL, child, NULL, NULL);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                return 0;
        assert_int_equal(status, 0);
        return stops / 2;               /* entry and return */
}

static void test_a_start_makes_few_system_calls(void **state)
{
        size_t without = system_calls_of(false), with = system_calls_of(true);

        (void)state;
        if (!without || !with)
                skip();
        print_message("nothing: system calls +%zu\n", over(with, without));
        assert_true(with > without);
        /* Of 17, eight are the loader's. musl needs 26. Another machine may need a few more. */
        assert_true(with <= without + 31);
}

static void test_locked_memory(void **state)
{
        struct footprint without = footprint_of("mlockall", false),
                         with = footprint_of("mlockall", true);

        (void)state;
        print_message("mlockall: locked +%zu KiB\n", over(with.locked, without.locked) / 1024);
        assert_true(with.locked < without.locked + 2 * MIB);
}

static void test_churn_leaves_few_mappings(void **state)
{
        struct footprint with = footprint_of("churn", true);

        (void)state;
        print_message("churn: %zu mappings, resident %zu KiB\n", with.mappings,
                      with.resident / 1024);
        assert_true(with.mappings < 300);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_program_that_does_nothing),
                cmocka_unit_test(test_code_of_a_start_is_together),
                cmocka_unit_test(test_a_start_makes_few_system_calls),
                cmocka_unit_test(test_locked_memory),
                cmocka_unit_test(test_churn_leaves_few_mappings),
        };

        if (argc > 1)
                child_main(argv[1]);
        assert_non_null(getenv("STOOK_BUILD"));
        return cmocka_run_group_tests(tests, NULL, NULL);
}
