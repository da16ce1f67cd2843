/*
 * Purpose: see thread_list.h.
 * Place: called by cpu.c and own_thread.c.
 *
 * The kernel cuts a list short where a thread on it ends meanwhile. So what was visited is counted.
 * How many threads there are is in the folder's number of links, besides the usual two.
 */
#include <sys/stat.h>

#include "base/compiler.h"
#include "os/system_call.h"
#include "os/thread_list.h"

struct entry {                          /* of a folder, as getdents64 writes it */
        uint64_t inode;
        int64_t  next;
        uint16_t bytes;
        uint8_t  type;
        char     name[];
};

/* 0: "." or "..". */
static uint32_t number(const char *digits)
{
        uint32_t n = 0;

        for (; *digits >= '0' && *digits <= '9'; digits++)
                n = n * 10 + (uint32_t)(*digits - '0');
        return n;
}

int stook_thread_list(bool (*visit)(uint32_t id, const char *digits, void *data), void *data)
{
        char buffer[512] __attribute__((aligned(8)));
        int folder = stook_call_open("/proc/self/task");
        bool on = true;
        struct stat now;
        uint64_t links = 2;
        long n = 0;

        if (folder < 0)
                return folder;
        while (on && (n = stook_call(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0)
                for (long at = 0; on && at < n;) {
                        const struct entry *entry = (const void *)(buffer + at);
                        uint32_t id = number(entry->name);

                        at += entry->bytes;
                        links += id != 0;
                        on = !id || visit(id, entry->name, data);
                }
        on = on && !n && !fstat(folder, &now) && now.st_nlink == links;
        stook_call_close(folder);
        return on;
}
