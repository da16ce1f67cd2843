/*
 * Purpose: the names of this process and this thread, for reports.
 * Concurrency: any thread, any instruction.
 */
#include <errno.h>
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

/* The linker's: where the file that this code is in begins, and its code ends. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
extern const char etext[] __attribute__((weak, visibility("hidden")));

bool stook_os_is_own_code(uintptr_t address)
{
        uintptr_t start = (uintptr_t)__ehdr_start, bytes = (uintptr_t)etext - start;

        return start && getauxval(AT_ENTRY) - start >= bytes && address - start < bytes;
}

uint32_t stook_os_thread_number(void)
{
        return (uint32_t)stook_call(SYS_gettid);
}
