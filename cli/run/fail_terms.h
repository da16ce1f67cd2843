/*
 * Purpose: what --fail of `stook run` takes: the terms of STOOK_FAIL, and stack=FUNCTION, which the
 * library wants as addresses in the program's file.
 */
#ifndef STOOK_CLI_FAIL_TERMS_H
#define STOOK_CLI_FAIL_TERMS_H

/*
 * The terms as the library takes them; the caller frees them. NULL: they were
 * refused, by a line.
 */
char *fail_terms(const char *terms, const char *program);

#endif
