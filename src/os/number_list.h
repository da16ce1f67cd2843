/*
 * Purpose: the kernel's way to write sets of numbers: "0-3,8", in files of /sys and in our own
 * variables.
 * Place: within the os layer.
 */
#ifndef STOOK_NUMBER_LIST_H
#define STOOK_NUMBER_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list as it is read, piece by piece. All zero: at its start. */
struct stook_number_list {
        uint32_t first, number;
        bool     digits, range, bad;
};

typedef void stook_number_range(uint32_t first, uint32_t last, void *data);

/*
 * Reads on, calling @each for every range that is over. Anything but digits, '-' and ',' ends one,
 * and is skipped.
 */
void stook_number_list_read(struct stook_number_list *list, const char *text, size_t bytes,
                            stook_number_range *each, void *data);
/*
 * The end: the last range. False: it was no list (a range without an end or backwards, a number
 * above UINT32_MAX).
 */
bool stook_number_list_end(struct stook_number_list *list, stook_number_range *each, void *data);

/* All ranges of a file. False: no such file, or no list. Preserves errno. */
bool stook_number_list_file(const char *path, stook_number_range *each, void *data);

#endif
