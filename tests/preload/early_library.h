/* What early_library.c has allocated in its constructor. */
#ifndef EARLY_LIBRARY_H
#define EARLY_LIBRARY_H

#define EARLY_BYTES 20                  /* of each object */

struct early {
        void *plain, *aligned;
};
extern struct early early __attribute__((weak));

#endif
