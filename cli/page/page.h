/*
 * Purpose: one page of HTML that needs nothing from elsewhere, and shows what JSON tells of a heap:
 * the memory, slabs, sheaves and groups of `stook info` ("libraries"), a trace that `stook replay`
 * replayed ("replay"), a heap profile ("profile"). A page has the parts that its data has.
 *
 *      if (!page_begin(&page, name))
 *              return -ENOMEM;
 *      info_json_all(&target, &page.json);             // keys of page.json, and further parts
 *      error = page_end(&page, out);
 */
#ifndef STOOK_CLI_PAGE_H
#define STOOK_CLI_PAGE_H

#include "cli/text/json.h"

struct page {
        struct json json;               /* the data, an object */
        char  *text;
        size_t bytes;
};

/* @name: what the page is of. False: no memory, and there is nothing to end. */
bool page_begin(struct page *page, const char *name);
/* Writes the page. Return: 0; -ENOMEM: nothing was written. */
int  page_end(struct page *page, FILE *out);
/* The page is not written. */
void page_drop(struct page *page);

#endif
