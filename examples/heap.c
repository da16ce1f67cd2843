/* stook-heap(3): what a request allocates ends with it. */
#include <stdio.h>
#include <string.h>
#include <stook/heap.h>

/* Words of a line, in a list that no one takes apart. */
struct word {
        struct word *next;
        char text[];
};

static struct word *split(struct stook_heap *heap, const char *line)
{
        struct word *words = NULL;

        for (size_t length; *(line += strspn(line, " ")); line += length) {
                struct word *word;

                length = strcspn(line, " ");
                word = stook_heap_alloc(heap, sizeof(*word) + length + 1);
                if (!word)
                        return NULL;            /* over the limit: the heap has the rest */
                memcpy(word->text, line, length);
                word->text[length] = '\0';
                word->next = words;
                words = word;
        }
        return words;
}

static int serve(const char *const *lines)
{
        struct stook_heap *request = stook_heap_create(
                "request", STOOK_HEAP_ARGS(.limit_bytes = 1 << 20));

        if (!request)
                return -1;
        for (; *lines; lines++) {
                for (const struct word *word = split(request, *lines); word; word = word->next)
                        printf("%s\n", word->text);
                stook_heap_reset(request);      /* all words of the line at once */
        }
        return stook_heap_destroy(request);
}

int main(void)
{
        static const char *const lines[] = { "a heap of words", "ends at once", NULL };

        return serve(lines) != 0;
}
