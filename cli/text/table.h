/*
 * Purpose: a table of text columns as wide as they need to be, and numbers in words people read.
 */
#ifndef STOOK_CLI_TABLE_H
#define STOOK_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 16
#define TABLE_CELL_BYTES  72

struct table {
        unsigned columns, rows, room;
        char   (*cells)[TABLE_CELL_BYTES];      /* row by row */
        unsigned filled;                        /* cells of the last row */
};

void table_init(struct table *table, unsigned columns);
void table_row(struct table *table);
/* The next cell of the last row, as plain_text.h has it. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
void table_bytes(struct table *table, uint64_t bytes);
void table_count(struct table *table, uint64_t count);
void table_percent(struct table *table, double share);
/* Rounded to 5 letters: "17", "1.2K", "450M". Bytes by 1024; counts from 100,000 by 1000. */
void table_bytes_short(struct table *table, uint64_t bytes);
void table_count_short(struct table *table, uint64_t count);
/* First column left, others right. Frees the table. */
void table_print(struct table *table, FILE *out);

/* "17", "1.2 KiB", "45.0 MiB" */
const char *bytes_text(uint64_t bytes, char *buffer, size_t size);
/* "812 us", "12.3 ms", "1.234 s" */
const char *seconds_text(double seconds, char *buffer, size_t size);

#endif
