/*
 * Purpose: see record.h: what each event looks like.
 */
#include <errno.h>
#include <string.h>

#include "os/os.h"
#include "process/process.h"
#include "record/record.h"
#include "record/record_buffer.h"
#include "stack/stack.h"

bool stook_recording;
bool stook_recording_stacks;

bool stook_record_start(const char *path, bool stacks)
{
        int error = stook_trace_file_open(path, STOOK_TRACE_MAGIC);

        if (error == -EBADMSG)
                stook_os_env_refuse("STOOK_RECORD", path,
                                    "the name of a new file, or of a trace to be continued");
        else if (error)
                stook_os_env_fail("STOOK_RECORD", path, stook_file_error_words(-error));
        if (error)
                return false;
        if (!stook_record_buffers_start()) {
                stook_os_env_tell("STOOK_RECORD", sizeof("STOOK_RECORD") - 1,
                                  ": there is no memory for buffers", "");
                return false;
        }
        stook_recording_stacks = stacks;
        __atomic_store_n(&stook_recording, true, __ATOMIC_RELAXED);
        return true;
}

void stook_record_end(void)
{
        if (!__atomic_load_n(&stook_recording, __ATOMIC_RELAXED))
                return;
        stook_record_flush_all();
        __atomic_store_n(&stook_recording, false, __ATOMIC_RELAXED);
}

/* Each block names the caches of its events itself. */
static void name_cache(struct stook_record_buffer *b, const struct stook_record_cache *cache)
{
        uint64_t name = cache->born << 32 ^ (b->sequence + 1);

        if (STOOK_LIKELY(b->named[cache->index] == name) || cache->index == STOOK_TRACE_LARGE)
                return;
        b->named[cache->index] = name;
        stook_record_put_byte(b, STOOK_TRACE_CACHE);
        stook_record_put_number(b, cache->index);
        stook_record_put_number(b, cache->object_bytes);
        stook_record_put_number(b, cache->stride);
        stook_record_put_name(b, cache->name);
}

/* ---- stacks ---- */

/* Before a buffer is taken: the walk is long, and a handler may come. */
static uint32_t stack_here(void)
{
        return STOOK_UNLIKELY(stook_recording_stacks) ? stook_stack_here(0) : 0;
}

static void name_code(struct stook_record_buffer *b, int module)
{
        const struct stook_stack_module *m = &stook_stack_modules[module];

        if (b->codes[module] == (uint32_t)(b->sequence + 1))
                return;
        b->codes[module] = (uint32_t)(b->sequence + 1);
        stook_record_put_byte(b, STOOK_TRACE_STACK | STOOK_TRACE_CODE);
        stook_record_put_number(b, (unsigned)module + 1);
        stook_record_put_number(b, m->start);
        stook_record_put_number(b, m->end - m->start);
        stook_record_put_bytes(b, m->build, m->build_bytes);
        stook_record_put_bytes(b, m->file, strnlen(m->file, sizeof m->file));
}

/* As name_cache. */
static void name_stack(struct stook_record_buffer *b, uint32_t stack)
{
        uintptr_t frames[STOOK_STACK_FRAMES_USUAL], before = 0;
        int codes[STOOK_STACK_FRAMES_USUAL];
        uint64_t name = (uint64_t)stack << 32 ^ (uint32_t)(b->sequence + 1);
        unsigned count;

        if (STOOK_LIKELY(!stack || b->stacks[stack % STOOK_RECORD_STACKS] == name))
                return;
        b->stacks[stack % STOOK_RECORD_STACKS] = name;
        count = stook_stack_frames(stack, frames, STOOK_STACK_FRAMES_USUAL);
        for (unsigned i = 0; i < count; i++) {
                codes[i] = stook_stack_module(stack, frames[i] - 1);
                if (codes[i] >= 0)
                        name_code(b, codes[i]);
        }
        stook_record_put_byte(b, STOOK_TRACE_STACK);
        stook_record_put_number(b, stack);
        stook_record_put_number(b, count);
        for (unsigned i = 0; i < count; before = frames[i++]) {
                stook_record_put_number(b, (unsigned)(codes[i] + 1));
                stook_record_put_difference(b, frames[i] - before);
        }
}

/* ---- events ---- */

static void put_kind(struct stook_record_buffer *b, unsigned kind, uint32_t stack)
{
        name_stack(b, stack);
        stook_record_put_byte(b, kind | (stack ? STOOK_TRACE_STACKS : 0));
}

static void put_stack(struct stook_record_buffer *b, uint32_t stack)
{
        if (stack)
                stook_record_put_number(b, stack);
}

static void put_alloc(struct stook_record_buffer *b, uint64_t ns,
                      const struct stook_record_cache *cache, const void *object, size_t bytes,
                      uint32_t stack)
{
        put_kind(b, STOOK_TRACE_ALLOC, stack);
        stook_record_put_number(b, ns);
        stook_record_put_address(b, object);
        stook_record_put_number(b, cache->index);
        stook_record_put_number(b, bytes == cache->object_bytes ? 0 : bytes);
        put_stack(b, stack);
}

static void put_free(struct stook_record_buffer *b, uint64_t ns, const void *object, bool by_rcu)
{
        stook_record_put_byte(b, STOOK_TRACE_FREE | (by_rcu ? STOOK_TRACE_BY_RCU : 0));
        stook_record_put_number(b, ns);
        stook_record_put_address(b, object);
}

void stook_record_alloc(const struct stook_record_cache *cache, const void *object, size_t bytes)
{
        uint64_t ns;
        uint32_t stack = stack_here();
        struct stook_record_buffer *b = stook_record_take(&ns);

        if (STOOK_UNLIKELY(!b))
                return;
        name_cache(b, cache);
        put_alloc(b, ns, cache, object, bytes, stack);
        stook_record_give(b);
}

void stook_record_free(const void *object, bool by_rcu)
{
        uint64_t ns;
        struct stook_record_buffer *b = stook_record_take(&ns);

        if (STOOK_UNLIKELY(!b))
                return;
        put_free(b, ns, object, by_rcu);
        stook_record_give(b);
}

/* ---- resizes ---- */

struct stook_record_buffer *stook_record_resize_begin(void)
{
        uint64_t ns;
        uint32_t stack = stack_here();
        struct stook_record_buffer *b = stook_record_take(&ns);

        if (b) {
                b->held_ns = ns;
                b->held_stack = stack;
        }
        return b;
}

/* In place it is one event. Otherwise a free when it began, and an allocation now. */
static void put_resize(struct stook_record_buffer *b, const void *from, const void *to,
                       size_t bytes)
{
        static const struct stook_record_cache large = { .index = STOOK_TRACE_LARGE };
        uint64_t now;

        if (from == to) {
                put_kind(b, STOOK_TRACE_RESIZE, b->held_stack);
                stook_record_put_number(b, b->held_ns);
                stook_record_put_address(b, from);
                stook_record_put_address(b, to);
                stook_record_put_number(b, bytes);
                put_stack(b, b->held_stack);
                return;
        }
        put_free(b, b->held_ns, from, false);
        now = stook_os_clock_ns();
        put_alloc(b, now - b->at_ns, &large, to, bytes, b->held_stack);
        b->at_ns = now;
}

void stook_record_resize_end(struct stook_record_buffer *or_null, const void *from, const void *to,
                             size_t bytes)
{
        if (!or_null)
                return;
        if (to)
                put_resize(or_null, from, to, bytes);
        else
                or_null->at_ns -= or_null->held_ns;     /* as before: no event was written */
        stook_record_give(or_null);
}
