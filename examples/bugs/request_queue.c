/* Requests go through a queue to threads. A request that takes too long is cancelled. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stook/stook.h>

#define REQUESTS 8

struct request {
        int  number;
        bool cancelled;
};

static struct stook_cache *requests;
static struct request *queue[REQUESTS];
static unsigned queued;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int answered;

static struct request *take(void)
{
        struct request *request = NULL;

        pthread_mutex_lock(&lock);
        if (queued)
                request = queue[--queued];
        pthread_mutex_unlock(&lock);
        return request;
}

static void cancel(struct request *request)
{
        request->cancelled = true;
#ifndef FIXED
        stook_cache_free(requests, request);
#endif
}

static void *work(void *unused)
{
        struct request *request = take();

        while (request) {
                pthread_mutex_lock(&lock);
                answered += !request->cancelled;
                pthread_mutex_unlock(&lock);
                stook_cache_free(requests, request);
                request = take();
        }
        return unused;
}

static void submit(int number)
{
        struct request *request = stook_cache_zalloc(requests);

        if (!request)
                exit(1);
        request->number = number;
        queue[queued++] = request;
}

int main(void)
{
        pthread_t threads[2];

        requests = stook_cache_create("request", sizeof(struct request), NULL);
        if (!requests)
                return 1;
        for (int i = 0; i < REQUESTS; i++)
                submit(i);
        cancel(queue[2]);
        for (int i = 0; i < 2; i++)
                if (pthread_create(&threads[i], NULL, work, NULL))
                        return 1;
        for (int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
        printf("%d answered\n", answered);
        return stook_cache_destroy(requests) ? 1 : 0;
}
