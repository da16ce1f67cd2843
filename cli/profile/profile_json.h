/*
 * Purpose: a heap profile as JSON: for a page (cli/page/profile.js), and its stacks for programs.
 */
#ifndef STOOK_CLI_PROFILE_JSON_H
#define STOOK_CLI_PROFILE_JSON_H

#include "cli/profile/profile_text.h"
#include "cli/text/json.h"

/* An object with the key "profile". Return: 0; -ENOMEM: it is not whole. */
int profile_json(const struct profile_view *view, struct json *json);
/* A document: schema/profile-1.schema.json. */
void profile_json_stacks(const struct profile_view *view, FILE *out);

#endif
