/*
 * Purpose: an intrusive doubly linked list with a head of its own. An element that is on no list
 * has `next` NULL; only removal keeps that so.
 */
#ifndef STOOK_LIST_H
#define STOOK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include "base/compiler.h"

struct stook_list {
        struct stook_list *next, *prev;
};

STOOK_INLINE void stook_list_init(struct stook_list *head)
{
        head->next = head->prev = head;
}

STOOK_INLINE bool stook_list_empty(const struct stook_list *head)
{
        return head->next == head;
}

STOOK_INLINE bool stook_list_linked(const struct stook_list *e)
{
        return e->next != NULL;
}

STOOK_INLINE void stook_list_insert_between(struct stook_list *e, struct stook_list *prev,
                                            struct stook_list *next)
{
        e->next = next;
        e->prev = prev;
        prev->next = e;
        next->prev = e;
}

STOOK_INLINE void stook_list_add_head(struct stook_list *head, struct stook_list *e)
{
        stook_list_insert_between(e, head, head->next);
}

STOOK_INLINE void stook_list_add_tail(struct stook_list *head, struct stook_list *e)
{
        stook_list_insert_between(e, head->prev, head);
}

STOOK_INLINE void stook_list_remove(struct stook_list *e)
{
        e->prev->next = e->next;
        e->next->prev = e->prev;
        e->next = e->prev = NULL;
}

#define stook_list_for_each(e, head) \
        for (struct stook_list *e = (head)->next; e != (head); e = e->next)
#define stook_list_for_each_safe(e, head) \
        for (struct stook_list *e = (head)->next, *e##_next = e->next; e != (head); \
             e = e##_next, e##_next = e->next)

#endif
