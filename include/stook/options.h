/*
 * <stook/options.h> - the library's options
 *
 * Options are those of stook-env(7). Here their names have no "STOOK_" and may be in lower case:
 * "decay_ms" is STOOK_DECAY_MS.
 *
 * Where an option gets its value, the last one that has it counts:
 *  1. the default
 *  2. the string `stook_options` of the program
 *  3. the variable in the environment, in upper case. A program that is set-user-ID, or has
 *     capabilities that its caller lacks, ignores the environment
 *  4. stook_option_set(), for the options that can change while the program runs: decay_ms, thp,
 *     maintenance, on_fault, rcu_backlog, and group_limit where the process has a group
 * The option "options" with the value "off" locks them: the environment is ignored, and nothing is
 * set at run time. The program's string still counts. It may stand in the string, or in the
 * environment. With the build option `environment` set to false every program is like that.
 *
 * "MT-safe" and "signal-safe" mean what <stook/cache.h> says.
 */
#ifndef STOOK_OPTIONS_H
#define STOOK_OPTIONS_H

#include <stddef.h>
#include <stook/cache.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * stook_options - a program's own options, which it may define:
 *
 *      const char *stook_options = "decay_ms=100 thp=never";
 *
 * Blanks separate the options; no value has one. Of one that stands twice the last counts. They are
 * read once, at start. What does not fit
 * into 2 KiB is ignored, and a line on standard error says so. A program that is linked to
 * libstook.so or to the drop-in needs nothing more. One that is started on the drop-in by
 * LD_PRELOAD must export the name (-rdynamic). In C++ it is `extern "C"`.
 */
extern STOOK_PUBLIC const char *stook_options __attribute__((__weak__));

enum stook_option_source {
        STOOK_OPTION_DEFAULT,
        STOOK_OPTION_PROGRAM,           /* `stook_options` */
        STOOK_OPTION_ENVIRONMENT,
        STOOK_OPTION_SET,               /* stook_option_set() */
};

#define STOOK_OPTION_NAME_BYTES  16     /* of a name, with the 0 at its end */
#define STOOK_OPTION_VALUE_BYTES 104    /* of a value, likewise; a longer one is cut */

struct stook_option {
        char     name[STOOK_OPTION_NAME_BYTES];         /* in lower case */
        char     value[STOOK_OPTION_VALUE_BYTES];       /* as stook_option_get() */
        unsigned source;                                /* enum stook_option_source */
        unsigned may_change;                            /* 1: by stook_option_set() */
};

/*
 * stook_option_get() - the value of an option
 * @name: of the option
 * @value: room for the text
 * @bytes: of it; STOOK_OPTION_VALUE_BYTES is enough for each
 * Options that may change tell what is in force. Others tell what they were given, whether or not
 * it was understood; "": nothing, so the default is in force. rcu_backlog is "0" until the library
 * has found out how much memory there is: stook_rcu_use().
 * Return: 0; or
 *   -EINVAL  name or value NULL
 *   -ENOENT  there is no such option
 *   -ERANGE  @bytes are too few
 *   -ENOMEM  the library could not start
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_option_get(const char *name, char *value, size_t bytes);

/*
 * stook_option_set() - another value for an option that may change
 * @name: of the option
 * @value: as the variable takes it; it is copied
 * Return: 0; or
 *   -EINVAL  name or value NULL, or the value is none that the option takes
 *   -ENOENT  there is no such option
 *   -ENOTSUP it cannot change while the program runs; of group_limit: the process has no group
 *   -EPERM   options are locked
 *   -EAGAIN  of maintenance: the system gives no thread
 *   -ENOMEM  the library could not start, or no memory for a thread
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_option_set(const char *name, const char *value);

/*
 * stook_option_for_each() - call a function for every option, by name
 * @each: ends the walk by returning a number other than 0; what it gets lasts for the call
 * @data: passed to @each
 * Return: what @each returned last; or
 *   -EINVAL  @each NULL
 *   -ENOMEM  the library could not start
 * Threads: MT-safe, not signal-safe.
 */
STOOK_PUBLIC int stook_option_for_each(int (*each)(const struct stook_option *option, void *data),
                                       void *data);

#ifdef __cplusplus
}
#endif
#endif
