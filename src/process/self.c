/*
 * Purpose: what this process is, and what its memory was before it ran: names and numbers, where
 * the program's file lies, memory that no allocator gave; and two ways to look where a load of ours
 * would be a fault, or libc would allocate: the kernel copies memory, and a text file of the kernel
 * is read line by line.
 * Place: called by reports, and where an address is not known to be good: frames of a stack, memory
 * to be dumped or searched, pointers that are to be freed and are none of ours.
 * Concurrency: any thread, any instruction. The kernel may change a file between two reads.
 * Failure: false: not all of the memory or the file can be read.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/system_call.h"
#include "process/process.h"

/* libc's; not there in every libc. */
extern char *program_invocation_short_name __attribute__((weak));

const char *stook_process_name(void)
{
        if (&program_invocation_short_name && program_invocation_short_name &&
            *program_invocation_short_name)
                return program_invocation_short_name;
        return "a program";
}

void stook_process_path(char *path, size_t bytes)
{
        ssize_t n = readlink("/proc/self/exe", path, bytes - 1);

        path[n > 0 ? n : 0] = '\0';
}

uint32_t stook_process_id(void)
{
        return (uint32_t)getpid();
}

uint32_t stook_process_parent_id(void)
{
        return (uint32_t)getppid();
}

uint32_t stook_process_thread_id(void)
{
        return (uint32_t)stook_call(SYS_gettid);
}

void stook_process_name_thread(const char *name)
{
        stook_call(SYS_prctl, PR_SET_NAME, name, 0, 0, 0);
}

uintptr_t stook_process_program_base(void)
{
        const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
        unsigned long count = getauxval(AT_PHNUM);

        for (unsigned long i = 0; headers && i < count; i++)
                if (headers[i].p_type == PT_PHDR)
                        return (uintptr_t)headers - headers[i].p_vaddr;
        return 0;
}

struct search {
        uintptr_t address;
        uintptr_t file_end;             /* of the mapping before, if that is of a file */
        bool      found;
};

static const char *read_hex(const char *c, uintptr_t *n)
{
        for (*n = 0; (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'f'); c++)
                *n = *n * 16 + (uintptr_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
        return c;
}

/* Data without a beginning in the file (.bss) lies behind the file's last mapping. */
static bool look(const char *line, void *data)
{
        struct search *search = data;
        uintptr_t start, end;
        const char *c = read_hex(line, &start), *path = strchr(line, '/');
        bool is_file;

        if (*c != '-')
                return false;
        read_hex(c + 1, &end);
        is_file = path && strncmp(path, "/dev/", 5) && strncmp(path, "/memfd:", 7) &&
                  strncmp(path, "/SYSV", 5);
        if (search->address >= start && search->address < end)
                search->found = is_file || strstr(line, "[stack]") ||
                                (!strchr(line, '[') && !path && start == search->file_end);
        search->file_end = is_file ? end : 0;
        return search->address < end;
}

bool stook_process_is_program_memory(const void *address)
{
        struct search search = { .address = (uintptr_t)address };

        stook_file_each_line("/proc/self/maps", look, &search);
        return search.found;
}

bool stook_process_read_memory(void *to, const void *from, size_t bytes)
{
        struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)from, bytes };
        long pid = stook_call(SYS_getpid);

        return stook_call(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0) == (long)bytes;
}

#define LINE_BYTES 384                  /* longer lines are cut: of a long path its end */

bool stook_file_each_line(const char *path, bool (*each)(const char *line, void *data), void *data)
{
        int fd = stook_call_open(path);
        char line[LINE_BYTES], piece[128];
        size_t bytes = 0;
        bool done = false;
        long n = 0;

        if (fd < 0)
                return false;
        while (!done && (n = stook_call(SYS_read, fd, piece, sizeof(piece))) > 0) {
                for (long i = 0; i < n && !done; i++) {
                        if (piece[i] != '\n') {
                                if (bytes < sizeof(line) - 1)
                                        line[bytes++] = piece[i];
                                continue;
                        }
                        line[bytes] = '\0';
                        bytes = 0;
                        done = each(line, data);
                }
        }
        stook_call_close(fd);
        return done || !n;
}
