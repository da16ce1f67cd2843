/*
 * Purpose: which pages of a running process have memory, from /proc/PID/pagemap; see memory.h.
 * The file is read in windows, each once, whatever order is asked in. A window is kept as a bit for
 * each page: 16 MiB of addresses take 512 bytes.
 * Failure: where the system does not let the file be read, memory for a window is refused, or a
 * damaged heap names more addresses than it can have, pages count as without memory, and `failed`
 * says so.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/memory/memory.h"

#define WINDOW_PAGES 4096
#define WINDOWS_MOST 65536              /* 1 TiB with pages of 4 KiB: a range of the library */
/* Linux, Documentation/admin-guide/mm/pagemap.rst */
#define PRESENT      63
#define SWAPPED      62

struct window {
        uint64_t number;                /* of its first page, by WINDOW_PAGES, plus one; 0: none */
        uint64_t present[WINDOW_PAGES / 64];
        bool     swapped;               /* any page is */
};

struct memory_pages {
        int      file;
        uint64_t page_bytes;
        bool     failed;
        struct window *windows;         /* a hash table with open addressing */
        size_t   room, count;           /* room: 0 or a power of two */
};

struct memory_pages *memory_pages_open(const struct memory *m)
{
        struct memory_pages *pages = m->write ? calloc(1, sizeof *pages) : NULL;
        char path[64];

        if (!pages)
                return NULL;
        snprintf(path, sizeof path, "/proc/%u/pagemap", m->pid);
        pages->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        pages->file = open(path, O_RDONLY | O_CLOEXEC);
        if (pages->file >= 0)
                return pages;
        free(pages);
        return NULL;
}

/* Where the window is, or would be. There is room. */
static struct window *place_of(struct window *windows, size_t room, uint64_t number)
{
        size_t at = (number * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

        for (at &= room - 1; windows[at].number && windows[at].number != number + 1;)
                at = (at + 1) & (room - 1);
        return &windows[at];
}

static bool grow(struct memory_pages *pages)
{
        size_t room = pages->room ? pages->room * 2 : 16;
        struct window *windows = calloc(room, sizeof *windows);

        if (!windows)
                return false;
        for (size_t i = 0; i < pages->room; i++)
                if (pages->windows[i].number)
                        *place_of(windows, room, pages->windows[i].number - 1) = pages->windows[i];
        free(pages->windows);
        pages->windows = windows;
        pages->room = room;
        return true;
}

static void read_window(struct memory_pages *pages, struct window *window, uint64_t number)
{
        static uint64_t entries[WINDOW_PAGES];
        off_t at = (off_t)(number * sizeof entries);
        ssize_t n = pread(pages->file, entries, sizeof entries, at);

        window->number = number + 1;
        pages->count++;
        if (n < 0)
                pages->failed = true;
        for (ssize_t i = 0; i < n / (ssize_t)sizeof entries[0]; i++) {
                window->present[i / 64] |= (entries[i] >> PRESENT & 1) << i % 64;
                window->swapped |= entries[i] >> SWAPPED & 1;
        }
}

/* NULL: no memory. */
static const struct window *window_of(struct memory_pages *pages, uint64_t number)
{
        struct window *window;

        if (pages->count == WINDOWS_MOST || (2 * pages->count >= pages->room && !grow(pages))) {
                pages->failed = true;
                return NULL;
        }
        window = place_of(pages->windows, pages->room, number);
        if (!window->number)
                read_window(pages, window, number);
        return window;
}

uint64_t memory_pages_resident(struct memory_pages *pages, uint64_t address, uint64_t bytes)
{
        uint64_t page = address / pages->page_bytes;
        uint64_t end = (address + bytes + pages->page_bytes - 1) / pages->page_bytes, n = 0;

        while (page < end && !pages->failed) {
                const struct window *window = window_of(pages, page / WINDOW_PAGES);
                uint64_t last = (page / WINDOW_PAGES + 1) * WINDOW_PAGES;

                for (; window && page < end && page < last; page++)
                        n += window->present[page % WINDOW_PAGES / 64] >> page % 64 & 1;
        }
        return n * pages->page_bytes;
}

/* Where a window has pages in swap, all of its pages may be. */
bool memory_pages_touched(struct memory_pages *pages, uint64_t address, uint64_t bytes)
{
        uint64_t span = pages->page_bytes * WINDOW_PAGES;

        if (memory_pages_resident(pages, address, bytes) || pages->failed)
                return true;
        for (uint64_t at = address / span; at <= (address + bytes - 1) / span; at++) {
                const struct window *window = window_of(pages, at);

                if (!window || window->swapped)
                        return true;
        }
        return false;
}

bool memory_pages_close(struct memory_pages *pages)
{
        bool whole = !pages->failed;

        close(pages->file);
        free(pages->windows);
        free(pages);
        return whole;
}
