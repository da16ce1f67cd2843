/* Plug-ins have caches of their own, which end with them. Their timers are called until the end. */
#include <stdio.h>
#include <stook/stook.h>

struct plugin {
        const char         *name;
        struct stook_cache *messages;
        int                 stopped;
};

static int plugin_start(struct plugin *plugin)
{
        plugin->messages = stook_cache_create(plugin->name, 160, NULL);
        return plugin->messages ? 0 : -1;
}

static void plugin_tick(struct plugin *plugin)
{
        char *message;

#ifdef FIXED
        if (plugin->stopped)
                return;
#endif
        message = stook_cache_alloc(plugin->messages);
        if (!message)
                return;
        snprintf(message, 160, "%s is alive", plugin->name);
        puts(message);
        stook_cache_free(plugin->messages, message);
}

static void plugin_stop(struct plugin *plugin)
{
        stook_cache_destroy(plugin->messages);
        plugin->stopped = 1;
}

int main(void)
{
        struct plugin plugins[] = { { .name = "clock" }, { .name = "mail" } };

        for (int i = 0; i < 2; i++)
                if (plugin_start(&plugins[i]))
                        return 1;
        for (int tick = 0; tick < 3; tick++) {
                if (tick == 1)
                        plugin_stop(&plugins[1]);
                for (int i = 0; i < 2; i++)
                        plugin_tick(&plugins[i]);
        }
        plugin_stop(&plugins[0]);
        return 0;
}
