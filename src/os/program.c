/*
 * Purpose: where the program's file lies in memory. The kernel tells where the program headers are;
 * the one that describes them has the address that they have in the file. A program that is loaded
 * at the addresses of its file has none, and base 0.
 */
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "os/os.h"

uintptr_t stook_os_program_base(void)
{
        const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
        unsigned long count = getauxval(AT_PHNUM);

        for (unsigned long i = 0; headers && i < count; i++)
                if (headers[i].p_type == PT_PHDR)
                        return (uintptr_t)headers - headers[i].p_vaddr;
        return 0;
}
