/*
 * Purpose: the names of this process and this thread, for reports.
 * Concurrency: any thread, any instruction.
 */
#include <errno.h>
#include <sys/prctl.h>

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

uint32_t stook_os_thread_number(void)
{
        return (uint32_t)stook_call(SYS_gettid);
}

void stook_os_name_thread(const char *name)
{
        stook_call(SYS_prctl, PR_SET_NAME, name, 0, 0, 0);
}
