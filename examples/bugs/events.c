/* An event loop with two kinds of events, each with a cache of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <stook/stook.h>

enum kind { TIMER, SIGNAL };

struct event {
        struct event *next;
        enum kind     kind;
};

struct timer_event {
        struct event event;
        long         due;
};

struct signal_event {
        struct event event;
        int          signal;
};

static struct stook_cache *timers, *signals;
static struct event *queue;

static void post(struct event *event, enum kind kind)
{
        event->kind = kind;
        event->next = queue;
        queue = event;
}

static void post_timer(long due)
{
        struct timer_event *timer = stook_cache_alloc(timers);

        if (!timer)
                exit(1);
        timer->due = due;
        post(&timer->event, TIMER);
}

static void post_signal(int number)
{
        struct signal_event *event = stook_cache_alloc(signals);

        if (!event)
                exit(1);
        event->signal = number;
        post(&event->event, SIGNAL);
}

static void dispatch(struct event *event)
{
#ifdef FIXED
        stook_cache_free(event->kind == TIMER ? timers : signals, event);
#else
        stook_cache_free(timers, event);
#endif
}

int main(void)
{
        timers = stook_cache_create("timer_event", sizeof(struct timer_event), NULL);
        signals = stook_cache_create("signal_event", sizeof(struct signal_event), NULL);
        if (!timers || !signals)
                return 1;
        post_timer(100);
        post_signal(15);
        post_timer(200);
        while (queue) {
                struct event *event = queue;

                queue = event->next;
                dispatch(event);
        }
        return stook_cache_destroy(timers) || stook_cache_destroy(signals);
}
