/*
 * Purpose: what both sources of memory share; see memory.h.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/memory/memory.h"

bool memory_add_image(struct memory *m, uint64_t start, const char *path, size_t length)
{
        struct memory_image *grown, *image;

        if (!(m->image_count & (m->image_count - 1))) {
                size_t room = m->image_count ? m->image_count * 2 : 1;

                grown = realloc(m->images, room * sizeof *grown);
                if (!grown)
                        return false;
                m->images = grown;
        }
        image = &m->images[m->image_count++];
        if (length >= sizeof image->path)
                length = sizeof image->path - 1;
        image->start = start;
        memcpy(image->path, path, length);
        image->path[length] = 0;
        return true;
}

struct memory_thread *memory_add_thread(struct memory *m, uint32_t id)
{
        struct memory_thread *grown = reallocarray(m->threads, m->thread_count + 1, sizeof *grown);

        if (!grown)
                return NULL;
        m->threads = grown;
        grown += m->thread_count++;
        *grown = (struct memory_thread){ .id = id };
        return grown;
}

void memory_close(struct memory *m)
{
        if (m->close)
                m->close(m);
        free(m->images);
        free(m->threads);
        memset(m, 0, sizeof *m);
}
