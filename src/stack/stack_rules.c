/*
 * Purpose: see stack.h: the callers of a call by the tables that compilers write for exceptions
 * (.eh_frame), which the unwinder of libgcc reads, too. Of all registers only the stack pointer and
 * the frame pointer are followed, and what the tables say of a return address is kept as one word:
 *
 *      caller's stack pointer = this one, or the frame pointer, or a word there, + a constant;
 *      return address         = the word below that;
 *      frame pointer          = as it is, or a word below that.
 *
 * Where the tables say anything else, there is no rule, and the unwinder is asked instead.
 * Invariants:
 *  I1 a rule depends on the bytes of its file alone. A file may be closed, and another one get its
 *     addresses: so a rule is kept under the build id of its file, and not at all without one.
 *  I2 read are tables of files that a return address of this thread leads to, so that nobody closes
 *     them meanwhile, and memory of this stack, as far as the tables are right; exceptions take
 *     them to be so, too.
 * Concurrency: any thread, any instruction. The two words of a kept rule may be of two writers:
 *  then they do not belong together, and the reader sees it.
 * Failure: no rule.
 */
#include "stack/stack.h"

#ifdef STOOK_STACK_HAS_RULES

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <ucontext.h>

/* ---- rules ---- */

enum kind {
        NONE,
        BY_STACK,                       /* the constant is added to the stack pointer */
        BY_FRAME,                       /* to the frame pointer */
        BY_WORD,                        /* that is where the word lies: a stack aligned anew */
        SIGNAL,                         /* the frame of a signal */
        OUTERMOST,
};

/* In one word: kind 8, words from the caller's stack pointer down to the frame pointer 24; 32. */
static uint64_t rule_of(enum kind kind, int64_t words, int64_t constant)
{
        return (uint64_t)kind | ((uint64_t)words & 0xffffff) << 8 |
               (uint64_t)(uint32_t)constant << 32;
}

/* ---- tables ---- */

enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN = 16, NO_REGISTER = 255 };  /* DWARF's */
#define WORD      ((int64_t)sizeof(uintptr_t))
#define KEPT_MOST 4                     /* states that a table remembers; arbitrary */

struct state {
        uint64_t base;                  /* the register that the constant is added to */
        int64_t  constant;
        int64_t  frame_at;              /* from the caller's stack pointer; 0: as it is */
        bool     by_word, frame_in_place;
        bool     outermost, bad;
};

struct text {
        const uint8_t *at, *end;
        int64_t code, data;             /* factors of the text's numbers */
};

/* Behind the end there are zeros, which say nothing. */
static uint64_t number(struct text *text, unsigned bytes)
{
        uint64_t value = 0;

        for (unsigned i = 0; i < bytes && text->at < text->end; i++)
                value |= (uint64_t)*text->at++ << 8 * i;
        return value;
}

static uint64_t leb(struct text *text, bool is_signed)
{
        uint64_t value = 0, next;
        unsigned shift = 0;

        do {
                next = number(text, 1);
                value |= shift < 64 ? (next & 0x7f) << shift : 0;
                shift += 7;
        } while (next & 0x80);
        return is_signed && next & 0x40 && shift < 64 ? value | ~UINT64_C(0) << shift : value;
}

#define UNSIGNED(text) leb(text, false)
#define SIGNED(text)   ((int64_t)leb(text, true))

static void skip(struct text *text, uint64_t bytes)
{
        text->at += bytes < (uint64_t)(text->end - text->at) ? bytes
                                                             : (uint64_t)(text->end - text->at);
}

static void save(struct state *state, uint64_t reg, int64_t at)
{
        if (reg == FRAME_POINTER) {
                state->frame_at = at;
                state->frame_in_place = false;
        }
        if (reg == STACK_POINTER || (reg == FRAME_POINTER && at >= 0) ||
            (reg == RETURN && at != -WORD))
                state->bad = true;
}

/* An expression {DW_OP_breg6 number, DW_OP_deref if @dereferenced} and nothing else? */
static bool is_at_frame(struct text *text, bool dereferenced, int64_t *at)
{
        uint64_t bytes = UNSIGNED(text);
        struct text inner = { .at = text->at };

        skip(text, bytes);
        inner.end = text->at;
        if (number(&inner, 1) != 0x76)                          /* DW_OP_breg6 */
                return false;
        *at = SIGNED(&inner);
        if (dereferenced && number(&inner, 1) != 0x06)          /* DW_OP_deref */
                return false;
        return inner.at == inner.end;
}

/*
 * What @text says of code @left bytes behind the start of its function. Of DWARF's instructions
 * those that compilers write: with any other there is no rule.
 */
static void run(struct text *text, struct state *state, uint64_t left)
{
        struct state kept[KEPT_MOST], first = *state;
        unsigned depth = 0;

        while (text->at < text->end && !state->bad) {
                uint64_t code = number(text, 1), low = code & 0x3f, reg, step = 0;
                int64_t at;

                switch (code & 0xc0 ? code & 0xc0 : code) {
                case 0x40: step = low; break;                           /* DW_CFA_advance_loc */
                case 0x02: step = number(text, 1); break;
                case 0x03: step = number(text, 2); break;
                case 0x04: step = number(text, 4); break;
                case 0x80:                                              /* offset */
                        save(state, low, (int64_t)UNSIGNED(text) * text->data);
                        break;
                case 0xc0:                                              /* restore */
                        if (low == FRAME_POINTER)
                                state->frame_at = first.frame_at;
                        break;
                case 0x07:                                              /* undefined */
                        state->outermost |= UNSIGNED(text) == RETURN;
                        break;
                case 0x0a:                                              /* remember_state */
                        if (depth < KEPT_MOST)
                                kept[depth++] = *state;
                        else
                                state->bad = true;
                        break;
                case 0x0b:                                              /* restore_state */
                        if (depth)
                                *state = kept[--depth];
                        else
                                state->bad = true;
                        break;
                case 0x0c:                                              /* def_cfa */
                        state->base = UNSIGNED(text);
                        state->constant = (int64_t)UNSIGNED(text);
                        state->by_word = false;
                        break;
                case 0x0d: state->base = UNSIGNED(text); break;         /* def_cfa_register */
                case 0x0e: state->constant = (int64_t)UNSIGNED(text); break;
                case 0x0f:                                              /* def_cfa_expression */
                        state->by_word = is_at_frame(text, true, &state->constant);
                        state->base = state->by_word ? FRAME_POINTER : NO_REGISTER;
                        break;
                case 0x10:                                              /* expression */
                        reg = UNSIGNED(text);
                        state->frame_in_place |= is_at_frame(text, false, &at) && !at &&
                                                 reg == FRAME_POINTER;
                        state->bad |= reg == STACK_POINTER || reg == RETURN ||
                                      (reg == FRAME_POINTER && !state->frame_in_place);
                        break;
                case 0x2e: UNSIGNED(text); break;                       /* GNU_args_size */
                case 0x00: break;
                default: state->bad = true; break;
                }
                if (step * (uint64_t)text->code > left)
                        return;
                left -= step * (uint64_t)text->code;
        }
}

static uint64_t rule_by(const struct state *state)
{
        enum kind kind = state->by_word ? BY_WORD
                         : state->base == STACK_POINTER ? BY_STACK : BY_FRAME;

        if (state->outermost)
                return rule_of(OUTERMOST, 0, 0);
        if (state->bad || (state->base != STACK_POINTER && state->base != FRAME_POINTER) ||
            state->frame_in_place != state->by_word || state->frame_at % WORD ||
            state->frame_at / WORD <= -0xffffff || state->constant != (int32_t)state->constant)
                return NONE;
        return rule_of(kind, state->frame_at / -WORD, state->constant);
}

/* Of code @past bytes behind the start of the function that the table at @unit is of. */
static uint64_t rule_in(const uint8_t *unit, uint64_t past)
{
        struct text own = { .at = unit + 4 }, common = { 0 };
        struct state state = { .base = NO_REGISTER };
        uint64_t version;
        uint32_t bytes;

        memcpy(&bytes, unit, 4);
        own.end = own.at + bytes;
        common.at = own.at;
        common.at -= number(&own, 4);
        skip(&own, 4);
        if (past >= number(&own, 4))
                return NONE;
        memcpy(&bytes, common.at, 4);
        common.at += 4;
        common.end = common.at + bytes;
        skip(&common, 4);
        version = number(&common, 1);
        if ((version != 1 && version != 3) || number(&common, 1) != 'z')
                return NONE;
        for (uint64_t c; (c = number(&common, 1));)
                if (c == 'S')
                        return rule_of(SIGNAL, 0, 0);
        common.code = own.code = (int64_t)UNSIGNED(&common);
        common.data = own.data = SIGNED(&common);
        if ((version == 1 ? number(&common, 1) : UNSIGNED(&common)) != RETURN)
                return NONE;
        skip(&common, UNSIGNED(&common));
        skip(&own, UNSIGNED(&own));
        run(&common, &state, UINT64_MAX);
        run(&own, &state, past);
        return rule_by(&state);
}

/* ---- files ---- */

struct file {
        uintptr_t start, end;
        const uint8_t *tables;          /* .eh_frame_hdr; NULL: none */
        uint64_t build;                 /* tells its code at its place from any other; 0: unknown */
};

/* The first bytes of the build id of @found, which is mapped from its first byte on. */
static uint64_t build_of(const struct dl_find_object *found)
{
        const char *file = found->dlfo_map_start;
        const ElfW(Ehdr) *head = (const void *)file;
        const ElfW(Phdr) *segment = (const void *)(file + head->e_phoff);
        uint64_t id;

        if (memcmp(head->e_ident, ELFMAG, SELFMAG))
                return 0;
        for (unsigned i = 0; i < head->e_phnum; i++, segment++) {
                uintptr_t at = found->dlfo_link_map->l_addr + segment->p_vaddr, next;
                uintptr_t end = segment->p_type == PT_NOTE ? at + segment->p_memsz : at;

                for (; at + sizeof(ElfW(Nhdr)) < end; at = next) {
                        const ElfW(Nhdr) *note = (const void *)at;
                        uintptr_t text = at + sizeof(*note) + ((note->n_namesz + 3) & ~3u);

                        next = text + ((note->n_descsz + 3) & ~3u);
                        if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz >= sizeof(id) &&
                            next <= end) {
                                memcpy(&id, (const void *)text, sizeof(id));
                                return id;
                        }
                }
        }
        return 0;
}

static bool find_file(struct file *file, uintptr_t address)
{
        struct dl_find_object found;

        if (address - file->start < file->end - file->start)
                return true;
        if (_dl_find_object((void *)address, &found) || !found.dlfo_link_map)
                return false;
        file->start = (uintptr_t)found.dlfo_map_start;
        file->end = (uintptr_t)found.dlfo_map_end;
        file->tables = found.dlfo_eh_frame;
        file->build = build_of(&found);
        if (file->build)
                file->build ^= file->start * UINT64_C(0x9e3779b97f4a7c15);
        return file->tables;
}

struct header {
        uint8_t  version, frame, count, table;  /* how the next three are written */
        int32_t  frame_at;
        uint32_t units;
        struct {
                int32_t start, unit;            /* from this header; sorted by `start` */
        } unit[];
};
#define HEADER_VERSION  1
#define HEADER_ENCODING { 0x1b, 0x03, 0x3b }    /* 4 bytes each, as all linkers write them */

static uint64_t look_up(const struct file *file, uintptr_t address)
{
        static const uint8_t encoding[] = HEADER_ENCODING;
        const struct header *header = (const void *)file->tables;
        int64_t offset = (int64_t)(address - (uintptr_t)header);
        uint32_t low = 0, high = header->units;
        uintptr_t start, unit;
        int32_t to_start;

        if (header->version != HEADER_VERSION || memcmp(&header->frame, encoding, sizeof(encoding)))
                return NONE;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (header->unit[middle].start <= offset)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (!low)
                return NONE;
        start = (uintptr_t)header + (uintptr_t)(intptr_t)header->unit[low - 1].start;
        unit = (uintptr_t)header + (uintptr_t)(intptr_t)header->unit[low - 1].unit;
        memcpy(&to_start, (const void *)(unit + 8), 4);
        if (unit + 8 + (uintptr_t)(intptr_t)to_start != start)  /* written in another way */
                return NONE;
        return rule_in((const void *)unit, address - start);
}

/* ---- kept rules ---- */

#define RULES_KEPT 2048                 /* of two words; arbitrary */

/* Atomic, relaxed: I1. `check` belongs to the rule, the address and the file. */
static struct { uint64_t rule, check; } kept[RULES_KEPT] STOOK_MOSTLY_UNUSED;

static uint64_t rule_at(struct file *file, uintptr_t address)
{
        uint64_t hash = address * UINT64_C(0x9e3779b97f4a7c15), rule, check;
        uint64_t *at = &kept[hash / (UINT64_MAX / RULES_KEPT + 1)].rule, *checks = at + 1;

        if (!find_file(file, address))
                return NONE;
        rule = __atomic_load_n(at, __ATOMIC_RELAXED);
        check = rule * UINT64_C(0xff51afd7ed558ccd) ^ address ^ file->build;
        if (__atomic_load_n(checks, __ATOMIC_RELAXED) == check)
                return rule;
        rule = look_up(file, address);
        if (file->build) {
                check = rule * UINT64_C(0xff51afd7ed558ccd) ^ address ^ file->build;
                __atomic_store_n(at, rule, __ATOMIC_RELAXED);
                __atomic_store_n(checks, check, __ATOMIC_RELAXED);
        }
        return rule;
}

/* ---- the walk ---- */

static uintptr_t word_at(uintptr_t address)
{
        return *(const uintptr_t *)address;
}

/* False: it runs on the alternate stack, which is beyond what a sample is interested in. */
static bool is_interrupted_here(const ucontext_t *context)
{
        return (uintptr_t)context - (uintptr_t)context->uc_stack.ss_sp >= context->uc_stack.ss_size;
}

unsigned stook_stack_by_rules(const uintptr_t *frame, uintptr_t *frames, unsigned most)
{
        uintptr_t base = frame[0], address = frame[1], stack = (uintptr_t)(frame + 2), above;
        unsigned count = 0, called = 1;         /* 0: @address was interrupted */
        struct file file = { 0 };
        const ucontext_t *context;

        if (!_dl_find_object)
                return 0;
        while (address && count < most) {
                uint64_t rule = rule_at(&file, address - called);
                int64_t words = rule >> 8 & 0xffffff, constant = (int32_t)(rule >> 32);

                frames[count++] = address;
                called = 1;
                switch ((enum kind)(rule & 0xff)) {
                case OUTERMOST:
                        return count;
                case SIGNAL:
                        context = (const void *)stack;
                        if (!is_interrupted_here(context))
                                return count;
                        address = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
                        stack = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
                        base = (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
                        called = 0;
                        continue;
                case BY_STACK:
                        above = stack + (uintptr_t)constant;
                        break;
                case BY_FRAME:
                        above = base + (uintptr_t)constant;
                        break;
                case BY_WORD:
                        above = word_at(base + (uintptr_t)constant);
                        break;
                default:
                        return 0;
                }
                if (above <= stack || above % sizeof(uintptr_t))        /* stacks grow down */
                        return 0;
                if ((rule & 0xff) == BY_WORD)
                        base = word_at(base);
                else if (words)
                        base = word_at(above - (uintptr_t)words * sizeof(uintptr_t));
                address = word_at(above - sizeof(uintptr_t));
                stack = above;
        }
        return count;
}

#endif
