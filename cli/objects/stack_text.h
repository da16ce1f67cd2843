/*
 * Purpose: call stacks of a process or of a core that is looked at, with names; as text, or as
 * JSON.
 */
#ifndef STOOK_CLI_STACK_TEXT_H
#define STOOK_CLI_STACK_TEXT_H

#include "cli/memory/target.h"
#include "cli/symbols/frames.h"
#include "cli/text/json.h"

struct stack_text {
        struct memory           *memory;
        const struct stook_root *root;
        struct symbols          *symbols;       /* NULL: built without libdw */
        struct stook_stack_module *modules;     /* files by the times of the stacks; NULL: none */
};

/* The modules are read once, for all stacks. */
void stack_text_open(struct stack_text *text, struct memory *memory, const struct library *library);
void stack_text_close(struct stack_text *text);
/* The frames of stack @number. Return: 0; -ENOMEM. Release it. */
int  stack_text_frames(const struct stack_text *text, uint32_t number, struct frames *frames);

/* Each frame as an indented line, with its number. */
void stack_text_print(const struct frames *frames, FILE *out);
/* An array of strings. */
void stack_text_json(const struct frames *frames, const char *key, struct json *json);

#endif
