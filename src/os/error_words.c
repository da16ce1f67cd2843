/*
 * Purpose: what the system answered, in words, where the C library's own may not be asked: its
 * strerror() may allocate, and reports come from signal handlers.
 * Place: for files that the user has named: STOOK_REPORT_JSON, STOOK_PROFILE, STOOK_RECORD.
 * Concurrency: any thread, any instruction.
 */
#include <errno.h>

#include "os/os.h"

const char *stook_os_error_words(int error)
{
        switch (error) {
        case ENOENT:
        case ENOTDIR:
                return "no such folder or file";
        case EACCES:
        case EPERM:
                return "permission denied";
        case EISDIR:
                return "it is a folder";
        case EROFS:
                return "the file system is read-only";
        case ENOSPC:
        case EDQUOT:
                return "no space is left";
        case EFBIG:
                return "the file would be larger than its limit";
        case EMFILE:
        case ENFILE:
                return "too many files are open";
        case ENAMETOOLONG:
                return "its name is too long";
        case EEXIST:
                return "it is there, and is no regular file";
        case ENOMEM:
                return "no memory";
        default:
                return "the system refuses";
        }
}
