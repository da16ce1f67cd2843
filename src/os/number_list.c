/*
 * Purpose: sets of numbers, see number_list.h. Read in pieces, so that no list is too long for the
 * stack.
 * Place: called by cpu.c and topology.c, at start.
 */
#include "os/number_list.h"
#include "os/system_call.h"

static void finish(struct stook_number_list *l, stook_number_range *each, void *data)
{
        if (l->digits) {
                if (!l->range)
                        l->first = l->number;
                if (l->first <= l->number)
                        each(l->first, l->number, data);
                else
                        l->bad = true;
        } else if (l->range) {
                l->bad = true;
        }
        l->digits = l->range = false;
}

void stook_number_list_read(struct stook_number_list *l, const char *text, size_t bytes,
                            stook_number_range *each, void *data)
{
        for (size_t i = 0; i < bytes; i++) {
                char c = text[i];

                if (c >= '0' && c <= '9') {
                        uint64_t n = (l->digits ? l->number * UINT64_C(10) : 0) +
                                     (unsigned)(c - '0');

                        l->bad |= n > UINT32_MAX;
                        l->number = (uint32_t)n;
                        l->digits = true;
                } else if (c == '-' && l->digits && !l->range) {
                        l->first = l->number;
                        l->digits = false;
                        l->range = true;
                } else {
                        finish(l, each, data);
                }
        }
}

bool stook_number_list_end(struct stook_number_list *l, stook_number_range *each, void *data)
{
        finish(l, each, data);
        return !l->bad;
}

bool stook_number_list_file(const char *path, stook_number_range *each, void *data)
{
        struct stook_number_list list = { 0 };
        int fd = stook_call_open(path);
        char text[256];
        long n;

        if (fd < 0)
                return false;
        while ((n = stook_call(SYS_read, fd, text, sizeof(text))) > 0)
                stook_number_list_read(&list, text, (size_t)n, each, data);
        stook_call_close(fd);
        return stook_number_list_end(&list, each, data) && n == 0;
}
