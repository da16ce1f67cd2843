/*
 * Purpose: a fake slab layer for tests of the layers above: a stack of objects, and no more. It
 * reports an object that comes back twice, and counts the objects that are out.
 */
#include <stdlib.h>
#include <string.h>
#include "unit/slot/fake_slab.h"
#include "base/tagged_stack.h"

struct fake_object {
        struct stook_link link;
        uint32_t inside;                /* atomic: 1 while it lies in the stack */
        uint32_t stamp;                 /* the test's: 1 while a user has it */
};

static struct stook_tagged_stack stack;
static struct fake_object *objects;
static size_t count;
size_t fake_slab_faults;
long   fake_slab_fail_after = -1;

void fake_slab_start(size_t n)
{
        free(objects);
        memset(&stack, 0, sizeof(stack));
        objects = calloc(n, sizeof(*objects));
        count = n;
        fake_slab_faults = 0;
        fake_slab_fail_after = -1;
        for (size_t i = n; i-- > 0;) {
                objects[i].inside = 1;
                stook_tagged_stack_push(&stack, &objects[i].link);
        }
}

size_t fake_slab_out(void)
{
        size_t out = 0;

        for (size_t i = 0; i < count; i++)
                out += !__atomic_load_n(&objects[i].inside, __ATOMIC_ACQUIRE);
        return out;
}

uint32_t *fake_slab_stamp(void *object)
{
        return &((struct fake_object *)object)->stamp;
}

/* No slabs here, so none are kept empty. */
void stook_slabs_give_kept(struct stook_slabs *slabs, unsigned node)
{
        (void)slabs, (void)node;
}

size_t stook_slab_fill(struct stook_slabs *slabs, unsigned node, size_t n, void **out,
                       unsigned flags)
{
        (void)slabs, (void)node, (void)flags;
        for (size_t i = 0; i < n; i++) {
                struct stook_link *link;

                if (fake_slab_fail_after == 0)
                        return i;
                if (fake_slab_fail_after > 0)
                        fake_slab_fail_after--;
                link = stook_tagged_stack_pop(&stack);
                if (!link)
                        return i;
                out[i] = stook_container_of(link, struct fake_object, link);
                __atomic_store_n(&((struct fake_object *)out[i])->inside, 0, __ATOMIC_RELAXED);
        }
        return n;
}

void stook_slab_drain(struct stook_slabs *slabs, size_t n, void *const *in)
{
        (void)slabs;
        for (size_t i = 0; i < n; i++) {
                struct fake_object *o = in[i];

                if (__atomic_exchange_n(&o->inside, 1, __ATOMIC_RELEASE))
                        __atomic_fetch_add(&fake_slab_faults, 1, __ATOMIC_RELAXED);
                else
                        stook_tagged_stack_push(&stack, &o->link);
        }
}
