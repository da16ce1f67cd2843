/*
 * Purpose: write JSON: values in order, commas and quotes by themselves.
 * Strings are taken as UTF-8; bytes that are not become U+FFFD. Numbers that are not finite become
 * null.
 */
#ifndef STOOK_CLI_JSON_H
#define STOOK_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
        FILE    *out;
        unsigned depth;
        bool     first;                 /* nothing written at this depth yet */
};

/* A document, with the keys that all have first: its format, 1, and the command's version. */
void json_begin(struct json *json, FILE *out);
void json_end(struct json *json);
/* @key: NULL inside an array */
void json_object(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array(struct json *json, const char *key);
void json_array_end(struct json *json);
void json_string(struct json *json, const char *key, const char *value);
void json_count(struct json *json, const char *key, uint64_t value);
void json_number(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
