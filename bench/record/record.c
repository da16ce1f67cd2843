/*
 * bench/record/record.c - writes down what a program asks of malloc
 *
 * Purpose: libstook-record.so, preloaded, writes every allocation and free of a program to a file,
 * from which record.py makes the data files of bench/data. The memory itself comes from the C
 * library.
 *   STOOK_RECORD=FILE      one file for each process: FILE.PID
 * Format: numbers of 7 bits a byte, lowest first, bit 7 set in all but the last. The low two bits
 * of an event's first number say what it is:
 *   0 allocate, the size above them
 *   1 free, the distance above them
 *   2 resize, the new size above them, then the distance
 *   3 allocate aligned, the size above them, then log2(alignment)
 * Allocations are numbered from 0; a distance is the number of the next allocation less that of the
 * object's. An object keeps its number when it is resized.
 * Concurrency: one lock around each event. A forked child begins a file of its own; objects of its
 * parent are unknown to it, and their frees are left out.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define SLOTS ((size_t)1 << 24)         /* of the table; far fewer objects are alive */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *object, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);
extern void  __libc_free(void *object);

struct entry {
        uintptr_t object;               /* 0: unused; 1: was used */
        uint64_t  number;
};

static struct entry *table;
static uint64_t next_number;
static int fd = -1;
static unsigned char buffer[1 << 16];
static size_t filled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the file ---- */

static void flush(void)
{
        for (size_t done = 0; done < filled;) {
                ssize_t n = write(fd, buffer + done, filled - done);

                if (n <= 0)
                        break;
                done += (size_t)n;
        }
        filled = 0;
}

static void put(uint64_t value)
{
        if (filled + 10 > sizeof(buffer))
                flush();
        for (; value > 127; value >>= 7)
                buffer[filled++] = (unsigned char)(value | 128);
        buffer[filled++] = (unsigned char)value;
}

/* ---- objects by address ---- */

static size_t slot_of(uintptr_t object)
{
        return (size_t)((object >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (SLOTS - 1);
}

static struct entry *look(uintptr_t object)
{
        size_t i = slot_of(object);

        for (; table[i].object; i = (i + 1) & (SLOTS - 1))
                if (table[i].object == object)
                        return &table[i];
        return NULL;
}

static void add(void *object, uint64_t number)
{
        size_t i = slot_of((uintptr_t)object);

        while (table[i].object > 1)
                i = (i + 1) & (SLOTS - 1);
        table[i] = (struct entry){ (uintptr_t)object, number };
}

static bool drop(void *object, uint64_t *number)
{
        struct entry *entry = look((uintptr_t)object);

        if (!entry)
                return false;
        *number = entry->number;
        entry->object = 1;
        return true;
}

/* ---- events ---- */

static void allocated(void *object, size_t bytes, size_t align)
{
        int was = errno;

        pthread_mutex_lock(&lock);
        if (fd >= 0 && object) {
                add(object, next_number++);
                put((uint64_t)bytes << 2 | (align ? 3 : 0));
                if (align)
                        put((uint64_t)__builtin_ctzl(align));
        }
        pthread_mutex_unlock(&lock);
        errno = was;
}

API void *malloc(size_t bytes)
{
        void *object = __libc_malloc(bytes);

        allocated(object, bytes, 0);
        return object;
}

API void *calloc(size_t count, size_t bytes)
{
        void *object = __libc_calloc(count, bytes);

        allocated(object, count * bytes, 0);
        return object;
}

API void *memalign(size_t align, size_t bytes)
{
        void *object = __libc_memalign(align, bytes);

        allocated(object, bytes, align);
        return object;
}

API void *aligned_alloc(size_t align, size_t bytes)
{
        return memalign(align, bytes);
}

API int posix_memalign(void **to, size_t align, size_t bytes)
{
        void *object = memalign(align, bytes);

        if (!object)
                return ENOMEM;
        *to = object;
        return 0;
}

API void free(void *object)
{
        uint64_t number;
        int was = errno;

        if (!object)
                return;
        pthread_mutex_lock(&lock);
        if (fd >= 0 && drop(object, &number))
                put((next_number - number) << 2 | 1);
        pthread_mutex_unlock(&lock);
        __libc_free(object);
        errno = was;
}

/* The C library frees the old object within the call: its number is taken before, and put back. */
API void *realloc(void *object, size_t bytes)
{
        uint64_t number;
        bool known;
        void *moved;

        if (!object)
                return malloc(bytes);
        if (!bytes) {
                free(object);
                return NULL;
        }
        pthread_mutex_lock(&lock);
        known = fd >= 0 && drop(object, &number);
        moved = __libc_realloc(object, bytes);
        if (known) {
                add(moved ? moved : object, number);
                if (moved) {
                        put((uint64_t)bytes << 2 | 2);
                        put(next_number - number);
                }
        }
        pthread_mutex_unlock(&lock);
        return moved;
}

/* The C library's, whatever other allocator the program is linked to. */
API size_t malloc_usable_size(void *object)
{
        static size_t (*usable)(void *object);
        void *libc;

        if (!usable && (libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)))
                usable = (size_t (*)(void *))dlsym(libc, "malloc_usable_size");
        return object && usable ? usable(object) : 0;
}

/* ---- a file for each process ---- */

static void begin(void)
{
        const char *asked = getenv("STOOK_RECORD");
        const size_t bytes = SLOTS * sizeof(*table);
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        char path[4096];

        filled = 0;
        next_number = 0;
        if (fd >= 0)
                close(fd);
        fd = -1;
        if (!asked)
                return;
        if (table)
                munmap(table, bytes);
        table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (table == MAP_FAILED)
                return;
        snprintf(path, sizeof(path), "%s.%d", asked, (int)getpid());
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static void before_fork(void)
{
        pthread_mutex_lock(&lock);
        flush();
}

static void after_fork(void)
{
        pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
        begin();
        pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void start(void)
{
        begin();
        pthread_atfork(before_fork, after_fork, in_child);
}

__attribute__((destructor)) static void end(void)
{
        pthread_mutex_lock(&lock);
        flush();
        fd = -1;
        pthread_mutex_unlock(&lock);
}
