/* A cache of pages, of which the least recently used one goes when a new one comes. */
#include <stdio.h>
#include <stdlib.h>
#include <stook/stook.h>

#define PAGES_MOST 8

struct page {
        struct page *newer, *older;
        unsigned     number, hits;
        char         content[104];
};

static struct stook_cache *pages;
static struct page *newest, *oldest, *last_hit;
static unsigned count;

static void evict(void)
{
        struct page *page = oldest;

        oldest = page->newer;
        oldest->older = NULL;
#ifdef FIXED
        if (last_hit == page)
                last_hit = NULL;
#endif
        stook_cache_free(pages, page);
        count--;
}

static struct page *load(unsigned number)
{
        struct page *page;

        if (count == PAGES_MOST)
                evict();
        page = stook_cache_zalloc(pages);
        if (!page)
                exit(1);
        page->number = number;
        page->older = newest;
        if (newest)
                newest->newer = page;
        else
                oldest = page;
        newest = page;
        count++;
        return page;
}

static struct page *find(unsigned number)
{
        for (struct page *page = newest; page; page = page->older)
                if (page->number == number)
                        return page;
        return NULL;
}

/* The page that was hit last is left alone until another one is hit: one count for the run. */
static void look_up(unsigned number)
{
        struct page *page = find(number);

        if (page) {
                last_hit = page;
                return;
        }
        if (last_hit)
                last_hit->hits++;
        load(number);
}

int main(void)
{
        pages = stook_cache_create("page", sizeof(struct page), NULL);
        if (!pages)
                return 1;
        for (unsigned i = 0; i < 40; i++)
                look_up(i % 20 < 2 ? 1 : i);
        printf("%u pages\n", count);
        while (newest) {
                struct page *page = newest;

                newest = page->older;
                stook_cache_free(pages, page);
        }
        return stook_cache_destroy(pages) ? 1 : 0;
}
