/*
 * Purpose: what works by constructors and destructors alone. No call leads there, and of an archive
 * a linker takes only what is called. So life/start.c names a function of each file, and a program
 * that is linked to libstook.a has them, too.
 */
#ifndef STOOK_LINKED_H
#define STOOK_LINKED_H

void stook_check_end(void);             /* check_end.c: damage to debugged objects, at exit */
void stook_leak_end(void);              /* leak.c: STOOK_LEAKS */
void stook_print_end(void);             /* print_when.c: STOOK_PRINT */
void stook_stats_page_unload(void);     /* stats_page.c: STOOK_STATS */

#endif
