/*
 * Purpose: facts about an ELF file; see elf_file.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/files/elf_file.h"

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#else
#define HOST_MACHINE EM_RISCV
#endif

static const Elf64_Ehdr *header(const struct elf_file *f)
{
        return (const Elf64_Ehdr *)f->bytes;
}

/* @bytes at @offset of the file, if they are there and aligned for what is read there. */
static const void *part(const struct elf_file *f, uint64_t offset, uint64_t bytes, size_t align)
{
        if (offset > f->size || bytes > f->size - offset || offset % align)
                return NULL;
        return f->bytes + offset;
}

static const Elf64_Phdr *program_header(const struct elf_file *f, unsigned i)
{
        const Elf64_Ehdr *h = header(f);

        if (i >= h->e_phnum || h->e_phentsize != sizeof(Elf64_Phdr))
                return NULL;
        return part(f, h->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr), 8);
}

/*
 * File offset of a virtual address, or UINT64_MAX. *@left: bytes of the file from there to the
 * segment's end.
 */
static uint64_t offset_of(const struct elf_file *f, uint64_t address, uint64_t *left)
{
        const Elf64_Phdr *p;

        for (unsigned i = 0; (p = program_header(f, i)); i++)
                if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
                    address - p->p_vaddr < p->p_filesz) {
                        *left = p->p_filesz - (address - p->p_vaddr);
                        return p->p_offset + (address - p->p_vaddr);
                }
        return UINT64_MAX;
}

static bool dynamic_value(const struct elf_file *f, int64_t tag, unsigned skip, uint64_t *value)
{
        for (size_t i = 0; i < f->dynamic_count && f->dynamic[i].d_tag != DT_NULL; i++)
                if (f->dynamic[i].d_tag == tag && !skip--) {
                        *value = f->dynamic[i].d_un.d_val;
                        return true;
                }
        return false;
}

/* A string of the dynamic section that ends inside it, or NULL. */
static const char *string(const struct elf_file *f, uint64_t at)
{
        if (!f->strings || at >= f->strings_size ||
            !memchr(f->strings + at, 0, f->strings_size - at))
                return NULL;
        return f->strings + at;
}

static void read_segments(struct elf_file *f)
{
        const Elf64_Phdr *p;
        uint64_t address, bytes, left;

        for (unsigned i = 0; (p = program_header(f, i)); i++) {
                if (p->p_type == PT_INTERP) {
                        const char *s = part(f, p->p_offset, p->p_filesz, 1);

                        if (s && p->p_filesz && !s[p->p_filesz - 1])
                                f->interpreter = s;
                } else if (p->p_type == PT_DYNAMIC) {
                        f->dynamic = part(f, p->p_offset, p->p_filesz, 8);
                        f->dynamic_count = f->dynamic ? p->p_filesz / sizeof(Elf64_Dyn) : 0;
                }
        }
        if (dynamic_value(f, DT_STRTAB, 0, &address) && dynamic_value(f, DT_STRSZ, 0, &bytes)) {
                uint64_t at = offset_of(f, address, &left);

                if (at != UINT64_MAX && bytes <= left) {
                        f->strings = part(f, at, bytes, 1);
                        f->strings_size = f->strings ? bytes : 0;
                }
        }
}

int elf_file_open(const char *path, struct elf_file *f)
{
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        int error = fd < 0 ? -errno : 0;

        memset(f, 0, sizeof *f);
        if (!error && fstat(fd, &st))
                error = -errno;
        if (!error && (size_t)st.st_size < EI_NIDENT + 4)
                error = -ENOEXEC;
        if (!error) {
                f->bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
                f->size = (size_t)st.st_size;
                if (f->bytes == MAP_FAILED)
                        error = -errno;
        }
        if (fd >= 0)
                close(fd);
        if (error)
                return error;
        if (memcmp(f->bytes, ELFMAG, SELFMAG)) {
                elf_file_close(f);
                return -ENOEXEC;
        }
        f->native = f->size >= sizeof(Elf64_Ehdr) && f->bytes[EI_CLASS] == ELFCLASS64 &&
                    f->bytes[EI_DATA] == ELFDATA2LSB && header(f)->e_machine == HOST_MACHINE;
        if (f->native)
                read_segments(f);
        return 0;
}

void elf_file_close(struct elf_file *f)
{
        if (f->bytes)
                munmap((void *)f->bytes, f->size);
        memset(f, 0, sizeof *f);
}

const char *elf_file_needed(const struct elf_file *f, unsigned i)
{
        uint64_t at;

        return dynamic_value(f, DT_NEEDED, i, &at) ? string(f, at) : NULL;
}

const char *elf_file_soname(const struct elf_file *f)
{
        uint64_t at;

        return dynamic_value(f, DT_SONAME, 0, &at) ? string(f, at) : NULL;
}

/*
 * Symbols in the dynamic table: by the old hash table, or by walking the GNU one to its last chain.
 */
static uint64_t symbol_count(const struct elf_file *f)
{
        uint64_t address, left, at;

        if (dynamic_value(f, DT_HASH, 0, &address) &&
            (at = offset_of(f, address, &left)) != UINT64_MAX) {
                const uint32_t *words = part(f, at, 8, 4);

                if (words)
                        return words[1];
        }
        if (dynamic_value(f, DT_GNU_HASH, 0, &address) &&
            (at = offset_of(f, address, &left)) != UINT64_MAX) {
                const uint32_t *words = part(f, at, 16, 4);
                uint64_t chains, last = 0;
                const uint32_t *heads, *link;

                if (!words)
                        return 0;
                heads = part(f, at + 16 + (uint64_t)words[2] * 8, (uint64_t)words[0] * 4, 4);
                chains = at + 16 + (uint64_t)words[2] * 8 + (uint64_t)words[0] * 4;
                for (uint32_t i = 0; heads && i < words[0]; i++)
                        if (heads[i] > last)
                                last = heads[i];
                if (last < words[1])
                        return words[1];
                while ((link = part(f, chains + (last - words[1]) * 4, 4, 4)) && !(*link & 1))
                        last++;
                return last + 1;
        }
        return 0;
}

bool elf_file_defines(const struct elf_file *f, const char *symbol)
{
        uint64_t address, left, at, count = symbol_count(f);
        const Elf64_Sym *s;

        if (!dynamic_value(f, DT_SYMTAB, 0, &address) ||
            (at = offset_of(f, address, &left)) == UINT64_MAX)
                return false;
        for (uint64_t i = 1; i < count && (s = part(f, at + i * sizeof *s, sizeof *s, 8)); i++) {
                unsigned bind = ELF64_ST_BIND(s->st_info);
                const char *name;

                if (s->st_shndx == SHN_UNDEF || (bind != STB_GLOBAL && bind != STB_WEAK))
                        continue;
                name = string(f, s->st_name);
                if (name && !strcmp(name, symbol))
                        return true;
        }
        return false;
}

static const Elf64_Shdr *section(const struct elf_file *f, uint64_t i)
{
        const Elf64_Ehdr *h = header(f);

        if (i >= h->e_shnum || h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shoff > f->size)
                return NULL;
        return part(f, h->e_shoff + i * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr), 8);
}

/* NULL: the table does not define it. */
static const Elf64_Sym *find_in_table(const struct elf_file *f, const Elf64_Shdr *table,
                                      const char *symbol)
{
        const Elf64_Shdr *text = section(f, table->sh_link);
        const Elf64_Sym *s = part(f, table->sh_offset, table->sh_size, 8);
        const char *names = text ? part(f, text->sh_offset, text->sh_size, 1) : NULL;
        size_t bytes = strlen(symbol) + 1;

        if (!s || !names)
                return NULL;
        for (uint64_t i = 0; i < table->sh_size / sizeof *s; i++)
                if (s[i].st_shndx != SHN_UNDEF && s[i].st_name <= text->sh_size &&
                    text->sh_size - s[i].st_name >= bytes &&
                    !memcmp(names + s[i].st_name, symbol, bytes))
                        return s + i;
        return NULL;
}

/* In the table of all symbols, or, if the file is stripped, in that of the dynamic linker. */
static const Elf64_Sym *find_in_tables(const struct elf_file *f, const char *symbol)
{
        static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
        const Elf64_Sym *found = NULL;
        const Elf64_Shdr *s;

        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
                for (uint64_t i = 0; !found && (s = section(f, i)); i++)
                        if (s->sh_type == types[t])
                                found = find_in_table(f, s, symbol);
        return found;
}

bool elf_file_contains(const struct elf_file *f, const char *symbol)
{
        return elf_file_defines(f, symbol) || find_in_tables(f, symbol);
}

void elf_file_each_function(const struct elf_file *f,
                            void (*each)(const char *name, uint64_t from, uint64_t to, void *data),
                            void *data)
{
        const Elf64_Shdr *table;

        for (uint64_t i = 0; (table = section(f, i)); i++) {
                const Elf64_Shdr *text = section(f, table->sh_link);
                const Elf64_Sym *s = part(f, table->sh_offset, table->sh_size, 8);
                const char *names = text ? part(f, text->sh_offset, text->sh_size, 1) : NULL;

                if ((table->sh_type != SHT_SYMTAB && table->sh_type != SHT_DYNSYM) || !s || !names)
                        continue;
                for (uint64_t k = 0; k < table->sh_size / sizeof *s; k++)
                        if (ELF64_ST_TYPE(s[k].st_info) == STT_FUNC && s[k].st_size &&
                            s[k].st_shndx != SHN_UNDEF && s[k].st_name < text->sh_size &&
                            memchr(names + s[k].st_name, 0, text->sh_size - s[k].st_name))
                                each(names + s[k].st_name, s[k].st_value,
                                     s[k].st_value + s[k].st_size, data);
        }
}

const char *elf_file_machine(const struct elf_file *f, char *buffer, size_t bytes)
{
        static const struct { unsigned machine; const char *name; } names[] = {
                { EM_X86_64, "x86-64" }, { EM_386, "i386" }, { EM_AARCH64, "aarch64" },
                { EM_ARM, "arm" }, { EM_RISCV, "riscv" }, { EM_PPC64, "ppc64" },
                { EM_S390, "s390" }, { EM_MIPS, "mips" },
        };
        /* e_machine, at one place in both classes */
        unsigned machine = f->bytes[18] | f->bytes[19] << 8;
        const char *class = f->bytes[EI_CLASS] == ELFCLASS32 ? "32-bit " : "";
        const char *name = NULL;

        if (f->bytes[EI_DATA] == ELFDATA2MSB)
                machine = f->bytes[19] | f->bytes[18] << 8;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (names[i].machine == machine)
                        name = names[i].name;
        if (name)
                snprintf(buffer, bytes, "%s%s", class, name);
        else
                snprintf(buffer, bytes, "%smachine %u", class, machine);
        return buffer;
}
