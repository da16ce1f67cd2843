/*
 * Purpose: see file_kind.h.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/files/file_kind.h"
#include "cli/files/packed.h"
#include "record/trace_format.h"

const char file_kind_core[] = "a core: `stook info` reads it";
const char file_kind_trace[] = "a trace: `stook replay` reads it";

/* Of an ELF file of any machine: its type is where it is in all of them. */
static const char *kind_of_elf(const char *begin, size_t bytes)
{
        uint16_t type = 0;

        if (bytes >= offsetof(Elf64_Ehdr, e_type) + sizeof type)
                memcpy(&type, begin + offsetof(Elf64_Ehdr, e_type), sizeof type);
        if (type == ET_CORE)
                return file_kind_core;
        return type == ET_EXEC || type == ET_DYN ? "a program or a library" : "an object file";
}

const char *file_kind(const char *begin, size_t bytes)
{
        const uint64_t trace = STOOK_TRACE_MAGIC;

        if (bytes >= sizeof trace && !memcmp(begin, &trace, sizeof trace))
                return file_kind_trace;
        if (bytes >= SELFMAG && !memcmp(begin, ELFMAG, SELFMAG))
                return kind_of_elf(begin, bytes);
        if (bytes && packed_by(begin, bytes))
                return "a packed file";
        return bytes && *begin == '{' ? "JSON" : NULL;
}

const char *file_kind_at(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        const char *kind = NULL;
        char begin[sizeof(Elf64_Ehdr)];
        struct stat st;

        if (fd < 0)
                return NULL;
        if (fstat(fd, &st)) {
                kind = NULL;
        } else if (S_ISDIR(st.st_mode)) {
                kind = "a folder";
        } else if (S_ISREG(st.st_mode)) {
                ssize_t n = pread(fd, begin, sizeof begin, 0);

                kind = n > 0 ? file_kind(begin, (size_t)n) : "an empty file";
        }
        close(fd);
        return kind;
}
