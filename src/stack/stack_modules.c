/*
 * Purpose: see stack.h: which files were mapped where, when stacks were taken, so that addresses of
 * a file that the program has closed since (dlclose) keep their names, and a trace can be read
 * elsewhere. _dl_find_object() of glibc from 2.35 on tells it without a lock. Elsewhere no module
 * is noted, and what names addresses knows the files that are mapped by then.
 * Place: called by stack_table.c for each new stack, and by readers of stacks.
 * Concurrency: any thread, any instruction. An entry is taken by a count and is whole before the
 *  release of its `start` (M1), which pairs with the acquire of its readers. Two threads may note a
 *  file twice.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "process/process.h"
#include "stack/stack.h"

struct stook_stack_module stook_stack_modules[STOOK_STACK_MODULES] STOOK_MOSTLY_UNUSED;
uint32_t stook_stack_modules_made;

/* ---- build ids ---- */

#define SEGMENTS_MOST 32
#define NOTES_MOST    1024

static size_t whole_words(size_t bytes)
{
        return (bytes + 3) & ~(size_t)3;
}

typedef bool read_fn(void *to, const void *from, size_t bytes);

/* Of a file that a call of this thread is in: nobody closes it meanwhile. */
static bool read_used(void *to, const void *from, size_t bytes)
{
        memcpy(to, from, bytes);
        return true;
}

static uint32_t find_build(read_fn *read, uintptr_t at, size_t bytes,
                           uint8_t build[STOOK_STACK_BUILD_BYTES])
{
        struct {
                ElfW(Nhdr) note;
                char       name[4];
        } head;

        for (uintptr_t end = at + bytes, text; end - at > sizeof head;
             at = text + whole_words(head.note.n_descsz)) {
                if (!read(&head, (const void *)at, sizeof head) ||
                    head.note.n_namesz > bytes || head.note.n_descsz > bytes)
                        return 0;
                text = at + sizeof head.note + whole_words(head.note.n_namesz);
                if (text > end || end - text < whole_words(head.note.n_descsz))
                        return 0;
                if (head.note.n_type == NT_GNU_BUILD_ID && head.note.n_namesz == 4 &&
                    !memcmp(head.name, "GNU", 4) &&
                    head.note.n_descsz <= STOOK_STACK_BUILD_BYTES)
                        return read(build, (const void *)text, head.note.n_descsz)
                               ? head.note.n_descsz : 0;
        }
        return 0;
}

/* Else the kernel copies all memory. */
uint32_t stook_stack_build_id(uintptr_t start, bool used, uint8_t build[STOOK_STACK_BUILD_BYTES])
{
        read_fn *read = used ? read_used : stook_process_read_memory;
        ElfW(Ehdr) file;
        ElfW(Phdr) segment;
        ElfW(Addr) first = 0;
        bool found = false;
        uint32_t bytes = 0;

        if (!read(&file, (const void *)start, sizeof file) ||
            memcmp(file.e_ident, ELFMAG, SELFMAG))
                return 0;
        for (unsigned i = 0; !bytes && i < file.e_phnum && i < SEGMENTS_MOST; i++) {
                uintptr_t at = start + file.e_phoff + i * sizeof segment;
                size_t length;

                if (!read(&segment, (const void *)at, sizeof segment))
                        return 0;
                if (segment.p_type == PT_LOAD && !found) {
                        first = segment.p_vaddr - segment.p_offset;
                        found = true;
                }
                if (segment.p_type != PT_NOTE)
                        continue;
                length = segment.p_filesz < NOTES_MOST ? segment.p_filesz : NOTES_MOST;
                bytes = find_build(read, start + segment.p_vaddr - first, length, build);
        }
        return bytes;
}

/* ---- modules ---- */

#ifdef DLFO_STRUCT_HAS_EH_DBASE

static char program[sizeof stook_stack_modules[0].file];        /* const after the start */

void stook_stack_modules_start(void)
{
        stook_process_path(program, sizeof program);
}

/* The file at @address; its name in *@file. False: not to be told. */
static bool find_file(uintptr_t address, struct dl_find_object *found, const char **file)
{
        if (!_dl_find_object || _dl_find_object((void *)address, found) || !found->dlfo_link_map)
                return false;
        *file = found->dlfo_link_map->l_name;
        if (*file && !**file)
                *file = program;
        return *file && **file == '/';
}

static bool is_file_of(const struct stook_stack_module *module, uintptr_t start, const char *file)
{
        return __atomic_load_n(&module->start, __ATOMIC_ACQUIRE) == start &&         /* M1 */
               !strncmp(module->file, file, sizeof module->file - 1);
}

static uint32_t count_modules(void)
{
        uint32_t count = __atomic_load_n(&stook_stack_modules_made, __ATOMIC_RELAXED);

        return count < STOOK_STACK_MODULES ? count : STOOK_STACK_MODULES;
}

/* The newest one there. Of those before @modules. -1: none. */
static int newest_at(uintptr_t address, uint32_t modules)
{
        for (uint32_t i = modules; i-- > 0;) {
                const struct stook_stack_module *m = &stook_stack_modules[i];
                uintptr_t start = __atomic_load_n(&m->start, __ATOMIC_ACQUIRE);

                if (start && address - start < m->end - start)
                        return (int)i;
        }
        return -1;
}

static void note(uintptr_t address)
{
        struct dl_find_object found;
        struct stook_stack_module *m;
        const char *file;
        uint32_t i;
        int known;

        if (!find_file(address, &found, &file))
                return;
        known = newest_at(address, count_modules());
        if (known >= 0 &&
            is_file_of(&stook_stack_modules[known], (uintptr_t)found.dlfo_map_start, file))
                return;
        if (count_modules() == STOOK_STACK_MODULES)
                return;
        i = __atomic_fetch_add(&stook_stack_modules_made, 1, __ATOMIC_RELAXED);
        if (i >= STOOK_STACK_MODULES)
                return;
        m = &stook_stack_modules[i];
        m->end = (uintptr_t)found.dlfo_map_end;
        m->is_program = file == program;
        memcpy(m->file, file, strnlen(file, sizeof m->file - 1));
        m->build_bytes = stook_stack_build_id((uintptr_t)found.dlfo_map_start, true, m->build);
        __atomic_store_n(&m->start, (uintptr_t)found.dlfo_map_start, __ATOMIC_RELEASE); /* M1 */
}

uint32_t stook_stack_note_modules(const uintptr_t *frames, unsigned count)
{
        for (unsigned i = 0; i < count; i++)
                note(frames[i] - 1);
        return count_modules();
}

int stook_stack_module(uint32_t id, uintptr_t address)
{
        uint32_t modules = stook_stack_modules_of(id), made = count_modules();

        return newest_at(address, modules < made ? modules : made);
}

int stook_stack_closed_module(uint32_t id, uintptr_t address)
{
        struct dl_find_object found;
        const struct stook_stack_module *m;
        const char *file;
        int i = stook_stack_module(id, address);

        if (i < 0)
                return -1;
        m = &stook_stack_modules[i];
        if (m->is_program || (find_file(address, &found, &file) &&
                              is_file_of(m, (uintptr_t)found.dlfo_map_start, file)))
                return -1;
        return i;
}

#else

void stook_stack_modules_start(void)
{
}

uint32_t stook_stack_note_modules(const uintptr_t *frames, unsigned count)
{
        (void)frames, (void)count;
        return 0;
}

int stook_stack_module(uint32_t id, uintptr_t address)
{
        (void)id, (void)address;
        return -1;
}

int stook_stack_closed_module(uint32_t id, uintptr_t address)
{
        return stook_stack_module(id, address);
}

#endif
