/* Purpose: see short_name.h. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/profile/short_name.h"

#define ANONYMOUS "(anonymous namespace)"
#define OPERATOR  "operator"

struct text {
        char  *start;
        size_t length, room;
};

static void put(struct text *text, const char *from, size_t length)
{
        for (size_t i = 0; i < length && text->length + 1 < text->room; i++)
                text->start[text->length++] = from[i];
}

/* What is put whole: the name of an operator, or of the namespace without one. Return: bytes. */
static size_t whole(const char *name, bool begins)
{
        size_t length = strlen(OPERATOR);

        if (!strncmp(name, ANONYMOUS, strlen(ANONYMOUS)))
                return strlen(ANONYMOUS);
        if (!begins || strncmp(name, OPERATOR, length))
                return 0;
        if (!strncmp(name + length, "()", 2) || !strncmp(name + length, "[]", 2))
                return length + 2;
        if (name[length] == ' ')                /* new, delete, a type */
                return length + 1 + strcspn(name + length + 1, " <(");
        length += strspn(name + length, name[length] == '<' ? "<=>" : "=>!+-*/&|^%~,");
        return length > strlen(OPERATOR) ? length : 0;
}

void short_name(const char *name, char *to, size_t room)
{
        struct text text = { to, 0, room };
        unsigned depth = 0;
        size_t n;

        for (const char *c = name; *c && *name != '<' && strchr(name, '('); c++) {
                n = depth ? 0 : whole(c, c == name || strchr(" :", c[-1]));
                if (n) {
                        put(&text, c, n);
                        c += n - 1;
                } else if (strchr("<([", *c)) {
                        depth++;
                } else if (strchr(">)]", *c)) {
                        depth -= depth > 0;
                        if (!depth && *c == ')' && c[1] != ':' && c[1] != '#')
                                break;
                } else if (!depth && *c == ' ' && c[1] != '<') {
                        text.length = 0;        /* that was what it returns */
                } else if (!depth && *c != ' ') {
                        put(&text, c, 1);
                }
        }
        if (text.length)
                to[text.length] = '\0';
        else
                snprintf(to, room, "%s", name);
}
