/*
 * Purpose: the return addresses of this thread's calls.
 * The tables that compilers write for exceptions lead to them, without frame pointers: by rules of
 * our own (stack_rules.c), and where those cannot tell, by glibc's backtrace().
 * Its first call loads libgcc_s, which allocates; the start makes that call. Later ones
 * do not allocate. From glibc 2.35 with gcc 12 on they take no lock either, so that handlers may
 * make them. Before, they take the loader's lock: a thread in dlopen may hold it, which waits for
 * no other thread while it does.
 * A wholly static program on glibc has stacks if it is position-independent and has one of the two.
 * Else its tables are registered with libgcc, whose look-ups take a lock that a handler or a forked
 * child would wait for for ever: then there are no stacks, and what a report finds is walked by its
 * helper.
 * Where libc has no backtrace() (musl), the chain of frame pointers is followed. A pointer that
 * leads nowhere ends the walk: the kernel reads the memory (stook_process_read_memory).
 * Place: called by watched allocations and frees, and by reports, which lie below; calls os.
 * Invariants:
 *  I1 backtrace() is called only while `ready` is set, but for the start itself. What the start's
 *     call allocates finds `ready` clear, and has no stack.
 *  I2 a handler's own stack is small. A deep walk has its frames in metadata, and calls backtrace()
 *     on the thread's stack only.
 * Failure: no frames.
 */
#include <string.h>

#include "base/tagged_stack.h"
#include "os/os.h"
#include "pages/meta.h"
#include "process/process.h"
#include "report/report.h"
#include "stack/stack.h"

#define SKIP_OWN 1                      /* backtrace() begins in the function that calls it */
#define OWN_MOST 16                     /* frames of ours in front of the caller's; arbitrary */

extern int backtrace(void **frames, int most) __attribute__((weak));
/* A wholly static program that is not position-independent has none. */
extern const char _DYNAMIC[] __attribute__((weak, visibility("hidden")));

#ifndef __GLIBC__
#define HAS_WALK true
#elif defined(STOOK_STACK_HAS_RULES)
#define HAS_WALK (_DYNAMIC && (backtrace || _dl_find_object))
#else
#define HAS_WALK (_DYNAMIC && backtrace)
#endif

static bool ready;                      /* atomic: I1 */
static uintptr_t own_start, own_end;    /* written before `ready`: code of this shared library */

static const char *closed(uint32_t id, uintptr_t address, uintptr_t *start)
{
        int module = stook_stack_closed_module(id, address);

        if (module < 0)
                return NULL;
        *start = stook_stack_modules[module].start;
        return stook_stack_modules[module].file;
}

static const struct stook_report_stack_source source = { stook_stack_here, stook_stack_frames,
                                                         closed };

/*
 * The inner frames are the library's own. A shared library knows them by their addresses; linked
 * statically it does not, and `stook symbolize` leaves them out by their names.
 */
static bool find_own(const char *line, void *unused)
{
        uintptr_t start, end, here = (uintptr_t)find_own;
        const char *c = stook_text_read(line, &start), *name;

        (void)unused;
        if (*c != '-' || here < start)
                return false;
        stook_text_read(c + 1, &end);
        if (here >= end)
                return false;
        name = strrchr(line, '/');
        if (name && !strncmp(name, "/libstook", 9)) {
                own_start = start;
                own_end = end;
        }
        return true;
}

bool stook_stack_start(void)
{
        void *frames[2];

        if (__atomic_load_n(&ready, __ATOMIC_RELAXED) || !HAS_WALK)
                return true;
        if (!stook_stack_table_start())
                return false;
        if (backtrace)
                backtrace(frames, 2);
        stook_file_each_line("/proc/self/maps", find_own, NULL);
        stook_stack_modules_start();
        __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
        stook_report_set_stacks(&source);
        return true;
}

/*
 * {the caller's frame pointer, return address} where the frame pointer points; on RISC-V below it.
 */
#if defined(__riscv)
#define FRAME_BELOW sizeof(struct frame)
#else
#define FRAME_BELOW 0
#endif

struct frame {
        uintptr_t outer, address;
};

static STOOK_NOINLINE unsigned follow(uintptr_t at, uintptr_t *frames, unsigned most)
{
        struct frame frame;
        unsigned count = 0;

        while (count < most && at && at % sizeof(void *) == 0 &&
               stook_process_read_memory(&frame, (const void *)(at - FRAME_BELOW), sizeof(frame))) {
                if (!frame.address)
                        break;
                frames[count++] = frame.address;
                if (frame.outer <= at)          /* stacks grow down */
                        break;
                at = frame.outer;
        }
        return count;
}

/*
 * The call whose frame pointer is @frame; @frames has room for @most, with our own. @deep: I2.
 */
STOOK_INLINE uint32_t number_of(const void *frame, uintptr_t *frames, unsigned most,
                                unsigned wanted, unsigned skip, bool deep)
{
        unsigned count = 0, from = skip;

#ifdef STOOK_STACK_HAS_RULES
        count = stook_stack_by_rules(frame, frames, most);
#endif
        if (!count && deep && !stook_os_same_stack(0))
                return 0;
        if (!count && backtrace) {
                int got = backtrace((void **)frames, (int)most);

                count = got > 0 ? (unsigned)got : 0;
                from += SKIP_OWN;
        } else if (!count) {
                count = follow((uintptr_t)frame, frames, most);
        }
        while (from < count && frames[from] - own_start < own_end - own_start)
                from++;
        if (from >= count)
                return 0;
        count -= from;
        return stook_stack_number(frames + from, count < wanted ? count : wanted);
}

STOOK_NOINLINE uint32_t stook_stack_here(unsigned skip)
{
        uintptr_t frames[STOOK_STACK_FRAMES_USUAL + OWN_MOST];

        if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
                return 0;
        return number_of(__builtin_frame_address(0), frames, STOOK_ARRAY_SIZE(frames),
                         STOOK_STACK_FRAMES_USUAL, skip, false);
}

/* Frames of a deep walk. A call that is jumped out of loses them. */
struct room {
        struct stook_link link;         /* while nobody has it */
        uintptr_t frames[STOOK_STACK_FRAMES_MOST + OWN_MOST];
};

static struct stook_tagged_stack rooms;

STOOK_NOINLINE uint32_t stook_stack_deep(unsigned skip)
{
        struct stook_link *link;
        struct room *room;
        uint32_t number;

        if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
                return 0;
        link = stook_tagged_stack_pop(&rooms);
        room = link ? stook_container_of(link, struct room, link)
                    : stook_meta_bump(sizeof(*room), sizeof(void *));
        if (!room)
                return 0;
        number = number_of(__builtin_frame_address(0), room->frames,
                           STOOK_ARRAY_SIZE(room->frames), STOOK_STACK_FRAMES_MOST, skip, true);
        stook_tagged_stack_push(&rooms, &room->link);
        return number;
}
