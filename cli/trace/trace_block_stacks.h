/*
 * Purpose: what a block of a trace says of call stacks: its own numbers for stacks and for files of
 * code, which mean nothing in another block. For trace_read.c.
 */
#ifndef STOOK_CLI_TRACE_BLOCK_STACKS_H
#define STOOK_CLI_TRACE_BLOCK_STACKS_H

#include "cli/trace/trace_file.h"
#include "cli/trace/trace_stacks.h"

/* More than twice as many as a block has room for: a stack takes four bytes at least. */
#define TRACE_BLOCK_PLACES 32768

/* All zeros: it has named none yet. */
struct trace_block_stacks {
        struct {
                uint64_t start, end;    /* end 0: it has not named it */
                uint32_t code;          /* of trace_stacks_code */
        } codes[STOOK_TRACE_CODES_MOST];
        struct {
                uint32_t number, stack; /* stack: of trace_stacks_add, + 1; 0: none */
        } places[TRACE_BLOCK_PLACES];   /* by the number, open addressing */
};

/* Reads a record, behind its first byte. Return: 1; 0: it makes no sense; -1: no memory. */
int trace_block_take_code(struct trace_block_stacks *b, struct trace_stacks *all,
                          struct trace_cursor *c);
int trace_block_take_stack(struct trace_block_stacks *b, struct trace_stacks *all,
                           struct trace_cursor *c);
/* Reads a stack's number. False: the block has not named it. */
bool trace_block_stack(const struct trace_block_stacks *or_null, struct trace_cursor *c,
                       uint32_t *stack);

#endif
