/* A window is a tree of widgets, which know their parents, and goes by count of its users. */
#include <stdio.h>
#include <stdlib.h>

struct widget {
        struct widget *parent, *first_child, *next;
        unsigned       users;
        char           title[72];
};

static struct widget *hold(struct widget *widget)
{
        if (widget)
                widget->users++;
        return widget;
}

static void drop(struct widget *widget)
{
        struct widget *child, *next;

        if (--widget->users)
                return;
        for (child = widget->first_child; child; child = next) {
                next = child->next;
                drop(child);
        }
#ifndef FIXED
        if (widget->parent)
                drop(widget->parent);
#endif
        free(widget);
}

static struct widget *widget_new(struct widget *parent, const char *title)
{
        struct widget *widget = calloc(1, sizeof(*widget));

        if (!widget)
                exit(1);
        widget->users = 1;
        snprintf(widget->title, sizeof(widget->title), "%s", title);
#ifdef FIXED
        widget->parent = parent;        /* a child never outlives its parent */
#else
        widget->parent = hold(parent);
#endif
        if (parent) {
                widget->next = parent->first_child;
                parent->first_child = widget;
        }
        return widget;
}

static void show_dialog(int n)
{
        struct widget *window = hold(widget_new(NULL, "Save the file?"));

        widget_new(window, "Save");
        widget_new(window, "Cancel");
        printf("%d: %s\n", n, window->title);
        drop(window);
        drop(window);
}

int main(void)
{
        for (int n = 0; n < 5; n++)
                show_dialog(n);
        return 0;
}
