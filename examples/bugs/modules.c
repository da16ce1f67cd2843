/* Symbols of modules. A module that is unloaded takes its symbols with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/stook.h>

struct symbol {
        struct symbol *next;
        char           module[16], name[32];
};

static struct stook_cache *symbols;
static struct symbol *all;

static void symbol_add(const char *module, const char *name)
{
        struct symbol *symbol = stook_cache_zalloc(symbols);

        if (!symbol)
                exit(1);
        snprintf(symbol->module, sizeof(symbol->module), "%s", module);
        snprintf(symbol->name, sizeof(symbol->name), "%s", name);
        symbol->next = all;
        all = symbol;
}

static void load(const char *module)
{
        symbol_add(module, "init");
        symbol_add(module, "exit");
}

static void unload(const char *module)
{
        struct symbol **at = &all;

        while (*at) {
                struct symbol *symbol = *at;

                if (strcmp(symbol->module, module)) {
                        at = &symbol->next;
                        continue;
                }
                *at = symbol->next;
                stook_cache_free(symbols, symbol);
#ifndef FIXED
                if (*at)
                        at = &(*at)->next;
#endif
        }
}

int main(void)
{
        symbols = stook_cache_create("symbol", sizeof(struct symbol), NULL);
        if (!symbols)
                return 1;
        load("ext4");
        load("nfs");
        unload("nfs");
        unload("ext4");
        return stook_cache_destroy(symbols) ? 1 : 0;
}
