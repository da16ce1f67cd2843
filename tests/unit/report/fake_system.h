/*
 * Purpose: a layer os for tests of the layer report alone. It keeps what is written and asked, and
 * it refuses and answers as a test says.
 */
#ifndef FAKE_SYSTEM_H
#define FAKE_SYSTEM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "os/os.h"
#include "report/install_paths.h"
#include "report/report_inside.h"

extern char written[20000];             /* the last text, and how many there were */
extern unsigned writes;
extern jmp_buf aborted;                 /* where an abort goes */
extern uintptr_t gone;                  /* from here on memory cannot be read */
extern uint64_t now_ms;
extern unsigned rooms;                  /* for reports: how many are mapped */
extern bool refuses_reserve, refuses_commit;
extern const char *command;             /* the one file that can be executed; NULL: none */
extern bool secure;                     /* the program has more rights than its caller */
extern char asked[STOOK_REPORT_STACK + 4096];   /* what the helper was asked */
extern size_t asked_bytes;
extern char helper[STOOK_REPORT_PATH];  /* its path */
extern const char *answer;              /* its answer; NULL: there is none */
extern char json[20000];                /* the last line that was added to a file */
extern int json_error;                  /* what the start finds; 0: lines can be added */
extern unsigned marks;                  /* on files of `stook run`, and the last one's path */
extern const char *marked;
extern unsigned refused;                /* variables, and the name of the last one */
extern const char *refused_name;

#define PROGRAM "  program a?name (pid 1234), thread 1235\n"

#define CACHE "objects"
#define AT(n) ((void *)(uintptr_t)(n))

/* What is known of an object of 32 bytes, 20 of them asked for, that was written beyond. */
#define AROUND(at) \
        .fault = STOOK_FAULT_OVERRUN, .object = (at), .cache_name = CACHE, \
        .object_bytes = 32, .requested_bytes = 20, .dump = (at), .dump_bytes = 34, \
        .bad = (at) + 20, .expected = 0xbb, .found = 0x41

/* Before each test: nothing was written or asked, and later than the test before. */
int setup(void **unused);

#endif
