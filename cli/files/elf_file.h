/*
 * Purpose: facts about an ELF file: its machine, its interpreter, the libraries it needs,
 * and whether it defines a symbol. Reads 64-bit files of the host's byte order; the header tells
 * about all others.
 * Failure: damaged files give empty answers; nothing outside the mapping is read.
 */
#ifndef STOOK_CLI_ELF_FILE_H
#define STOOK_CLI_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
        const unsigned char *bytes;     /* the file, mapped */
        size_t               size;
        bool native; /* this command's class, byte order, machine: the rest is set */
        const char          *interpreter;
        const Elf64_Dyn     *dynamic;
        size_t               dynamic_count;
        const char          *strings;   /* of the dynamic section */
        size_t               strings_size;
};

/* Return: 0; -ENOEXEC: no ELF file; -errno. */
int  elf_file_open(const char *path, struct elf_file *file);
void elf_file_close(struct elf_file *file);

/* The i-th library of DT_NEEDED, or NULL. */
const char *elf_file_needed(const struct elf_file *file, unsigned i);
const char *elf_file_soname(const struct elf_file *file);
/* In the dynamic table: other objects of the process see it. */
bool elf_file_defines(const struct elf_file *file, const char *symbol);
/* There, or in the table that `strip` takes away. */
bool elf_file_contains(const struct elf_file *file, const char *symbol);
/*
 * Calls @each for each function of either table, with its addresses in the file, from its first
 * byte to behind its last one. A function may come twice.
 */
void elf_file_each_function(const struct elf_file *file,
                            void (*each)(const char *name, uint64_t from, uint64_t to, void *data),
                            void *data);
const char *elf_file_machine(const struct elf_file *file, char *buffer, size_t bytes);

#endif
