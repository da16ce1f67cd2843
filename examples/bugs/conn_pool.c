/* Connections come from a cache. A request that fails closes its connection. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stook/stook.h>

struct conn {
        int  socket;
        char buffer[500];
};

static struct stook_cache *conns;
static int sockets;

static struct conn *conn_open(void)
{
        struct conn *conn = stook_cache_zalloc(conns);

        if (conn)
                conn->socket = ++sockets;
        return conn;
}

static void conn_close(struct conn *conn)
{
        stook_cache_free(conns, conn);
}

/* Request 13 times out. */
static bool send_request(struct conn *conn, int request)
{
        if (request == 13) {
#ifndef FIXED
                conn_close(conn);
#endif
                return false;
        }
        snprintf(conn->buffer, sizeof(conn->buffer), "GET /%d", request);
        return true;
}

static bool serve(int request)
{
        struct conn *conn = conn_open();
        bool sent;

        if (!conn)
                return false;
        sent = send_request(conn, request);
        conn_close(conn);
        return sent;
}

int main(void)
{
        int failed = 0;

        conns = stook_cache_create("conn", sizeof(struct conn), NULL);
        if (!conns)
                return 1;
        for (int request = 0; request < 20; request++)
                failed += !serve(request);
        printf("%d failed\n", failed);
        return stook_cache_destroy(conns) ? 1 : 0;
}
