/*
 * Purpose: a thread's registered rseq area: libc's, or our own where libc makes none (musl, glibc
 * before 2.35 or with its tunable off); and the call that makes every CPU that runs this process
 * abort the section it is in, and see our stores.
 * Place: called by life and slot at start, by slot on a thread's first slow call. Evacuations
 *  ask for the barrier; its second kind is for epoch's readers.
 * Invariants:
 *  I1 an area of ours is unregistered before its thread's memory can go: musl unmaps the stack of a
 *     detached thread, and the kernel's next write there would kill the process. So without a key
 *     of which we know that setting it never allocates, there is no registration of our own.
 *  I2 a thread whose end has begun is barred, so it never registers again.
 *  I3 nothing in an area is written here: those fields are the kernel's.
 * Concurrency: any thread, any instruction, after detect. A handler may register on top of its own
 *  thread: the second registration of one area is refused with EBUSY, which therefore means
 *  success. (Another library's area is EINVAL, another signature EPERM.)
 */
#include <errno.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "os/os.h"
#include "os/system_call.h"

#ifndef SYS_rseq
#if defined(__x86_64__)
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

/* What stands before each abort handler, and must be told at registration. */
#if defined(__x86_64__) && !defined(STOOK_DYNAMIC_TLS)
#define SIGNATURE 0x53053053u
#elif defined(__aarch64__) && !defined(STOOK_DYNAMIC_TLS)
#define SIGNATURE 0xd428bc00u
#else /* no sections, so nothing is registered: stook_os_rseq_detect */
#define SIGNATURE 0
#endif

#define CPU_ID_OFFSET  4
#define MM_CID_END     28
#define FLAG_UNREGISTER 1

/*
 * glibc's, from 2.35 on; absent elsewhere. Size 0: it has not registered (an old kernel, or its
 * tunable).
 */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* These: written once, by the thread that starts the library. */
static bool detected;
static enum stook_rseq_owner owner;
static int end_key = -1;                /* its value in a thread: an area of ours is registered */
static void (*before_end)(void *);      /* const after start */

void stook_os_rseq_before_end(void (*before)(void *))
{
        before_end = before;
}

static long rseq(char *area, int flags)
{
        return stook_call(SYS_rseq, area, sizeof(stook_self->own_rseq), flags, SIGNATURE);
}

/* I1, I2. Other destructors may allocate after this one: they find a thread that is barred. */
static void at_thread_end(void *self)
{
        if (before_end)
                before_end(self);
        stook_self_bar();
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stook_self->ready = 0;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        rseq(((struct stook_thread_v1 *)self)->own_rseq, FLAG_UNREGISTER);
}

static char *bar(void)
{
        stook_self_bar();
        return NULL;
}

static char *libc_area(void)
{
        char *area = (char *)__builtin_thread_pointer() + __rseq_offset;

        return __atomic_load_n((int32_t *)(area + CPU_ID_OFFSET), __ATOMIC_RELAXED) >= 0 ? area
                                                                                         : bar();
}

static char *own_area(void)
{
        char *area = stook_self->own_rseq;
        long r;

        /*
         * The key first: were the registration first, a thread stopped between could end with it.
         */
        if (!stook_os_thread_end_arm(end_key, stook_self))
                return bar();
        r = rseq(area, 0);
        return !r || r == -EBUSY ? area : bar();
}

char *stook_os_rseq_area(void)
{
        if (stook_self_is_barred())
                return NULL;
        switch (owner) {
        case STOOK_RSEQ_LIBC:
                return libc_area();
        case STOOK_RSEQ_OWN:
                return own_area();
        default:
                return bar();
        }
}

void stook_os_rseq_detect(void)
{
        if (detected)
                return;
        detected = true;
        if (!SIGNATURE)
                return;
        if (&__rseq_size && &__rseq_offset && __rseq_size) {
                owner = STOOK_RSEQ_LIBC;
                return;
        }
        end_key = stook_os_thread_end_key(at_thread_end);
        if (end_key < 0)
                return;
        owner = STOOK_RSEQ_OWN;
        if (!own_area())
                owner = STOOK_RSEQ_NONE;
}

enum stook_rseq_owner stook_os_rseq_owner(void)
{
        return owner;
}

/*
 * What the kernel says of itself. libc's area of the original 32 bytes has room for it, whatever
 * its size says.
 */
bool stook_os_rseq_has_mm_cid(void)
{
        int before = errno;             /* a kernel that does not say sets it */
        bool has = owner != STOOK_RSEQ_NONE && getauxval(AT_RSEQ_FEATURE_SIZE) >= MM_CID_END;

        errno = before;
        return has;
}

#define PRIVATE_EXPEDITED               (1 << 3)
#define REGISTER_PRIVATE_EXPEDITED      (1 << 4)
#define PRIVATE_EXPEDITED_RSEQ          (1 << 7)
#define REGISTER_PRIVATE_EXPEDITED_RSEQ (1 << 8)

static bool membarrier(int command)
{
        return !stook_call(SYS_membarrier, command, 0, 0);
}

bool stook_os_membarrier_register(void)
{
        return membarrier(REGISTER_PRIVATE_EXPEDITED_RSEQ);
}

bool stook_os_membarrier(void)
{
        return membarrier(PRIVATE_EXPEDITED_RSEQ);
}

bool stook_os_membarrier_register_memory(void)
{
        return membarrier(REGISTER_PRIVATE_EXPEDITED);
}

bool stook_os_membarrier_memory(void)
{
        return membarrier(PRIVATE_EXPEDITED);
}
