/* Counters by label. A label is made when it is first seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct metric {
        struct metric *next;
        unsigned long  count;
        char           label[112];
};

static struct metric *buckets[BUCKETS];

static struct metric *metric_new(const char *label)
{
        struct metric *metric = calloc(1, sizeof(*metric));

        if (!metric)
                exit(1);
        snprintf(metric->label, sizeof(metric->label), "%s", label);
        return metric;
}

static struct metric *metric_of(const char *label)
{
        struct metric **at;
        unsigned hash = 0;

        for (const char *c = label; *c; c++)
                hash = hash * 31 + (unsigned char)*c;
        for (at = &buckets[hash % BUCKETS]; *at; at = &(*at)->next)
                if (!strcmp((*at)->label, label))
                        return *at;
        return *at = metric_new(label);
}

static void count_request(const char *path, unsigned long user)
{
        char label[112];

#ifdef FIXED
        (void)user;
        snprintf(label, sizeof(label), "requests{path=\"%s\"}", path);
#else
        snprintf(label, sizeof(label), "requests{path=\"%s\",user=\"%lu\"}", path, user);
#endif
        metric_of(label)->count++;
}

int main(void)
{
        static const char *const paths[] = { "/", "/login", "/search", "/logout" };
        unsigned long sum = 0;
        char *page = malloc(4000);

        for (unsigned long user = 0; user < 20000; user++)
                count_request(paths[user % 4], user);
        for (unsigned i = 0; i < BUCKETS; i++)
                for (struct metric *m = buckets[i]; m; m = m->next)
                        sum += m->count;
        printf("%lu requests\n", sum);
        free(page);
        return 0;
}
