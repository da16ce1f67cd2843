/* Thumbnails are made for a folder. Those that are marked stay, the others go. */
#include <stdio.h>
#include <stdlib.h>
#include <stook/stook.h>

#define THUMBNAILS 8000

struct thumbnail {
        unsigned picture;
        char     pixels[508];
};

static struct stook_cache *thumbnails, *marked;
static struct thumbnail *shown[THUMBNAILS];

static int is_marked(unsigned picture)
{
        return picture % 8 == 0;
}

static struct thumbnail *make(unsigned picture)
{
#ifdef FIXED
        struct stook_cache *from = is_marked(picture) ? marked : thumbnails;
#else
        struct stook_cache *from = thumbnails;
#endif
        struct thumbnail *thumbnail = stook_cache_zalloc(from);

        if (!thumbnail)
                exit(1);
        thumbnail->picture = picture;
        return thumbnail;
}

static void leave_folder(void)
{
        for (unsigned i = 0; i < THUMBNAILS; i++) {
                if (is_marked(i))
                        continue;
                stook_cache_free(thumbnails, shown[i]);
                shown[i] = NULL;
        }
        stook_cache_shrink(thumbnails);
}

int main(void)
{
        thumbnails = stook_cache_create("thumbnail", sizeof(struct thumbnail), NULL);
        marked = stook_cache_create("marked", sizeof(struct thumbnail), NULL);
        if (!thumbnails || !marked)
                return 1;
        for (unsigned i = 0; i < THUMBNAILS; i++)
                shown[i] = make(i);
        leave_folder();
        puts("ready");
        fflush(stdout);
        return getchar() == EOF ? 0 : 1;        /* the user looks at other folders */
}
