/*
 * Purpose: the names of this process and this thread, for reports.
 * Concurrency: any thread, any instruction.
 */
#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

#include "os/os.h"
#include "os/system_call.h"

/* libc's; not there in every libc. */
extern char *program_invocation_short_name __attribute__((weak));

const char *stook_os_program(void)
{
        if (&program_invocation_short_name && program_invocation_short_name &&
            *program_invocation_short_name)
                return program_invocation_short_name;
        return "a program";
}

/* The linker's: the header of the file that this code is in. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));

/* Is @address in code of the file with this header? */
static bool is_code_of(const char *start, uintptr_t address)
{
        const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)start;
        const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(start + head->e_phoff);
        uintptr_t bias = (uintptr_t)start;

        for (unsigned i = 0; i < head->e_phnum; i++)
                if (segment[i].p_type == PT_LOAD && !segment[i].p_offset)
                        bias = (uintptr_t)start - segment[i].p_vaddr;
        for (unsigned i = 0; i < head->e_phnum; i++)
                if (segment[i].p_type == PT_LOAD && (segment[i].p_flags & PF_X) &&
                    address - (bias + segment[i].p_vaddr) < segment[i].p_memsz)
                        return true;
        return false;
}

bool stook_os_is_own_code(uintptr_t address)
{
        return __ehdr_start && is_code_of(__ehdr_start, address) &&
               !is_code_of(__ehdr_start, getauxval(AT_ENTRY));
}

uint32_t stook_os_thread_number(void)
{
        return (uint32_t)stook_call(SYS_gettid);
}
