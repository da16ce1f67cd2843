/*
 * Purpose: the memory of a process, read from outside: of one that runs, or of one that left a
 * core. One interface, two sources (memory_process.c, memory_core.c).
 * Failure: a read gives all bytes or an error. What it gives may be any bytes: the process runs on,
 * or is damaged. Readers check what they use.
 */
#ifndef STOOK_CLI_MEMORY_H
#define STOOK_CLI_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where the beginning of a file is mapped. */
struct memory_image {
        uint64_t start;
        char     path[256];             /* as the system names it; any bytes */
};

/* What a thread has in registers, and where its stack is in use: from `stack` up. */
#define MEMORY_REGISTERS 40
struct memory_thread {
        uint32_t id;
        unsigned count;
        uint64_t stack;                 /* 0: not known */
        uint64_t registers[MEMORY_REGISTERS];
};

struct memory {
        /* Return: 0; -EFAULT: not (all) there; -ESRCH: the process is gone; -EPERM. */
        int    (*read)(struct memory *memory, uint64_t address, void *out, size_t bytes);
        /* NULL for a core. As read. */
        int    (*write)(struct memory *memory, uint64_t address, const void *bytes, size_t count);
        void   (*close)(struct memory *memory);
        /* All mappings, in the form of /proc/PID/maps. NULL: not to be had. To be closed. */
        FILE  *(*maps)(struct memory *memory);
        /* Fills `threads`, as far as the system tells of them. */
        void   (*find_threads)(struct memory *memory);
        void    *source;                /* of memory_*.c */
        uint32_t pid;                   /* 0: not known */
        char     program[64];           /* its name; any bytes */
        struct memory_image *images;    /* those that may be ELF files */
        size_t   image_count;
        struct memory_thread *threads;
        size_t   thread_count;
        uint64_t missing;               /* bytes of a core that is cut off; they read as zeros */
        char     error[256];            /* one line, when an open or a read failed for good */
};

/* A running process. Return: 0, or -errno with memory->error set. */
int memory_open_process(struct memory *memory, uint32_t pid);
/*
 * Its state, a letter of /proc/PID/stat: 'T' or 't': it is stopped; 'Z': its memory is gone, and
 * its parent has not asked how it ended. 0: not known.
 */
char memory_process_state(uint32_t pid);
/* A core. @exe: the program's file, for what the core leaves out; NULL: none. As above. */
int memory_open_core(struct memory *memory, const char *path, const char *exe);
void memory_close(struct memory *memory);
/* Bytes of the whole process that are in huge pages now; 0 also if the system does not tell. */
uint64_t memory_huge_bytes(const struct memory *memory);

/* ---- memory_ranges.c ---- */
struct memory_range {
        uint64_t start, end;
        bool     readable, writable;
        const char *path;               /* as the system names it, any bytes; "": no file */
        /* Of `start`, from where the file's first mapping begins. A file's zeros are behind it. */
        uint64_t offset;
};
/* Calls @each for each mapping, by address, until it returns false. Return: 0; -errno. */
int memory_each_range(struct memory *memory,
                      bool (*each)(const struct memory_range *range, void *data), void *data);

/* ---- memory_pages.c: which pages of a running process have memory ---- */
struct memory_pages;
/* NULL: a core, or the system does not say. */
struct memory_pages *memory_pages_open(const struct memory *memory);
/* Bytes of the pages that [@address, @address + @bytes) lies on which have memory now. */
uint64_t memory_pages_resident(struct memory_pages *pages, uint64_t address, uint64_t bytes);
/* Has the program written any of these pages? Those that the system has swapped out, too. */
bool memory_pages_touched(struct memory_pages *pages, uint64_t address, uint64_t bytes);
/* False: something could not be read, so what was told is too little. */
bool memory_pages_close(struct memory_pages *pages);

static inline int memory_read(struct memory *memory, uint64_t address, void *out, size_t bytes)
{
        return memory->read(memory, address, out, bytes);
}

/* For the sources. False: no memory. */
bool memory_add_image(struct memory *memory, uint64_t start, const char *path, size_t length);
/* NULL: no memory. */
struct memory_thread *memory_add_thread(struct memory *memory, uint32_t id);

#endif
