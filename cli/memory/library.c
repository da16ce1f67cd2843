/*
 * Purpose: find the copies of the library in a process by their ELF notes; see library.h.
 * Everything that is read here may be any bytes: counts are bounded, and a file that makes no sense
 * is passed over.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <stook/version.h>
#include "cli/memory/library.h"

#define SEGMENTS_MAX 128
#define NOTES_MAX    4096               /* bytes of notes in a file that are looked at */

static uint32_t whole_words(uint32_t bytes)
{
        return bytes > UINT32_MAX - 3 ? UINT32_MAX : (bytes + 3) & ~UINT32_C(3);
}

/* Where a note of ours in @notes, which lies at @at, leads. 0: there is none. */
static uint64_t root_of_notes(const unsigned char *notes, uint64_t bytes, uint64_t at)
{
        Elf64_Nhdr n;

        for (uint64_t i = 0; i + sizeof n <= bytes;) {
                uint64_t name = i + sizeof n, note, next;
                int64_t distance;

                memcpy(&n, notes + i, sizeof n);
                note = name + whole_words(n.n_namesz);
                next = note + whole_words(n.n_descsz);
                if (next > bytes)
                        return 0;
                if (n.n_type == STOOK_ROOT_NOTE_TYPE && n.n_descsz == sizeof distance &&
                    n.n_namesz == sizeof STOOK_ROOT_NOTE &&
                    !memcmp(notes + name, STOOK_ROOT_NOTE, sizeof STOOK_ROOT_NOTE)) {
                        memcpy(&distance, notes + note, sizeof distance);
                        return at + note + (uint64_t)distance;
                }
                i = next;
        }
        return 0;
}

static uint64_t root_of_segment(struct memory *m, const Elf64_Phdr *p, uint64_t bias)
{
        unsigned char notes[NOTES_MAX];
        uint64_t bytes = p->p_memsz < sizeof notes ? p->p_memsz : sizeof notes;

        if (p->p_type != PT_NOTE || memory_read(m, p->p_vaddr + bias, notes, bytes))
                return 0;
        return root_of_notes(notes, bytes, p->p_vaddr + bias);
}

/* The root in the file that is mapped at @start; 0: there is none. */
static uint64_t root_of_image(struct memory *m, uint64_t start)
{
        Elf64_Phdr p[SEGMENTS_MAX];
        Elf64_Ehdr h;
        uint64_t root = 0, bias = start;

        if (memory_read(m, start, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
            h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_phentsize != sizeof p[0] ||
            h.e_phnum > SEGMENTS_MAX ||
            memory_read(m, start + h.e_phoff, p, h.e_phnum * sizeof p[0]))
                return 0;
        for (unsigned i = 0; i < h.e_phnum; i++)
                if (p[i].p_type == PT_LOAD && !p[i].p_offset)
                        bias = start - p[i].p_vaddr;
        for (unsigned i = 0; i < h.e_phnum && !root; i++)
                root = root_of_segment(m, &p[i], bias);
        return root;
}

static void refuse(struct library *l, const char *text)
{
        snprintf(l->refusal, sizeof l->refusal, "%s", text);
}

static void check(struct library *l)
{
        static const uint16_t layout[] = { STOOK_ROOT_LAYOUT(STOOK_ROOT_LAYOUT_OF) };
        const struct stook_root *r = &l->root;
        char version[sizeof r->version + 1];

        l->readable = false;
        memcpy(version, r->version, sizeof r->version);
        version[sizeof r->version] = 0;
        if (r->magic != STOOK_ROOT_MAGIC)
                refuse(l, "what should say where the heap is, says something else: it is damaged");
        else if (strcmp(version, STOOK_VERSION))
                snprintf(l->refusal, sizeof l->refusal,
                         "it is Stook %s, and this command reads %s alone",
                         version, STOOK_VERSION);
        else if (r->root_bytes != sizeof *r || r->layout_count != STOOK_ROOT_LAYOUT_COUNT ||
                 r->counters != STOOK_STAT_COUNT || r->span_block != STOOK_SPAN_BLOCK ||
                 r->meta_ranges != STOOK_META_RANGES || r->span_kinds != STOOK_ROOT_SPAN_KINDS ||
                 memcmp(r->layout, layout, sizeof layout) != 0)
                refuse(l, "it is of this version, but was made from other sources or with other "
                          "options than this command");
        else if (r->state != STOOK_ROOT_STARTED)
                refuse(l, "it was not used yet");
        else if (!r->nodes || r->nodes > STOOK_NODES_MAX || r->page_bytes < 4096 ||
                 (r->page_bytes & (r->page_bytes - 1)))
                refuse(l, "what should say where the heap is, is damaged");
        else
                l->readable = true;
}

int library_read(struct memory *m, struct library *l)
{
        int error;

        memset(&l->root, 0, sizeof l->root);
        error = memory_read(m, l->address, &l->root, sizeof l->root);
        /* Of another version it may be smaller, and end where memory does. */
        if (error == -EFAULT)
                error = memory_read(m, l->address, &l->root, offsetof(struct stook_root, state));
        if (!error)
                check(l);
        else
                l->readable = false;
        return error;
}

unsigned libraries_find(struct memory *m, struct library libraries[LIBRARIES_MAX])
{
        unsigned count = 0;

        for (size_t i = 0; i < m->image_count && count < LIBRARIES_MAX; i++) {
                struct library *l = &libraries[count];

                memset(l, 0, sizeof *l);
                l->image = &m->images[i];
                l->address = root_of_image(m, l->image->start);
                if (l->address && !library_read(m, l))
                        count++;
        }
        return count;
}
