/*
 * Purpose: what the tests of inspect/stats_page.h share: a heap with numbers of their choice
 * (fake_heap.c), a file for the figures, and a process for each test.
 */
#ifndef STOOK_TEST_STATS_PAGE_TEST_H
#define STOOK_TEST_STATS_PAGE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cache/cache.h"
#include "group/group.h"
#include "inspect/stats_page.h"

#define GROUPS 24

extern unsigned    bound;               /* caches 1 to bound - 1; 3 at first */
extern const char *stats_variable;      /* STOOK_STATS */
extern unsigned    refusals;            /* of values of variables */
extern uint64_t    now_ms;              /* the clock */
extern struct stook_group groups[GROUPS];       /* their states */

/* Before anything else. Each counter is 1. */
void make_heap(void);
/* Each counter of the first @caches caches. */
void set_all(unsigned caches, uint64_t value);

/* ---- the file ---- */

extern char path[];                     /* the file's, for STOOK_STATS */
extern int  file_fd;

/* A file of so many records for each test. Return: 0. */
int set_up_records(unsigned records);
int set_up(void **state);               /* of three */
int tear_down(void **state);

/* Records that processes have drawn. */
uint64_t taken(void);
/* The tests read by a mapping: what another process sees at once. NULL: it cannot be mapped. */
struct stook_stats_record *record(unsigned i);
const struct stook_stats_snapshot *latest(const struct stook_stats_record *r);

/* ---- each test in a process of its own: the library starts once in each ---- */

#define CHECK(condition) \
        do { \
                if (!(condition)) { \
                        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
                        _exit(1); \
                } \
        } while (0)

void in_process(void (*body)(void));

#endif
