/* Packets of a capture: a header, then the payload, in one object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stook/stook.h>

struct packet {
        unsigned bytes, checksum;
        char     payload[248];
};

static struct stook_cache *packets;

static struct packet *packet_of(char *payload)
{
        return (struct packet *)(payload - offsetof(struct packet, payload));
}

/* The caller sees the payload only. */
static char *packet_read(const char *content)
{
        struct packet *packet = stook_cache_zalloc(packets);

        if (!packet)
                exit(1);
        packet->bytes = (unsigned)strlen(content);
        memcpy(packet->payload, content, packet->bytes);
        return packet->payload;
}

static void packet_done(char *payload)
{
#ifdef FIXED
        stook_cache_free(packets, packet_of(payload));
#else
        stook_cache_free(packets, payload);
#endif
}

int main(void)
{
        char *payload;

        packets = stook_cache_create("packet", sizeof(struct packet), NULL);
        if (!packets)
                return 1;
        payload = packet_read("SYN");
        printf("%u bytes: %s\n", packet_of(payload)->bytes, payload);
        packet_done(payload);
        return stook_cache_destroy(packets) ? 1 : 0;
}
