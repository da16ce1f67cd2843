/* Equal strings are stored once, with a count of their users. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/stook.h>

#define BUCKETS 16

struct string {
        struct string *next;
        unsigned       users;
        char           text[44];
};

static struct stook_cache *strings;
static struct string *buckets[BUCKETS];

static unsigned bucket_of(const char *text)
{
        unsigned hash = 5381;

        while (*text)
                hash = hash * 33 + (unsigned char)*text++;
        return hash % BUCKETS;
}

static struct string *intern(const char *text)
{
        struct string **bucket = &buckets[bucket_of(text)], *string;

        for (string = *bucket; string; string = string->next) {
                if (!strcmp(string->text, text)) {
#ifdef FIXED
                        string->users++;
#endif
                        return string;
                }
        }
        string = stook_cache_zalloc(strings);
        if (!string)
                exit(1);
        snprintf(string->text, sizeof(string->text), "%s", text);
        string->users = 1;
        string->next = *bucket;
        return *bucket = string;
}

static void release(struct string *string)
{
        struct string **at = &buckets[bucket_of(string->text)];

        if (string->users-- > 1)
                return;
        while (*at && *at != string)
                at = &(*at)->next;
        if (*at)
                *at = string->next;
        stook_cache_free(strings, string);
}

int main(void)
{
        static const char *const words[] = { "to", "be", "or", "not", "to", "be" };
        struct string *text[6];

        strings = stook_cache_create("string", sizeof(struct string), NULL);
        if (!strings)
                return 1;
        for (unsigned i = 0; i < 6; i++)
                text[i] = intern(words[i]);
        for (unsigned i = 0; i < 6; i++)
                release(text[i]);
        return stook_cache_destroy(strings) ? 1 : 0;
}
