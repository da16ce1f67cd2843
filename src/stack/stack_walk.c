/*
 * Purpose: the return addresses of this thread's calls.
 * glibc's backtrace() reads the tables that compilers write for exceptions, so it needs no frame
 * pointers. Its first call loads libgcc_s, which allocates; the start makes that call. Later ones
 * do not allocate. From glibc 2.35 with gcc 12 on they take no lock either, so that handlers may
 * make them. Before, they take the loader's lock: a thread in dlopen may hold it, which waits for
 * no other thread while it does.
 * Where libc has no backtrace() (musl), the chain of frame pointers is followed. A pointer that
 * leads nowhere ends the walk: the kernel reads the memory (stook_process_read_memory).
 * Place: called by watched allocations and frees, and by reports, which lie below; calls os.
 * Invariants:
 *  I1 backtrace() is called only while `ready` is set, but for the start itself. What the start's
 *     call allocates finds `ready` clear, and has no stack.
 * Failure: no frames.
 */
#include <string.h>

#include "process/process.h"
#include "report/report.h"
#include "stack/stack.h"

#define SKIP_OWN 1                      /* backtrace() begins in the function that calls it */
#define OWN_MOST 16                     /* frames of ours in front of the caller's; arbitrary */

extern int backtrace(void **frames, int most) __attribute__((weak));

static bool ready;                      /* atomic: I1 */
static uintptr_t own_start, own_end;    /* written before `ready`: code of this shared library */

static const struct stook_report_stack_source source = { stook_stack_here, stook_stack_frames };

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

        if (__atomic_load_n(&ready, __ATOMIC_RELAXED))
                return true;
        if (!stook_stack_table_start())
                return false;
        if (backtrace)
                backtrace(frames, 2);
        stook_file_each_line("/proc/self/maps", find_own, NULL);
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

/* @frames has room for @most, with our own. */
STOOK_INLINE uint32_t number_of(uintptr_t *frames, unsigned most, unsigned wanted, unsigned skip)
{
        unsigned count, from = skip;

        if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
                return 0;
        if (backtrace) {
                int got = backtrace((void **)frames, (int)most);

                count = got > 0 ? (unsigned)got : 0;
                from += SKIP_OWN;
        } else {
                count = follow((uintptr_t)__builtin_frame_address(0), frames, most);
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

        return number_of(frames, STOOK_ARRAY_SIZE(frames), STOOK_STACK_FRAMES_USUAL, skip);
}

STOOK_NOINLINE uint32_t stook_stack_deep(unsigned skip)
{
        uintptr_t frames[STOOK_STACK_FRAMES_MOST + OWN_MOST];

        return number_of(frames, STOOK_ARRAY_SIZE(frames), STOOK_STACK_FRAMES_MOST, skip);
}
