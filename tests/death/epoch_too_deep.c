// aborts: stook: endless wait: more than 65,535 read sections inside one another
#include <stook/rcu.h>

void misuse(void);
void misuse(void)
{
        for (unsigned i = 0; i < 65536; i++)
                stook_epoch_read_lock();
}
