/*
 * Purpose: the memory of a process that left a core; see memory.h.
 * A core has the writable memory, and the first page of each file that was mapped. That is all that
 * readers of the heap need. A program's own file may stand in for pages that the core leaves out.
 * What is missing at the end of a core that was cut off reads as zeros.
 * Reads 64-bit ELF of this machine. Nothing outside the two mappings is read, whatever they hold.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/files/file_kind.h"
#include "cli/memory/memory.h"

#if defined(__x86_64__)
#define HOST_MACHINE   EM_X86_64
#define STACK_REGISTER 19               /* in elf_gregset_t: rsp */
#elif defined(__aarch64__)
#define HOST_MACHINE   EM_AARCH64
#define STACK_REGISTER 31
#else
#define HOST_MACHINE   EM_RISCV
#define STACK_REGISTER 2
#endif

struct file {
        const unsigned char *bytes;
        uint64_t             size;
};

/* A range of the process's memory that a file has. */
struct piece {
        uint64_t address, bytes;
        const unsigned char *at;        /* NULL: it was cut off */
};

struct core {
        struct file   core, exe;
        struct piece *pieces;           /* by address */
        size_t        count;
        uint64_t      entry;            /* of the program, as the system saw it; 0: not known */
        const unsigned char *files;     /* the note NT_FILE; NULL: none */
        uint64_t      files_bytes;
};

static int map_file(const char *path, struct file *file)
{
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        int error = fd < 0 || fstat(fd, &st) ? -errno : 0;
        void *p = MAP_FAILED;

        if (!error && !S_ISREG(st.st_mode))
                error = -ENOEXEC;
        if (!error && st.st_size >= (off_t)sizeof(Elf64_Ehdr)) {
                p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
                error = p == MAP_FAILED ? -errno : 0;
        } else if (!error) {
                error = -ENOEXEC;
        }
        if (fd >= 0)
                close(fd);
        if (!error)
                *file = (struct file){ p, (uint64_t)st.st_size };
        return error;
}

static const void *part(const struct file *f, uint64_t offset, uint64_t bytes)
{
        if (offset > f->size || bytes > f->size - offset)
                return NULL;
        return f->bytes + offset;
}

/* Of @type, or ET_DYN where @type is ET_EXEC. NULL: it is no such file. */
static const Elf64_Ehdr *header(const struct file *f, unsigned type)
{
        const Elf64_Ehdr *h = (const Elf64_Ehdr *)f->bytes;

        if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
            h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != HOST_MACHINE ||
            (h->e_type != type && !(type == ET_EXEC && h->e_type == ET_DYN)) ||
            h->e_phentsize != sizeof(Elf64_Phdr))
                return NULL;
        return h;
}

/* Where there are too many for the header, a section header has their number. */
static uint32_t segment_count(const struct file *f, const Elf64_Ehdr *h)
{
        const void *first;
        Elf64_Shdr section;

        if (h->e_phnum != PN_XNUM)
                return h->e_phnum;
        first = part(f, h->e_shoff, sizeof section);
        if (!first)
                return 0;
        memcpy(&section, first, sizeof section);
        return section.sh_info;
}

static bool segment(const struct file *f, const Elf64_Ehdr *h, uint32_t i, Elf64_Phdr *out)
{
        const void *p = part(f, h->e_phoff + (uint64_t)i * sizeof *out, sizeof *out);

        if (p)
                memcpy(out, p, sizeof *out);
        return p != NULL;
}

static bool add_piece(struct core *c, uint64_t address, const unsigned char *at, uint64_t bytes)
{
        if (!(c->count & (c->count - 1))) {
                size_t room = c->count ? c->count * 2 : 1;
                struct piece *grown = realloc(c->pieces, room * sizeof *grown);

                if (!grown)
                        return false;
                c->pieces = grown;
        }
        c->pieces[c->count++] = (struct piece){ address, bytes, at };
        return true;
}

static int by_address(const void *a, const void *b)
{
        const struct piece *x = a, *y = b;

        return x->address < y->address ? -1 : x->address > y->address;
}

static const struct piece *piece_of(const struct core *c, uint64_t address)
{
        size_t low = 0, high = c->count;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (c->pieces[middle].address <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (!low || address - c->pieces[low - 1].address >= c->pieces[low - 1].bytes)
                return NULL;
        return &c->pieces[low - 1];
}

static int read_core(struct memory *m, uint64_t address, void *out, size_t bytes)
{
        unsigned char *to = out;

        while (bytes) {
                const struct piece *p = piece_of(m->source, address);
                uint64_t n = p ? p->bytes - (address - p->address) : 0;

                if (!p)
                        return -EFAULT;
                n = n < bytes ? n : bytes;
                if (p->at)
                        memcpy(to, p->at + (address - p->address), n);
                else
                        memset(to, 0, n);
                to += n;
                address += n;
                bytes -= n;
        }
        return 0;
}

static void close_core(struct memory *m)
{
        struct core *c = m->source;

        if (!c)
                return;
        if (c->core.bytes)
                munmap((void *)(uintptr_t)c->core.bytes, c->core.size);
        if (c->exe.bytes)
                munmap((void *)(uintptr_t)c->exe.bytes, c->exe.size);
        free(c->pieces);
        free(c);
}

/* ---- notes ---- */

/* A mapping of a file; @name ends with a zero. */
struct mapped {
        uint64_t start, end, pages;     /* pages: offset in the file */
        const char *name;
};

/*
 * NT_FILE: count, page size, {start, end, offset in pages} each, then the names. Calls @each until
 * it returns false. Return: what the last one returned, or true.
 */
static bool each_file(const struct core *c, bool (*each)(const struct mapped *file, void *data),
                      void *data)
{
        uint64_t count;
        const char *name, *end = (const char *)c->files + c->files_bytes;
        struct mapped file;

        if (c->files_bytes < 16)
                return true;
        memcpy(&count, c->files, 8);
        if (count > (c->files_bytes - 16) / 24)
                return true;
        name = (const char *)c->files + 16 + count * 24;
        for (uint64_t i = 0; i < count; i++) {
                const char *stop = memchr(name, 0, (size_t)(end - name));

                if (!stop)
                        return true;
                memcpy(&file, c->files + 16 + i * 24, 24);
                file.name = name;
                if (!each(&file, data))
                        return false;
                name = stop + 1;
        }
        return true;
}

static bool add_file(const struct mapped *file, void *memory)
{
        return file->pages || memory_add_image(memory, file->start, file->name, strlen(file->name));
}

/* The first words of a thread are its registers; the next NT_PRSTATUS is another thread's. */
static bool add_thread(struct memory *m, const unsigned char *note)
{
        struct memory_thread *thread;
        struct elf_prstatus status;

        memcpy(&status, note, sizeof status);
        thread = memory_add_thread(m, (uint32_t)status.pr_pid);
        if (!thread)
                return false;
        _Static_assert(sizeof status.pr_reg <= sizeof thread->registers, "room for the registers");
        memcpy(thread->registers, &status.pr_reg, sizeof status.pr_reg);
        thread->count = sizeof status.pr_reg / sizeof thread->registers[0];
        thread->stack = thread->registers[STACK_REGISTER];
        return true;
}

static void read_auxv(struct core *c, const unsigned char *note, uint64_t bytes)
{
        for (uint64_t i = 0; i + 16 <= bytes; i += 16) {
                uint64_t pair[2];

                memcpy(pair, note + i, sizeof pair);
                if (pair[0] == AT_ENTRY)
                        c->entry = pair[1];
        }
}

static bool read_note(struct memory *m, uint32_t type, const unsigned char *note, uint64_t bytes)
{
        struct core *c = m->source;
        struct elf_prpsinfo info;

        if (type == NT_FILE) {
                c->files = note;
                c->files_bytes = bytes;
                return each_file(c, add_file, m);
        }
        if (type == NT_PRSTATUS && bytes >= sizeof(struct elf_prstatus))
                return add_thread(m, note);
        if (type == NT_AUXV)
                read_auxv(c, note, bytes);
        if (type == NT_PRPSINFO && bytes >= sizeof info) {
                memcpy(&info, note, sizeof info);
                m->pid = (uint32_t)info.pr_pid;
                memcpy(m->program, info.pr_fname, sizeof info.pr_fname);
                m->program[sizeof info.pr_fname] = 0;
        }
        return true;
}

static bool read_notes(struct memory *m, const unsigned char *at, uint64_t bytes)
{
        Elf64_Nhdr n;

        while (bytes >= sizeof n) {
                uint64_t name, note, whole;

                memcpy(&n, at, sizeof n);
                name = ((uint64_t)n.n_namesz + 3) & ~UINT64_C(3);
                note = ((uint64_t)n.n_descsz + 3) & ~UINT64_C(3);
                whole = sizeof n + name + note;
                if (whole > bytes)
                        return true;
                if (name == 8 && !memcmp(at + sizeof n, "CORE", 5) &&
                    !read_note(m, n.n_type, at + sizeof n + name, n.n_descsz))
                        return false;
                at += whole;
                bytes -= whole;
        }
        return true;
}

/* ---- segments ---- */

/* @what is wrong with it; NULL: what the error says. */
static int refuse(struct memory *m, const char *path, int error, const char *what)
{
        if (what)
                snprintf(m->error, sizeof m->error, "%.159s %s", path, what);
        else
                snprintf(m->error, sizeof m->error, "%.159s: %s", path, strerror(-error));
        return error;
}

static int refuse_other(struct memory *m, const char *path)
{
        const char *kind = file_kind_at(path);
        char what[96];

        snprintf(what, sizeof what, "is no core of a 64-bit process of this machine%s%s",
                 kind ? ", but " : "", kind ? kind : "");
        return refuse(m, path, -ENOEXEC, what);
}

/* A segment's memory, and zeros for what was cut off of it. */
static bool add_segment(struct memory *m, const Elf64_Phdr *p)
{
        struct core *c = m->source;
        uint64_t there = p->p_offset < c->core.size ? c->core.size - p->p_offset : 0;

        if (there >= p->p_filesz)
                return add_piece(c, p->p_vaddr, c->core.bytes + p->p_offset, p->p_filesz);
        m->missing += p->p_filesz - there;
        return (!there || add_piece(c, p->p_vaddr, c->core.bytes + p->p_offset, there)) &&
               add_piece(c, p->p_vaddr + there, NULL, p->p_filesz - there);
}

static int read_segments(struct memory *m, const char *path, const Elf64_Ehdr *h)
{
        struct core *c = m->source;
        uint32_t count = segment_count(&c->core, h);
        Elf64_Phdr p;

        for (uint32_t i = 0; i < count; i++) {
                const unsigned char *at;

                if (!segment(&c->core, h, i, &p))
                        return refuse(m, path, -ENOEXEC, "is cut off: it is no whole core");
                if (!p.p_filesz || (p.p_type != PT_LOAD && p.p_type != PT_NOTE) ||
                    p.p_vaddr + p.p_filesz < p.p_vaddr)
                        continue;
                at = part(&c->core, p.p_offset, p.p_filesz);
                if (!at && p.p_type == PT_NOTE)
                        return refuse(m, path, -ENOEXEC, "is cut off before its notes");
                if (p.p_type == PT_NOTE ? !read_notes(m, at, p.p_filesz) : !add_segment(m, &p))
                        return refuse(m, path, -ENOMEM, "takes more memory than there is");
        }
        return 0;
}

/* ---- mappings ---- */

struct wanted {
        uint64_t start;
        const char *name;
        uint64_t pages;
};

static bool is_other(const struct mapped *file, void *data)
{
        struct wanted *wanted = data;

        if (file->start != wanted->start)
                return true;
        wanted->name = file->name;
        wanted->pages = file->pages;
        return false;
}

/* A number in place of a file's inode: readers of such lines tell files apart by that. */
static uint32_t number_of(const char *path)
{
        uint32_t n = 2166136261u;

        for (; *path; path++)
                n = (n ^ (unsigned char)*path) * 16777619u;
        return n | 1;
}

/* Each segment is a mapping; the note has the names of files. */
static FILE *core_maps(struct memory *m)
{
        const struct core *c = m->source;
        const Elf64_Ehdr *h = header(&c->core, ET_CORE);
        uint32_t count = segment_count(&c->core, h);
        int fd = memfd_create("stook-maps", MFD_CLOEXEC);
        FILE *text = fd < 0 ? NULL : fdopen(fd, "w+");
        Elf64_Phdr p;

        for (uint32_t i = 0; text && i < count && segment(&c->core, h, i, &p); i++) {
                struct wanted file = { .start = p.p_vaddr, .name = "" };

                if (p.p_type != PT_LOAD)
                        continue;
                each_file(c, is_other, &file);
                fprintf(text, "%" PRIx64 "-%" PRIx64 " %c%c%cp %08" PRIx64 " 00:01 %u %s\n",
                        p.p_vaddr, p.p_vaddr + p.p_memsz, p.p_flags & PF_R ? 'r' : '-',
                        p.p_flags & PF_W ? 'w' : '-', p.p_flags & PF_X ? 'x' : '-',
                        file.pages * (uint64_t)sysconf(_SC_PAGESIZE),
                        *file.name ? number_of(file.name) : 0, file.name);
        }
        if (text)
                rewind(text);
        return text;
}

static void core_threads(struct memory *m)
{
        (void)m;                        /* the notes had them */
}

/* What the program's file has, for where the core has nothing. */
static int add_exe(struct memory *m, const char *path)
{
        struct core *c = m->source;
        size_t before = c->count;
        const Elf64_Ehdr *h;
        Elf64_Phdr p;
        uint64_t bias, first = 0;
        int error = map_file(path, &c->exe);

        if (error && error != -ENOEXEC)
                return refuse(m, path, error, NULL);
        h = error ? NULL : header(&c->exe, ET_EXEC);
        if (!h)
                return refuse(m, path, -ENOEXEC, "is no program of this machine");
        bias = h->e_type == ET_DYN && c->entry ? c->entry - h->e_entry : 0;
        for (uint32_t i = 0; i < h->e_phnum && segment(&c->exe, h, i, &p); i++) {
                const unsigned char *at = part(&c->exe, p.p_offset, p.p_filesz);

                if (p.p_type != PT_LOAD || !at || !p.p_filesz || (p.p_flags & PF_W))
                        continue;
                if (!p.p_offset)
                        first = p.p_vaddr + bias;
                for (size_t k = 0; k < before && at; k++)       /* the core's own go first */
                        if (c->pieces[k].address < p.p_vaddr + bias + p.p_filesz &&
                            p.p_vaddr + bias < c->pieces[k].address + c->pieces[k].bytes)
                                at = NULL;
                if (at && !add_piece(c, p.p_vaddr + bias, at, p.p_filesz))
                        return refuse(m, path, -ENOMEM, "takes more memory than there is");
        }
        for (size_t i = 0; first && i < m->image_count; i++)
                if (m->images[i].start == first)
                        return 0;
        return !first || memory_add_image(m, first, path, strlen(path)) ? 0 : -ENOMEM;
}

int memory_open_core(struct memory *m, const char *path, const char *exe)
{
        const Elf64_Ehdr *h = NULL;
        struct core *c;
        int error;

        memset(m, 0, sizeof *m);
        m->source = c = calloc(1, sizeof *c);
        if (!c)
                return refuse(m, path, -ENOMEM, "takes more memory than there is");
        m->read = read_core;
        m->close = close_core;
        m->maps = core_maps;
        m->find_threads = core_threads;
        error = map_file(path, &c->core);
        if (error && error != -ENOEXEC)
                return refuse(m, path, error, NULL);
        if (!error)
                h = header(&c->core, ET_CORE);
        if (!h)
                return refuse_other(m, path);
        error = read_segments(m, path, h);
        if (!error && exe)
                error = add_exe(m, exe);
        if (c->count)
                qsort(c->pieces, c->count, sizeof *c->pieces, by_address);
        return error;
}
