/*
 * Purpose: see profile.h: which files were mapped where, when stacks were taken, so that addresses
 * of a file that the program has closed since (dlclose) keep their names. _dl_find_object() of
 * glibc from 2.35 on tells it without a lock. Elsewhere no module is noted, and a profile has the
 * files that are mapped when it is written. The program itself is never closed, and is not noted.
 * Concurrency: any thread, any instruction. An entry is taken by a count and is whole before the
 *  release of its `start` (M1), which pairs with the acquire of its readers. Two threads may note a
 *  file twice.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include "process/process.h"
#include "profile/profile.h"
#include "stack/stack.h"

struct stook_profile_module stook_profile_modules[STOOK_PROFILE_MODULES] STOOK_MOSTLY_UNUSED;

/* ---- build ids ---- */

#define SEGMENTS_MOST 32
#define NOTES_MOST    1024

static size_t whole_words(size_t bytes)
{
        return (bytes + 3) & ~(size_t)3;
}

static uint32_t find_build(const unsigned char *notes, size_t bytes,
                           uint8_t build[STOOK_PROFILE_BUILD_BYTES])
{
        for (size_t i = 0; i + sizeof(ElfW(Nhdr)) < bytes;) {
                ElfW(Nhdr) note;
                size_t name = i + sizeof note, text, next;

                memcpy(&note, notes + i, sizeof note);
                if (note.n_namesz > bytes || note.n_descsz > bytes)
                        return 0;
                text = name + whole_words(note.n_namesz);
                next = text + whole_words(note.n_descsz);
                if (next > bytes)
                        return 0;
                if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                    !memcmp(notes + name, "GNU", 4) &&
                    note.n_descsz <= STOOK_PROFILE_BUILD_BYTES) {
                        memcpy(build, notes + text, note.n_descsz);
                        return note.n_descsz;
                }
                i = next;
        }
        return 0;
}

/* Of a file that a call of this thread is in: nobody closes it meanwhile. */
static bool read_used(void *to, const void *from, size_t bytes)
{
        memcpy(to, from, bytes);
        return true;
}

/* Else the kernel copies all memory. */
uint32_t stook_profile_build_id(uintptr_t start, bool used,
                                uint8_t build[STOOK_PROFILE_BUILD_BYTES])
{
        bool (*read)(void *to, const void *from, size_t bytes) =
                used ? read_used : stook_process_read_memory;
        ElfW(Ehdr) file;
        ElfW(Phdr) segment;
        ElfW(Addr) first = 0;
        bool found = false;
        unsigned char notes[NOTES_MOST];
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
                at = start + segment.p_vaddr - first;
                if (read(notes, (const void *)at, length))
                        bytes = find_build(notes, length, build);
        }
        return bytes;
}

/* ---- modules ---- */

#ifdef DLFO_STRUCT_HAS_EH_DBASE

extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

/* The file at @address; its name in *@file. False: not to be told. */
static bool find_file(uintptr_t address, struct dl_find_object *found, const char **file)
{
        if (!_dl_find_object || _dl_find_object((void *)address, found) || !found->dlfo_link_map)
                return false;
        *file = found->dlfo_link_map->l_name;
        return *file && **file == '/';
}

static bool is_file_of(const struct stook_profile_module *module, uintptr_t start,
                       const char *file)
{
        return __atomic_load_n(&module->start, __ATOMIC_ACQUIRE) == start &&         /* M1 */
               !strncmp(module->file, file, sizeof module->file - 1);
}

static uint32_t count_modules(void)
{
        uint32_t count = __atomic_load_n(&stook_profile.modules, __ATOMIC_RELAXED);

        return count < STOOK_PROFILE_MODULES ? count : STOOK_PROFILE_MODULES;
}

/* The newest one there. Of those before @modules. -1: none. */
static int newest_at(uintptr_t address, uint32_t modules)
{
        for (uint32_t i = modules; i-- > 0;) {
                const struct stook_profile_module *m = &stook_profile_modules[i];
                uintptr_t start = __atomic_load_n(&m->start, __ATOMIC_ACQUIRE);

                if (start && address - start < m->end - start)
                        return (int)i;
        }
        return -1;
}

static void note(uintptr_t address)
{
        struct dl_find_object found;
        struct stook_profile_module *m;
        const char *file;
        uint32_t i;
        int known;

        if (!find_file(address, &found, &file))
                return;
        known = newest_at(address, count_modules());
        if (known >= 0 &&
            is_file_of(&stook_profile_modules[known], (uintptr_t)found.dlfo_map_start, file))
                return;
        if (count_modules() == STOOK_PROFILE_MODULES)
                return;
        i = __atomic_fetch_add(&stook_profile.modules, 1, __ATOMIC_RELAXED);
        if (i >= STOOK_PROFILE_MODULES)
                return;
        m = &stook_profile_modules[i];
        m->end = (uintptr_t)found.dlfo_map_end;
        memcpy(m->file, file, strnlen(file, sizeof m->file - 1));
        m->build_bytes = stook_profile_build_id((uintptr_t)found.dlfo_map_start, true, m->build);
        __atomic_store_n(&m->start, (uintptr_t)found.dlfo_map_start, __ATOMIC_RELEASE); /* M1 */
}

uint32_t stook_profile_note_modules(uint32_t stack)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST];
        unsigned count = stook_stack_frames(stack, frames, STOOK_STACK_FRAMES_MOST);

        for (unsigned i = 0; i < count; i++)
                note(frames[i] - 1);
        return count_modules();
}

int stook_profile_closed_module(uintptr_t address, uint32_t modules)
{
        struct dl_find_object found;
        const char *file;
        int i = newest_at(address, modules < count_modules() ? modules : count_modules());

        if (i < 0 || (find_file(address, &found, &file) &&
                      is_file_of(&stook_profile_modules[i], (uintptr_t)found.dlfo_map_start, file)))
                return -1;
        return i;
}

#else

uint32_t stook_profile_note_modules(uint32_t stack)
{
        (void)stack;
        return 0;
}

int stook_profile_closed_module(uintptr_t address, uint32_t modules)
{
        (void)address, (void)modules;
        return -1;
}

#endif
