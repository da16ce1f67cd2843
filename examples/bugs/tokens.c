/* A tokenizer. The text of short tokens, such as operators, is in a table. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct token {
        struct token *next;
        char *text;
};

static char operators[][2] = { "+", "-", "*", "/", "(", ")" };

static char *operator_of(char c)
{
        for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
                if (*operators[i] == c)
                        return operators[i];
        return NULL;
}

static void token_free(struct token *token)
{
#ifdef FIXED
        if (!operator_of(*token->text))
#endif
                free(token->text);
        free(token);
}

static struct token *tokenize(const char *text)
{
        struct token *first = NULL, **end = &first;

        while (*text) {
                size_t n = 1;

                while (isalnum((unsigned char)*text) && isalnum((unsigned char)text[n]))
                        n++;
                *end = calloc(1, sizeof(**end));
                if (!*end)
                        exit(1);
                (*end)->text = operator_of(*text);
                if (!(*end)->text)
                        (*end)->text = strndup(text, n);
                end = &(*end)->next;
                text += n;
        }
        return first;
}

int main(void)
{
        struct token *token = tokenize("2*(width+height)");

        while (token) {
                struct token *next = token->next;

                printf("%s\n", token->text);
                token_free(token);
                token = next;
        }
        return 0;
}
