/* libstook-maple(3): numbers for clients, places in a map of memory, locks on ranges. */
#include <stdio.h>
#include <stook/maple.h>

struct region { uint64_t base; };

static struct stook_maple ids = STOOK_MAPLE_INIT(STOOK_MAPLE_GAPS);
static struct stook_maple map = STOOK_MAPLE_INIT(STOOK_MAPLE_GAPS);
static struct stook_maple locks = STOOK_MAPLE_INIT(0);

/* The lowest number that is free, from 1 to 65535. */
static int number(void *client, uint64_t *id)
{
        return stook_maple_alloc(&ids, client, 1, 1, 65535, id);
}

/* Finds a place for a region, which has to know it. */
static int place(struct region *region, uint64_t lowest, uint64_t highest, uint64_t size)
{
        STOOK_MAPLE_CURSOR(cursor, &map, 0, 0);
        int error;

        stook_maple_lock(&map);
        error = stook_maple_cursor_empty_area(&cursor, size, lowest, highest);
        if (!error) {
                region->base = cursor.first;
                error = stook_maple_cursor_store(&cursor, region);
        }
        stook_maple_unlock(&map);
        return error;
}

/* Locks [first, last], unless another owner has a lock there, which is returned. */
static void *lock_range(uint64_t first, uint64_t last, void *owner, int *error)
{
        STOOK_MAPLE_CURSOR(cursor, &locks, first, last);
        void *other;

        *error = 0;
        stook_maple_lock(&locks);
        other = stook_maple_cursor_find(&cursor, last);
        if (!other) {
                stook_maple_cursor_set(&cursor, first, last);
                *error = stook_maple_cursor_store(&cursor, owner);
        }
        stook_maple_unlock(&locks);
        return other;
}

int main(void)
{
        static int client, first_owner, second_owner;
        struct region region;
        uint64_t id;
        int error, failed;

        failed = number(&client, &id) || id != 1 || stook_maple_load(&ids, id) != &client;
        failed |= place(&region, 4096, 65535, 4096) || region.base != 4096;
        failed |= lock_range(0, 99, &first_owner, &error) || error;
        failed |= lock_range(50, 60, &second_owner, &error) != &first_owner;
        printf("client %llu, region at %llu\n", (unsigned long long)id,
               (unsigned long long)region.base);
        stook_maple_destroy(&ids);
        stook_maple_destroy(&map);
        stook_maple_destroy(&locks);
        return failed;
}
