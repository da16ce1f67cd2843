/*
 * What this proves: zero-free leaves no content of a large object with a mapping of its own, also
 * where the system refuses both to replace its pages and to drop them. Memory that is locked beside
 * a small limit is refused both.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include <stook/stook.h>

#define BYTES ((size_t)48 << 20)
#define STEP  4096

/* From here on no mapping without access replaces another, and each madvise fails. */
static bool refuse(void)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 5, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 5),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_NONE, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
                BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_FIXED, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = 9, .filter = filter };

        return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
               !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* How many pages of it can be read and have something else than zeros at the start. */
static size_t pages_with_content(uintptr_t start, size_t bytes)
{
        size_t found = 0;
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        for (size_t at = 0; at < bytes; at += STEP) {
                char byte = 0;

                /* The system reads it, and says so where it has no access. */
                if (write(ends[1], (const void *)(start + at), 1) == 1)
                        assert_int_equal(read(ends[0], &byte, 1), 1);
                found += byte != 0;
        }
        close(ends[0]);
        close(ends[1]);
        return found;
}

static void nothing_is_left(void **state)
{
        char *object = stook_malloc(BYTES);
        uintptr_t start = (uintptr_t)object;

        (void)state;
        assert_non_null(object);
        memset(object, 0x5a, BYTES);
        assert_int_equal(pages_with_content(start, BYTES), BYTES / STEP);
        if (!refuse())
                skip();
        stook_free(object);
        assert_int_equal(pages_with_content(start, BYTES), 0);
        assert_int_equal(stook_validate_all(), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_left),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
