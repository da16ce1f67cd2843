/*
 * The library that tests/preload/deepbind.c opens. It allocates, frees, and opens another library
 * by its own RUNPATH.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void (*plugin_free_address(void))(void *);
void *plugin_give(size_t bytes);
char *plugin_copy(const char *text);
void plugin_take(void *object);
void *plugin_open(const char *name, int flags);

void (*plugin_free_address(void))(void *)
{
        return free;
}

void *plugin_give(size_t bytes)
{
        return malloc(bytes);
}

char *plugin_copy(const char *text)
{
        return strdup(text);
}

void plugin_take(void *object)
{
        free(object);
}

void *plugin_open(const char *name, int flags)
{
        void *volatile handle = dlopen(name, flags);    /* no tail call: this is the caller */

        return handle;
}
