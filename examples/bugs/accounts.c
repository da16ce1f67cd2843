/* Accounts, each with a history. A lock protects them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct entry {
        struct entry *next;
        long          amount;
};

struct account {
        long          balance;
        struct entry *history;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct account from = { .balance = 100 }, to;

/* Return: 0, or -1: no memory. */
static int book(struct account *account, long amount)
{
        struct entry *entry = malloc(sizeof(*entry));

        if (!entry)
                return -1;
        entry->amount = amount;
        entry->next = account->history;
        account->history = entry;
        account->balance += amount;
        return 0;
}

static int transfer(long amount)
{
        int error;

        pthread_mutex_lock(&lock);
        if (book(&from, -amount)) {
#ifdef FIXED
                pthread_mutex_unlock(&lock);
#endif
                return -1;
        }
        error = book(&to, amount);
        pthread_mutex_unlock(&lock);
        return error;
}

static void forget(struct account *account)
{
        while (account->history) {
                struct entry *entry = account->history;

                account->history = entry->next;
                free(entry);
        }
}

int main(void)
{
        int error = transfer(20);

        pthread_mutex_lock(&lock);
        forget(&from);
        forget(&to);
        pthread_mutex_unlock(&lock);
        return error != 0;
}
