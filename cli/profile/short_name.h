/*
 * Purpose: the name of a C++ function for a narrow box: without what it returns, its arguments, and
 * those of templates.
 */
#ifndef STOOK_CLI_SHORT_NAME_H
#define STOOK_CLI_SHORT_NAME_H

#include <stddef.h>

/*
 * @text: @room bytes; what does not fit is left out. Names that are no demangled C++ functions with
 * arguments stay as they are.
 */
void short_name(const char *name, char *text, size_t room);

#endif
