/*
 * Purpose: see breakpoint.h.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "direct/direct.h"
#include "section/section_hot.h"
#include "race/breakpoint.h"
#include "trap_flag.h"

volatile bool breakpoints_inside;

#if defined(__x86_64__)

#define BREAK 0xcc

extern char __executable_start[], etext[];

static uint8_t *volatile breakpoint;
static uint8_t original;
static void (*volatile interruption)(void);
static volatile bool reached, aborted;
static struct steps *volatile stepping;
static uint8_t seen[1 << 20];           /* by offset in the text */

static void record(uint8_t *rip)
{
        size_t offset = (size_t)(rip - (uint8_t *)__executable_start);

        if (!breakpoints_inside || offset >= (size_t)(etext - __executable_start) ||
            offset >= sizeof(seen) || seen[offset] || stepping->count == STEPS_MAX)
                return;
        seen[offset] = 1;
        stepping->at[stepping->count++] = rip;
}

/* A step is one byte of a rep movsb (a libc's memcpy): all but the last one are made here. */
static void hurry(greg_t *g)
{
        const uint8_t *rip = (const uint8_t *)g[REG_RIP];
        size_t n = (size_t)g[REG_RCX] - 1;

        if (rip[0] != 0xf3 || rip[1] != 0xa4 || !g[REG_RCX])
                return;
        memcpy((void *)g[REG_RDI], (const void *)g[REG_RSI], n);
        g[REG_RDI] += (greg_t)n;
        g[REG_RSI] += (greg_t)n;
        g[REG_RCX] = 1;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
        greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
        uint8_t *at = breakpoint;

        (void)signal, (void)info;
        if (stepping) {
                record((uint8_t *)g[REG_RIP]);
                hurry(g);
                return;
        }
        if (!at) {                      /* another CPU still had the old byte */
                g[REG_RIP]--;
                return;
        }
        *at = original;
        breakpoint = NULL;
        reached = true;
        aborted = (uint8_t *)g[REG_RIP] != at + 1;
        if (!aborted)
                g[REG_RIP] = (greg_t)at;
        interruption();
}

bool breakpoints_start(void)
{
        struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_RESTART };
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
                  from = (uintptr_t)__executable_start & -page;

        if (mprotect((void *)from, (uintptr_t)etext - from, PROT_READ | PROT_WRITE | PROT_EXEC))
                return false;
        sigaction(SIGTRAP, &sa, NULL);
        return true;
}

void breakpoints_find(void (*call)(void), struct steps *steps)
{
        static struct { uint32_t cpu_id_start, cpu_id; uint64_t cs; uint32_t rest[12]; } area
                __attribute__((aligned(64)));
        struct stook_sections real = stook_sections;
        intptr_t *in_use = stook_direct.sealed ? &stook_direct.sealed : &stook_direct.area;
        intptr_t real_direct = *in_use;
        char *real_area = stook_self->rseq;
        bool enrolled = stook_self->ready;

        memset(seen, 0, sizeof(seen));
        steps->count = 0;
        area.cs = 0;
        if (enrolled) {
                area.rest[2] = *stook_section_index(stook_self);   /* mm_cid */
                stook_self->rseq = (char *)&area;
                stook_sections.index = (uintptr_t)&area.rest[2] - (uintptr_t)stook_self;
                if (real.area) {
                        stook_sections.area = (intptr_t)&area - (intptr_t)stook_self;
                        *in_use = (char *)&area - (char *)__builtin_thread_pointer();
                }
        }
        stepping = steps;
        TRAP_FLAG_ON();
        call();
        TRAP_FLAG_OFF();
        stepping = NULL;
        if (enrolled) {
                stook_self->rseq = real_area;
                stook_sections = real;
                *in_use = real_direct;
        }
}

void breakpoint_set(uint8_t *at, void (*then)(void))
{
        reached = aborted = false;
        interruption = then;
        original = *at;
        breakpoint = at;
        *at = BREAK;
}

bool breakpoint_clear(void)
{
        uint8_t *at = breakpoint;

        if (at) {
                *at = original;
                breakpoint = NULL;
        }
        return reached;
}

bool breakpoint_aborted(void)
{
        return aborted;
}

#endif
