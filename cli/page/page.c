/*
 * Purpose: see page.h. The page is page.html with the files that it names; the data stand in it as
 * JSON, in which no "<" is left, so that no name can end them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/page/page.h"
#include "cli/page_html.h"              /* page_html[], made of page.html and its parts */

#define DATA "@DATA@"

bool page_begin(struct page *page, const char *name)
{
        FILE *out;

        *page = (struct page){ .bytes = 0 };
        out = open_memstream(&page->text, &page->bytes);
        if (!out)
                return false;
        json_begin(&page->json, out);
        json_string(&page->json, "name", name);
        return true;
}

/* "<" is in texts alone, and line ends and what follows them are in none. */
static void write_data(const char *text, FILE *out)
{
        for (; *text; text++) {
                if (*text == '<')
                        fputs("\\u003c", out);
                else if (*text != '\n')
                        fputc(*text, out);
                else
                        text += strspn(text + 1, " ");
        }
}

int page_end(struct page *page, FILE *out)
{
        const char *data = strstr(page_html, DATA);
        int error;

        json_end(&page->json);
        error = fclose(page->json.out) ? -ENOMEM : 0;
        if (!error) {
                fwrite(page_html, 1, (size_t)(data - page_html), out);
                write_data(page->text, out);
                fputs(data + strlen(DATA), out);
        }
        free(page->text);
        return error;
}

void page_drop(struct page *page)
{
        fclose(page->json.out);
        free(page->text);
}
