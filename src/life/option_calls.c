/*
 * Purpose: options while the program runs: which value each has and where it came from; another
 * value for those that can change.
 * Place: API; calls what each option is of.
 * Concurrency: no lock. Each option that may change is a word of its layer, which its `get` reads.
 *  What is noted of it besides is for readers outside; of two calls at once it may be either's.
 */
#include <errno.h>
#include <string.h>

#include "gate/gate.h"
#include "group/group.h"
#include "life/life.h"
#include "pages/advice.h"
#include "pages/purge.h"
#include "process/process.h"
#include "rcu/rcu.h"
#include "report/report.h"
#include <stook/control.h>

/* ---- those that may change ---- */

static int set_decay(const char *value)
{
        int64_t ms = stook_option_number(value, STOOK_DECAY_MS_MAX);

        if (ms < 0)
                return -EINVAL;
        stook_pages_set_decay_ms((uint32_t)ms);
        return 0;
}

static int set_thp(const char *value)
{
        int thp = stook_option_choice(value, stook_thp_names);

        if (thp < 0)
                return -EINVAL;
        stook_options_set_thp((unsigned)thp);
        return 0;
}

static int set_maintenance(const char *value)
{
        int64_t on = stook_option_number(value, 1);

        return on < 0 ? -EINVAL : stook_maintenance_thread((int)on);
}

static int set_on_fault(const char *value)
{
        int to = stook_option_choice(value, stook_on_fault_names);

        if (to < 0)
                return -EINVAL;
        stook_report_set_policy(to == 3 ? STOOK_ON_FAULT_LOG : (enum stook_on_fault)to);
        return 0;
}

static int set_backlog(const char *value)
{
        int64_t bytes = stook_option_number(value, INT64_MAX / 16);

        if (bytes < 0)
                return -EINVAL;
        stook_rcu_set_default_limit((uint64_t)bytes);
        if (!bytes)
                stook_rcu_find_default_limit();
        return 0;
}

static int set_group_limit(const char *value)
{
        uint64_t bytes = stook_option_size(value);

        if (!bytes && strcmp(value, "0") != 0)
                return -EINVAL;
        return stook_group_of_process
                ? stook_group_set_limit(stook_group_at(stook_group_of_process), bytes) : -ENOTSUP;
}

static const char *number(char *text, size_t bytes, uint64_t n)
{
        stook_report_format(text, bytes, "%u", n);
        return text;
}

static const char *get_backlog(char *text, size_t bytes)
{
        return number(text, bytes, stook_rcu_limit_bytes());
}

static const char *get_decay(char *text, size_t bytes)
{
        return number(text, bytes, stook_pages_decay_ms());
}

static const char *get_thp(char *text, size_t bytes)
{
        (void)text;
        (void)bytes;
        return stook_thp_names[stook_options_thp_asked()];
}

static const char *get_maintenance(char *text, size_t bytes)
{
        return number(text, bytes, __atomic_load_n(&stook_maintenance_process, __ATOMIC_RELAXED) ==
                                   stook_process_id());
}

static const char *get_on_fault(char *text, size_t bytes)
{
        (void)text;
        (void)bytes;
        return stook_on_fault_names[__atomic_load_n(&stook_report_policy, __ATOMIC_RELAXED)];
}

/* 0: none, or there is no such group. */
static const char *get_group_limit(char *text, size_t bytes)
{
        struct stook_group_stats stats = { .stats_size = sizeof(stats) };

        if (stook_group_of_process)
                stook_group_get_stats(stook_group_at(stook_group_of_process), &stats);
        return number(text, bytes, stats.limit_bytes);
}

static const struct change {
        const char *name;
        int       (*set)(const char *value);
        /* The value in force; it may be in @text. */
        const char *(*get)(char *text, size_t bytes);
} all_changes[] = {
        { "DECAY_MS", set_decay, get_decay },
        { "THP", set_thp, get_thp },
        { "MAINTENANCE", set_maintenance, get_maintenance },
        { "ON_FAULT", set_on_fault, get_on_fault },
        { "RCU_BACKLOG", set_backlog, get_backlog },
        { "GROUP_LIMIT", set_group_limit, get_group_limit },
};

/* NULL: the option cannot change. */
static const struct change *change_of(int index)
{
        for (size_t i = 0; i < sizeof(all_changes) / sizeof(all_changes[0]); i++)
                if (!strcmp(all_changes[i].name, stook_option_names[index]))
                        return &all_changes[i];
        return NULL;
}

/* ---- the calls ---- */

static void fill(int index, struct stook_option *option)
{
        const struct change *change = change_of(index);
        const struct stook_option_state *state = &stook_option_states[index];
        char text[24];
        size_t n = 0;

        memset(option, 0, sizeof(*option));
        for (; stook_option_names[index][n]; n++) {
                char c = stook_option_names[index][n];

                option->name[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
        if (change) {
                const char *value = change->get(text, sizeof(text));

                memcpy(option->value, value, strlen(value) + 1);
        } else {
                for (n = 0; n < sizeof(option->value); n++)
                        option->value[n] = __atomic_load_n(&state->value[n], __ATOMIC_RELAXED);
        }
        option->source = __atomic_load_n(&state->source, __ATOMIC_RELAXED);
        option->may_change = change != NULL;
}

STOOK_API int stook_option_get(const char *name, char *value, size_t bytes)
{
        struct stook_option option;
        int index;
        size_t n;

        if (!name || !value)
                return -EINVAL;
        if (!stook_gate_start())
                return -ENOMEM;
        index = stook_option_index(name, strlen(name));
        if (index < 0)
                return -ENOENT;
        fill(index, &option);
        n = strlen(option.value) + 1;
        if (n > bytes)
                return -ERANGE;
        memcpy(value, option.value, n);
        return 0;
}

STOOK_API int stook_option_set(const char *name, const char *value)
{
        const struct change *change;
        int index, error;

        if (!name || !value)
                return -EINVAL;
        if (!stook_gate_start())
                return -ENOMEM;
        index = stook_option_index(name, strlen(name));
        if (index < 0)
                return -ENOENT;
        if (stook_options_are_locked())
                return -EPERM;
        change = change_of(index);
        if (!change)
                return -ENOTSUP;
        error = change->set(value);
        if (!error)
                stook_option_note(index, value, STOOK_OPTION_SET);
        return error;
}

STOOK_API int stook_option_for_each(int (*each)(const struct stook_option *option, void *data),
                                    void *data)
{
        struct stook_option option;
        int answer = 0;

        if (!each)
                return -EINVAL;
        if (!stook_gate_start())
                return -ENOMEM;
        for (int i = 0; i < STOOK_OPTIONS && !answer; i++) {
                fill(i, &option);
                answer = each(&option, data);
        }
        return answer;
}
