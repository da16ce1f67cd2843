/*
 * Purpose: be called when a thread ends, without memory for that.
 * Place: called by rseq_register.c, by slot, by group and by epoch.
 * Concurrency: keys are made and armed by any thread, in handlers too. Arming is a store into the
 *  thread's own memory.
 * Failure: no key, or a value of a key that would need memory: the caller does without.
 */
#include <pthread.h>

#include "base/compiler.h"
#include "os/os.h"

/* glibc keeps the first so many values in the thread itself; setting a later one may allocate. */
#define KEYS_INLINE 32

int stook_os_thread_end_key(void (*end)(void *value))
{
        pthread_key_t key;

        if (pthread_key_create(&key, end))
                return -1;
#ifdef __GLIBC__
        if (key >= KEYS_INLINE) {
                pthread_key_delete(key);
                return -1;
        }
#endif
        return (int)key;
}

void stook_os_thread_end_key_drop(int key)
{
        if (key >= 0)
                pthread_key_delete((pthread_key_t)key);
}

bool stook_os_thread_end_arm(int key, void *value)
{
        return key >= 0 && !pthread_setspecific((pthread_key_t)key, value);
}

bool stook_os_thread_end_is_armed(int key)
{
        return key >= 0 && pthread_getspecific((pthread_key_t)key);
}
