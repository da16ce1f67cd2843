/*
 * Purpose: the memory of a running process, by process_vm_readv; see memory.h.
 * The system lets a process look into another one of the same user, unless the other one is not
 * dumpable, or /proc/sys/kernel/yama/ptrace_scope says that only a parent may.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "cli/memory/memory.h"

static int copy(struct memory *m, uint64_t address, void *here, size_t bytes, bool out)
{
        struct iovec local = { here, bytes };
        struct iovec remote = { (void *)(uintptr_t)address, bytes };
        ssize_t n;

        if (!bytes)
                return 0;
        n = out ? process_vm_writev((pid_t)m->pid, &local, 1, &remote, 1, 0)
                : process_vm_readv((pid_t)m->pid, &local, 1, &remote, 1, 0);
        if (n == (ssize_t)bytes)
                return 0;
        return n < 0 ? -errno : -EFAULT;
}

static int read_process(struct memory *m, uint64_t address, void *out, size_t bytes)
{
        return copy(m, address, out, bytes, false);
}

static int write_process(struct memory *m, uint64_t address, const void *bytes, size_t count)
{
        return copy(m, address, (void *)(uintptr_t)bytes, count, true);
}

static FILE *open_proc(uint32_t pid, const char *name)
{
        char path[128];

        snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
        return fopen(path, "re");
}

char memory_process_state(uint32_t pid)
{
        FILE *f = open_proc(pid, "stat");
        char text[512], *state;
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

        if (f)
                fclose(f);
        text[n] = '\0';
        state = strrchr(text, ')');             /* the name before may have any character */
        return state && state[1] == ' ' ? state[2] : '\0';
}

static FILE *open_maps(struct memory *m)
{
        return open_proc(m->pid, "maps");
}

/*
 * "NUMBER ARGUMENT... STACK PC" of a thread in a system call, or "-1 STACK PC". Of one that runs
 * the system does not tell.
 */
static void read_thread(struct memory *m, uint32_t id)
{
        struct memory_thread *thread = memory_add_thread(m, id);
        char name[64], text[512], *at = text;
        FILE *f;

        snprintf(name, sizeof name, "task/%u/syscall", id);
        f = thread ? open_proc(m->pid, name) : NULL;
        if (f && fgets(text, sizeof text, f) && strncmp(text, "running", 7)) {
                strtoll(text, &at, 10);
                while (*at == ' ' && thread->count < MEMORY_REGISTERS)
                        thread->registers[thread->count++] = strtoull(at, &at, 16);
                if (thread->count >= 2)
                        thread->stack = thread->registers[thread->count - 2];
        }
        if (f)
                fclose(f);
}

static void find_threads(struct memory *m)
{
        char path[64];
        struct dirent *entry;
        DIR *tasks;

        m->thread_count = 0;
        snprintf(path, sizeof path, "/proc/%u/task", m->pid);
        tasks = opendir(path);
        while (tasks && (entry = readdir(tasks)))
                if (entry->d_name[0] != '.')
                        read_thread(m, (uint32_t)strtoul(entry->d_name, NULL, 10));
        if (tasks)
                closedir(tasks);
}

uint64_t memory_huge_bytes(const struct memory *m)
{
        FILE *f = m->read == read_process ? open_proc(m->pid, "smaps_rollup") : NULL;
        unsigned long long kib = 0;
        char line[256];

        while (f && fgets(line, sizeof line, f))
                if (sscanf(line, "AnonHugePages: %llu kB", &kib) == 1)
                        break;
        if (f)
                fclose(f);
        return kib << 10;
}

static void read_name(struct memory *m)
{
        FILE *f = open_proc(m->pid, "comm");
        size_t n = f ? fread(m->program, 1, sizeof m->program - 1, f) : 0;

        if (f)
                fclose(f);
        if (n && m->program[n - 1] == '\n')
                n--;
        m->program[n] = 0;
}

static bool add_line(struct memory *m, char *line)
{
        unsigned long long start, end, offset;
        int path = 0;
        char access[5];

        if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, access, &offset,
                   &path) < 4 || !path)
                return true;
        line[strcspn(line, "\n")] = 0;
        if (access[0] != 'r' || offset || line[path] != '/')
                return true;
        return memory_add_image(m, start, line + path, strlen(line + path));
}

static int read_maps(struct memory *m)
{
        FILE *f = open_proc(m->pid, "maps");
        char *line = NULL;
        size_t room = 0;
        int error = f ? 0 : -errno;

        while (f && !error && getline(&line, &room, f) > 0)
                if (!add_line(m, line))
                        error = -ENOMEM;
        free(line);
        if (f)
                fclose(f);
        return error;
}

/* "", or why the system may have refused. */
static const char *scope_text(void)
{
        FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
        int scope = f ? fgetc(f) : '0';

        if (f)
                fclose(f);
        return scope == '1' || scope == '2' || scope == '3'
                ? " (/proc/sys/kernel/yama/ptrace_scope)" : "";
}

static int refuse(struct memory *m, int error)
{
        unsigned pid = m->pid;

        if (error == -ENOENT && access("/proc/self/maps", F_OK)) {
                error = -ENOSYS;
                snprintf(m->error, sizeof m->error,
                         "/proc is not there, and tells where a process has its memory");
        } else if (error == -EPERM || error == -EACCES)
                snprintf(m->error, sizeof m->error,
                         "the system does not let this user look into process %u%s; "
                         "`stook run --stats -- PROGRAM` shows a program's figures without that",
                         pid, scope_text());
        else if (error == -ESRCH || error == -ENOENT)
                snprintf(m->error, sizeof m->error, "there is no process %u", pid);
        else if (error == -ENOSYS)
                snprintf(m->error, sizeof m->error,
                         "this system cannot copy memory of another process; "
                         "`stook run --stats -- PROGRAM` shows a program's figures without that");
        else
                snprintf(m->error, sizeof m->error, "process %u: %s", pid, strerror(-error));
        return error;
}

int memory_open_process(struct memory *m, uint32_t pid)
{
        char byte;
        int error;

        memset(m, 0, sizeof *m);
        m->read = read_process;
        m->write = write_process;
        m->maps = open_maps;
        m->find_threads = find_threads;
        m->pid = pid;
        if (kill((pid_t)pid, 0) && errno == ESRCH)
                return refuse(m, -ESRCH);
        read_name(m);
        error = read_maps(m);
        /* A kernel's thread, and a process that ended and was not waited for, have no memory. */
        if (!error && !m->image_count)
                error = read_process(m, 4096, &byte, 1) == -EPERM ? -EPERM : 0;
        if (!error && m->image_count) {
                error = read_process(m, m->images[0].start, &byte, 1);
                error = error == -EFAULT ? 0 : error;
        }
        return error ? refuse(m, error) : 0;
}
