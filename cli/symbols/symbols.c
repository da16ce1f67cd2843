/*
 * Purpose: see symbols.h.
 * The functions inlined at an address are the scopes around it: the innermost scope has the line of
 * the address, each next one the line of the call that was inlined into it.
 * A module that has the library inside defines LIBRARY_MARK. Each module is searched for it at most
 * once: the answer is kept as the module's user data.
 */
#include "cli/symbols/symbols_inside.h"

#include <stdlib.h>
#include <string.h>

#ifdef STOOK_HAVE_DW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

/* Any part of the library may report a fault. A suffix of the compiler's may follow. */
#define LIBRARY_MARK "stook_report_fault"

bool symbols_are_built_in(void)
{
        return true;
}

static struct symbols *new_symbols(void)
{
        static char *no_path;
        static const Dwfl_Callbacks callbacks = {
                .find_elf = dwfl_linux_proc_find_elf,
                .find_debuginfo = dwfl_standard_find_debuginfo,
                .debuginfo_path = &no_path,
        };
        struct symbols *symbols = calloc(1, sizeof *symbols);

        if (symbols)
                symbols->dwfl = dwfl_begin(&callbacks);
        return symbols;
}

/* @failed: the modules could not be had. */
static struct symbols *with_modules(struct symbols *symbols, bool failed)
{
        if (symbols && !failed && !dwfl_report_end(symbols->dwfl, NULL, NULL))
                return symbols;
        symbols_release(symbols);
        return NULL;
}

struct symbols *symbols_of_process(pid_t pid)
{
        struct symbols *symbols = new_symbols();

        return with_modules(symbols, !symbols || !symbols->dwfl ||
                                     dwfl_linux_proc_report(symbols->dwfl, pid));
}

struct symbols *symbols_of_maps(FILE *maps)
{
        struct symbols *symbols = new_symbols();

        return with_modules(symbols, !symbols || !symbols->dwfl ||
                                     dwfl_linux_proc_maps_report(symbols->dwfl, maps));
}

void symbols_release(struct symbols *symbols)
{
        if (!symbols)
                return;
        if (symbols->dwfl)
                dwfl_end(symbols->dwfl);
        for (size_t i = 0; i < SYMBOLS_FILES_MOST; i++)
                free(symbols->files[i]);
        free(symbols);
}

/* A process's addresses have 47 bits, or 56 where it asks for them. */
#define FILE_SHIFT 57
#define FILE_BYTES (UINT64_C(1) << 32)

uint64_t symbols_add_file(struct symbols *symbols, const char *path)
{
        size_t i = 0;
        uint64_t start;

        while (i < SYMBOLS_FILES_MOST && symbols->files[i] && strcmp(symbols->files[i], path))
                i++;
        if (i == SYMBOLS_FILES_MOST)
                return 0;
        start = (UINT64_C(1) << FILE_SHIFT) + i * FILE_BYTES;
        if (symbols->files[i])
                return start;
        symbols->files[i] = strdup(path);
        if (!symbols->files[i])
                return 0;
        dwfl_report_begin_add(symbols->dwfl);
        /* Without the file its name and the offsets are left. */
        if (!dwfl_report_elf(symbols->dwfl, path, path, -1, start, false))
                dwfl_report_module(symbols->dwfl, path, start, start + FILE_BYTES);
        dwfl_report_end(symbols->dwfl, NULL, NULL);
        return start;
}

static const char *name_of(Dwarf_Die *function)
{
        Dwarf_Attribute attribute;
        const char *name = dwarf_formstring(
                dwarf_attr_integrate(function, DW_AT_name, &attribute));

        return name ? name : dwarf_diename(function);
}

static const char *linkage_of(Dwarf_Die *function)
{
        Dwarf_Attribute attribute;
        const char *name = dwarf_formstring(
                dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));

        return name ? name : dwarf_formstring(
                dwarf_attr_integrate(function, DW_AT_MIPS_linkage_name, &attribute));
}

/* The file and line of the call that was inlined as @scope. */
static void find_call(Dwarf_Die *unit, Dwarf_Die *scope, struct symbol *symbol)
{
        Dwarf_Attribute attribute;
        Dwarf_Files *files;
        Dwarf_Word number;
        size_t count;

        symbol->file = NULL;
        symbol->line = 0;
        if (dwarf_formudata(dwarf_attr(scope, DW_AT_call_file, &attribute), &number) ||
            dwarf_getsrcfiles(unit, &files, &count) || number >= count)
                return;
        symbol->file = dwarf_filesrc(files, number, NULL, NULL);
        if (!dwarf_formudata(dwarf_attr(scope, DW_AT_call_line, &attribute), &number))
                symbol->line = (int)number;
}

static bool is_function(Dwarf_Die *scope)
{
        int tag = dwarf_tag(scope);

        return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram;
}

/* The function scopes around an address, outwards from @first. Return: functions found. */
static int walk_scopes(Dwarf_Die *unit, Dwarf_Die *first, struct symbol *symbol,
                       void (*each)(const struct symbol *symbol, void *data), void *data)
{
        Dwarf_Die *scopes = NULL;
        int count = dwarf_getscopes_die(first, &scopes), found = 0;

        for (int i = 0; i < count; i++) {
                if (!is_function(&scopes[i]))
                        continue;
                symbol->function = name_of(&scopes[i]);
                symbol->linkage = linkage_of(&scopes[i]);
                symbol->is_inlined = dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
                each(symbol, data);
                found++;
                if (!symbol->is_inlined)
                        break;
                find_call(unit, &scopes[i], symbol);
        }
        free(scopes);
        return found;
}

/*
 * The unit of code at an address; NULL: none is known. Files of clang have no table from addresses
 * to units (.debug_aranges), so each unit is asked. Where such files are linked with others that
 * have the table, a wrong unit may come from it.
 */
static Dwarf_Die *unit_at(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
        Dwarf_Die *unit = dwfl_module_addrdie(module, address, bias);

        if (unit && dwarf_haspc(unit, address - *bias) > 0)
                return unit;
        unit = NULL;
        do
                unit = dwfl_module_nextcu(module, unit, bias);
        while (unit && dwarf_haspc(unit, address - *bias) <= 0);
        return unit;
}

/* The file and line of an address. */
static void find_line(Dwarf_Die *unit, Dwarf_Addr address, struct symbol *symbol)
{
        Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, address) : NULL;

        if (!line)
                return;
        symbol->file = dwarf_linesrc(line, NULL, NULL);
        dwarf_lineno(line, &symbol->line);
}

/*
 * Return: functions found. The list that an address has goes on with the scopes of an inlined
 * function's definition, so only its first function is taken from there.
 */
static int find_scopes(Dwarf_Die *unit, Dwarf_Addr address, struct symbol *symbol,
                       void (*each)(const struct symbol *symbol, void *data), void *data)
{
        Dwarf_Die *scopes = NULL;
        int count = unit ? dwarf_getscopes(unit, address, &scopes) : 0, i = 0, found = 0;

        while (i < count && !is_function(&scopes[i]))
                i++;
        if (i < count)
                found = walk_scopes(unit, &scopes[i], symbol, each, data);
        free(scopes);
        return found;
}

void symbols_find(struct symbols *symbols, uint64_t address, bool is_return,
                  void (*each)(const struct symbol *symbol, void *data), void *data)
{
        Dwarf_Addr at = address - is_return, start = 0;
        Dwfl_Module *module = dwfl_addrmodule(symbols->dwfl, at);
        struct symbol symbol = { 0 };
        Dwarf_Addr bias = 0;
        Dwarf_Die *unit;
        GElf_Off offset;
        GElf_Sym elf;

        if (module) {
                unit = unit_at(module, at, &bias);
                symbol.module = dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL,
                                                 NULL);
                symbol.offset = address - start;
                find_line(unit, at - bias, &symbol);
                if (find_scopes(unit, at - bias, &symbol, each, data))
                        return;
                symbol.function = dwfl_module_addrinfo(module, at, &offset, &elf, NULL, NULL,
                                                       NULL);
                symbol.linkage = symbol.function;
        }
        each(&symbol, data);
}

const char *symbols_file_at(struct symbols *symbols, uint64_t address)
{
        Dwfl_Module *module = dwfl_addrmodule(symbols->dwfl, address);

        return module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;
}

void symbols_build_id(struct symbols *symbols, uint64_t address, char id[129])
{
        Dwfl_Module *module = dwfl_addrmodule(symbols->dwfl, address);
        const unsigned char *bits = NULL;
        GElf_Addr where;
        int bytes = 0;

        if (module && dwfl_module_getelf(module, &where))
                bytes = dwfl_module_build_id(module, &bits, &where);
        for (int i = 0; i < bytes && i < 64; i++)
                sprintf(id + 2 * i, "%02x", bits[i]);
        id[bytes > 0 ? bytes < 64 ? 2 * bytes : 128 : 0] = '\0';
}

static bool defines_mark(Dwfl_Module *module)
{
        int count = dwfl_module_getsymtab(module);
        size_t n = strlen(LIBRARY_MARK);

        for (int i = 1; i < count; i++) {
                GElf_Word section;
                GElf_Sym elf;
                const char *name = dwfl_module_getsym(module, i, &elf, &section);

                if (name && section != SHN_UNDEF && !strncmp(name, LIBRARY_MARK, n) &&
                    (!name[n] || name[n] == '.'))
                        return true;
        }
        return false;
}

bool symbols_have_library(struct symbols *symbols, uint64_t address)
{
        static bool answers[] = { false, true };
        Dwfl_Module *module = dwfl_addrmodule(symbols->dwfl, address);
        void **kept;

        if (!module)
                return false;
        dwfl_module_info(module, &kept, NULL, NULL, NULL, NULL, NULL, NULL);
        if (!*kept)
                *kept = &answers[defines_mark(module)];
        return *(bool *)*kept;
}

#else

bool symbols_are_built_in(void)
{
        return false;
}

struct symbols *symbols_of_process(pid_t pid)
{
        (void)pid;
        return NULL;
}

struct symbols *symbols_of_maps(FILE *maps)
{
        (void)maps;
        return NULL;
}

void symbols_release(struct symbols *symbols)
{
        (void)symbols;
}

uint64_t symbols_add_file(struct symbols *symbols, const char *path)
{
        (void)symbols, (void)path;
        return 0;
}

void symbols_find(struct symbols *symbols, uint64_t address, bool is_return,
                  void (*each)(const struct symbol *symbol, void *data), void *data)
{
        (void)symbols, (void)address, (void)is_return, (void)each, (void)data;
}

const char *symbols_file_at(struct symbols *symbols, uint64_t address)
{
        (void)symbols, (void)address;
        return NULL;
}

void symbols_build_id(struct symbols *symbols, uint64_t address, char id[129])
{
        (void)symbols, (void)address;
        id[0] = '\0';
}

bool symbols_have_library(struct symbols *symbols, uint64_t address)
{
        (void)symbols, (void)address;
        return false;
}

#endif
