/*
 * Purpose: functions, files and lines of addresses in a process, by its debug information
 * (elfutils' libdwfl). Without libdw at compile time nothing is found.
 */
#ifndef STOOK_CLI_SYMBOLS_H
#define STOOK_CLI_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct symbols;

/* Was this command built with libdw? */
bool symbols_are_built_in(void);

/* The modules of a process, which must not end meanwhile. NULL: they cannot be had. */
struct symbols *symbols_of_process(pid_t pid);
/* The modules that are mapped as a file of the form of /proc/PID/maps says. NULL: as above. */
struct symbols *symbols_of_maps(FILE *maps);
void symbols_release(struct symbols *symbols);
/*
 * Adds a file that is not mapped, or not any more: where it is taken to begin from now on, which is
 * at none of the process's addresses; the same each time. 0: there is no room for it.
 */
uint64_t symbols_add_file(struct symbols *symbols, const char *path);
/* The file that is mapped there, or was added; valid until the next one is added. NULL: none. */
const char *symbols_file_at(struct symbols *symbols, uint64_t address);

/* One function at an address; several where functions were inlined, the innermost first. */
struct symbol {
        const char *function;           /* NULL: not known */
        const char *linkage;            /* its name for the linker; NULL: not known */
        const char *file;               /* NULL: not known; as the compiler was given it */
        int         line;
        const char *module;             /* NULL: no file is mapped there */
        uint64_t    offset;             /* of the address in the module */
        bool        is_inlined;         /* into the next one */
};

/*
 * Calls @each for each function at @address. A return address is looked up one byte before, where
 * the call is. Strings are valid during the call.
 */
void symbols_find(struct symbols *symbols, uint64_t address, bool is_return,
                  void (*each)(const struct symbol *symbol, void *data), void *data);

/*
 * The build id of the file that is there now for @address, in hexadecimal. "": not known.
 */
void symbols_build_id(struct symbols *symbols, uint64_t address, char id[129]);

/* Does the module at @address have the library inside? A program does that links it statically. */
bool symbols_have_library(struct symbols *symbols, uint64_t address);

/* The innermost call of a thread, and a copy of its stack from there on. */
struct symbols_call {
        uint64_t pc, stack;             /* `stack`: where the bytes were */
        unsigned count;
        struct {
                unsigned number;        /* DWARF's */
                uint64_t value;
        } registers[32];
        size_t   bytes;
        char    *copy;
};

/*
 * symbols_walk.c: the return addresses of a call and of its callers, innermost first, by the tables
 * of the files that are mapped. Return: how many, at most @most.
 */
size_t symbols_walk(struct symbols *symbols, pid_t pid, const struct symbols_call *call,
                    uint64_t *addresses, size_t most);

#endif
