/*
 * Purpose: a file for figures, and a process, for each test of inspect/stats_page.h.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/inspect/stats_page_test.h"

char path[] = "/tmp/stook-stats-page-XXXXXX";
int  file_fd;

uint64_t taken(void)
{
        struct stook_stats_file header;

        if (pread(file_fd, &header, sizeof header, 0) != sizeof header)
                return UINT64_MAX;
        return header.taken;
}

struct stook_stats_record *record(unsigned i)
{
        void *p = mmap(NULL, STOOK_STATS_RECORD_BYTES, PROT_READ, MAP_SHARED, file_fd,
                       (off_t)(STOOK_STATS_PAGE_UNIT + i * STOOK_STATS_RECORD_BYTES));

        return p == MAP_FAILED ? NULL : p;
}

const struct stook_stats_snapshot *latest(const struct stook_stats_record *r)
{
        return &r->snapshot[r->sequence & 1];
}

int set_up_records(unsigned records)
{
        struct stook_stats_file header = { .magic = STOOK_STATS_PAGE_MAGIC,
                                           .version = STOOK_STATS_PAGE_VERSION,
                                           .records = records,
                                           .record_bytes = STOOK_STATS_RECORD_BYTES };
        off_t bytes = (off_t)(STOOK_STATS_PAGE_UNIT + records * STOOK_STATS_RECORD_BYTES);

        strcpy(path, "/tmp/stook-stats-page-XXXXXX");
        file_fd = mkstemp(path);
        assert_true(file_fd >= 0);
        assert_int_equal(ftruncate(file_fd, bytes), 0);
        assert_int_equal(pwrite(file_fd, &header, sizeof header, 0), sizeof header);
        stats_variable = path;
        return 0;
}

int set_up(void **state)
{
        (void)state;
        return set_up_records(3);
}

int tear_down(void **state)
{
        (void)state;
        unlink(path);
        close(file_fd);
        return 0;
}

void in_process(void (*body)(void))
{
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (!pid) {
                body();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}
