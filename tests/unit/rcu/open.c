/*
 * Proves of open sheaves that an evacuation without a barrier leaves them, and says so: the caller
 * learns it, and the clock goes on.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cache/cache.h"
#include "slot/slot_regions.h"
#include "unit/rcu/by_hand.h"

/* A sandbox comes down over this process. */
static int refuse_membarrier(void)
{
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { STOOK_ARRAY_SIZE(filter), filter };

        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

enum { ROUNDS = 20 };                   /* more than a sheaf is open for */

/* Return: the step that failed; 0: none; 77: no filter can be installed. */
static int open_without_a_barrier(void)
{
        struct stook_cache *cache = new_cache(0);

        if (stook_cache_free_rcu(cache, stook_cache_alloc(cache)))
                return 1;
        if (refuse_membarrier())
                return 77;
        if (stook_rcu_cache_evacuate(&cache->rcu))
                return 2;               /* says that the open sheaf was submitted */
        for (int i = 0; i < ROUNDS; i++)
                grace();
        if (!n_pending)
                return 3;               /* the clock stopped: the sheaf stays open for ever */
        return stook_cache_destroy(cache) == -EBUSY ? 0 : 4;
}

static void test_without_a_barrier_a_sheaf_is_known_to_be_open(void **state)
{
        int status;
        pid_t pid;

        (void)state;
        if (!stook_regions.rseq_slots)
                skip();                 /* the locked backend needs no membarrier */
        pid = fork();
        if (!pid)
                _exit(open_without_a_barrier());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without_a_barrier_a_sheaf_is_known_to_be_open),
        };

        return cmocka_run_group_tests(tests, round_by_round_with_rcu, NULL);
}
