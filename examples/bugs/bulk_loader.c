/* Rows of a table are read, and those that are wrong are counted and left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 100

struct row {
        long  id;
        char *name;
};

static struct row *rows[ROWS_MOST];
static unsigned row_count;

static void row_free(struct row *row)
{
        free(row->name);
        free(row);
}

static struct row *row_parse(const char *line)
{
        struct row *row = calloc(1, sizeof(*row));
        char *end;

        if (!row)
                return NULL;
        row->id = strtol(line, &end, 10);
        row->name = strdup(*end ? end + 1 : "");
        if (*end != ',' || !row->name) {
#ifdef FIXED
                row_free(row);
#else
                free(row);
#endif
                return NULL;
        }
        return row;
}

int main(void)
{
        unsigned wrong = 0;

        for (int i = 0; i < ROWS_MOST; i++) {
                char line[64];

                snprintf(line, sizeof(line), "%d%c%s %d", i, i % 10 ? ',' : ';', "customer", i);
                rows[row_count] = row_parse(line);
                if (rows[row_count])
                        row_count++;
                else
                        wrong++;
        }
        printf("%u rows, %u wrong\n", row_count, wrong);
        while (row_count)
                row_free(rows[--row_count]);
        return 0;
}
