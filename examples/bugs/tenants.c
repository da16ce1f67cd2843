/* What is done for a tenant is charged to the tenant's group, which has a limit. */
#include <stdio.h>
#include <stdlib.h>
#include <stook/stook.h>

struct report {
        struct report *next;
        char           text[2000];
};

static struct stook_cache *reports;
static struct report *own;

/* Return: how many were written. */
static unsigned write_reports(struct stook_group *tenant, unsigned n)
{
        struct stook_group *before = stook_group_enter(tenant);
        struct report *first = NULL;
        unsigned written = 0;

        while (written < n) {
                struct report *report = stook_cache_zalloc(reports);

                if (!report)
                        break;
                report->next = first;
                first = report;
                written++;
        }
        while (first) {
                struct report *next = first->next;

                stook_cache_free(reports, first);
                first = next;
        }
#ifdef FIXED
        stook_group_enter(before);
#else
        if (written == n)
                stook_group_enter(before);
#endif
        return written;
}

/* The server's own, without a limit. */
static unsigned write_own(unsigned n)
{
        unsigned written = 0;

        for (struct report *r; written < n && (r = stook_cache_zalloc(reports)); written++) {
                r->next = own;
                own = r;
        }
        return written;
}

int main(void)
{
        struct stook_group *small = stook_group_create("small", NULL, 256 << 10);
        unsigned written;

        reports = stook_cache_create("report", sizeof(struct report),
                                     STOOK_CACHE_ARGS(.flags = STOOK_CACHE_ACCOUNT));
        if (!small || !reports)
                return 1;
        printf("%u for the tenant\n", write_reports(small, 10));
        printf("%u for the tenant\n", write_reports(small, 1000));
        written = write_own(500);
        printf("%u of the server's\n", written);
        return written != 500;
}
