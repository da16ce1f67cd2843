/*
 * Purpose: the callers of a call, by the unwind tables of a process's files (elfutils' libdwfl).
 * The process sent its registers and a copy of its stack. So it needs no unwinder, it is not
 * traced, and a system that forbids to trace processes forbids nothing here.
 * Failure: the walk ends where a table is missing, or a word is not in the copy.
 */
#include "cli/symbols/symbols_inside.h"

#include <string.h>

#ifdef STOOK_HAVE_DW

struct walk {
        const struct symbols_call *call;
        pid_t     pid;
        uint64_t *addresses;
        size_t    count, most;
};

/* The process has one thread here. */
static pid_t next_thread(Dwfl *dwfl, void *data, void **thread)
{
        struct walk *walk = data;

        (void)dwfl;
        if (*thread)
                return 0;
        *thread = walk;
        return walk->pid;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *data)
{
        const struct symbols_call *call = ((struct walk *)data)->call;
        uint64_t offset = address - call->stack;

        (void)dwfl;
        if (offset >= call->bytes || call->bytes - offset < sizeof *word)
                return false;
        memcpy(word, call->copy + offset, sizeof *word);
        return true;
}

static bool set_registers(Dwfl_Thread *thread, void *data)
{
        const struct symbols_call *call = ((struct walk *)data)->call;

        for (unsigned i = 0; i < call->count; i++) {
                Dwarf_Word value = call->registers[i].value;

                if (!dwfl_thread_state_registers(thread, (int)call->registers[i].number, 1,
                                                 &value))
                        return false;
        }
        dwfl_thread_state_register_pc(thread, call->pc);
        return true;
}

/*
 * What is told are return addresses, which lie behind the call. The first frame's address, and that
 * of a frame interrupted by a signal, is the instruction itself: one byte is added.
 */
static int note_frame(Dwfl_Frame *frame, void *data)
{
        struct walk *walk = data;
        bool is_no_return;
        Dwarf_Addr pc;

        if (walk->count == walk->most || !dwfl_frame_pc(frame, &pc, &is_no_return) || !pc)
                return DWARF_CB_ABORT;
        walk->addresses[walk->count++] = pc + is_no_return;
        return DWARF_CB_OK;
}

size_t symbols_walk(struct symbols *symbols, pid_t pid, const struct symbols_call *call,
                    uint64_t *addresses, size_t most)
{
        static const Dwfl_Thread_Callbacks callbacks = {
                .next_thread = next_thread,
                .memory_read = read_word,
                .set_initial_registers = set_registers,
        };
        struct walk walk = { .call = call, .pid = pid, .addresses = addresses, .most = most };

        if (dwfl_attach_state(symbols->dwfl, NULL, pid, &callbacks, &walk))
                dwfl_getthread_frames(symbols->dwfl, pid, note_frame, &walk);
        return walk.count;
}

#else

size_t symbols_walk(struct symbols *symbols, pid_t pid, const struct symbols_call *call,
                    uint64_t *addresses, size_t most)
{
        (void)symbols, (void)pid, (void)call, (void)addresses, (void)most;
        return 0;
}

#endif
