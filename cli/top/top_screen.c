/*
 * Purpose: `stook top` on a terminal, by ncurses; see top.h.
 * The screen: three lines about the process, the headings, rows, and a line of keys. What does not
 * fit is cut off: rows can be scrolled, columns cannot.
 */
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/text/plain_text.h"
#include "cli/top/top.h"

#define HEAD_LINES  4                   /* above the rows: with the headings */
#define NAME_WIDTH  14                  /* least, of the first column */
#define EVERY_LEAST 0.05
#define EVERY_MOST  3600.0

struct screen {
        struct top_state  *state;
        struct top_choice *choice;
        struct top_table   table;
        double   every;
        size_t   first;                 /* row at the top */
        int      width[TOP_COLUMNS];    /* of columns; they only grow, so that nothing jumps */
        bool     paused, help, asking, whole, leave;
        char     answer[64];            /* what is typed after '/' */
};

static const char keys_line[] =
        " q quit  h help  c caches  s slots  n nodes  g groups  f fragmentation  <> sort  / name"
        "  t totals";

static const char *const help_lines[] = {
        "c s n g f     the view: caches, slots, nodes and barns, groups, fragmentation",
        "< > or , .    the column to sort by; r: the other direction",
        "/             only caches whose name has this in it, or matches it; empty: all",
        "a             malloc's classes that were never used, too, or not",
        "t             totals instead of rates, or rates again",
        "z             totals count from now on",
        "+ -           look half as often, twice as often",
        "space, p      look at once; stop looking, or go on",
        "arrows, page up, page down, home",
        "q             quit",
        "",
        "SHEAF%: allocations that needed no refill from slabs. CACHED: objects in sheaves.",
        "PINNED: slabs whose objects are all in sheaves or free.",
};

/* ---- drawing ---- */

static void put_line(int y, const char *text, int attributes)
{
        move(y, 0);
        clrtoeol();
        attron(attributes);
        addnstr(text, COLS);
        if (attributes & A_REVERSE)
                for (int x = getcurx(stdscr); getcury(stdscr) == y && x < COLS; x++)
                        mvaddch(y, x, ' ');
        attroff(attributes);
}

static void widen(const struct top_table *t, int width[TOP_COLUMNS])
{
        for (unsigned c = 0; c < t->columns; c++) {
                int title = (int)strlen(t->titles[c]) + 1;      /* a mark at the sorted one */

                width[c] = title > width[c] ? title : width[c];
                for (size_t r = 0; r < t->count; r++) {
                        int n = (int)strlen(t->rows[r].cell[c]);

                        width[c] = n > width[c] ? n : width[c];
                }
        }
        if (width[0] < NAME_WIDTH)
                width[0] = NAME_WIDTH;
}

/* A line of cells, as far as whole cells fit. */
static void put_cells(int y, const int width[TOP_COLUMNS], unsigned columns,
                      const char *(*cell)(const void *, unsigned), const void *data,
                      int attributes)
{
        char line[1024];
        size_t used = 0;

        line[0] = 0;
        for (unsigned c = 0; c < columns; c++) {
                int n = width[c] + (c ? 1 : 0);

                if ((int)used + n > COLS || used + (size_t)n >= sizeof line)
                        break;
                used += (size_t)snprintf(line + used, sizeof line - used, c ? "%*s" : "%-*s", n,
                                         cell(data, c));
        }
        put_line(y, line, attributes);
}

static const char *cell_of_row(const void *row, unsigned column)
{
        return ((const struct top_row *)row)->cell[column];
}

static const char *cell_of_head(const void *screen, unsigned column)
{
        static char title[64];
        const struct screen *s = screen;

        if (column != s->choice->sort[s->choice->view])
                return s->table.titles[column];
        snprintf(title, sizeof title, "%s%c", s->table.titles[column],
                 s->choice->up ? '^' : 'v');
        return title;
}

static int rows_shown(void)
{
        return LINES > HEAD_LINES + 1 ? LINES - HEAD_LINES - 1 : 0;
}

static void draw_table(struct screen *s)
{
        int rows = rows_shown();
        const struct top_table *t = &s->table;

        widen(t, s->width);
        put_cells(HEAD_LINES - 1, s->width, t->columns, cell_of_head, s, A_REVERSE);
        if (s->first + 1 > t->count)
                s->first = t->count ? t->count - 1 : 0;
        for (int y = 0; y < rows; y++) {
                size_t at = s->first + (size_t)y;

                if (at < t->count)
                        put_cells(HEAD_LINES + y, s->width, t->columns, cell_of_row,
                                  &t->rows[at], 0);
                else
                        put_line(HEAD_LINES + y, "", 0);
        }
        if (!t->count && rows > 1)
                put_line(HEAD_LINES + 1, s->choice->view == TOP_GROUPS ? "  no groups" :
                         *s->choice->name ? "  no cache of that name" : "  nothing yet", 0);
}

static void draw_help(void)
{
        int rows = rows_shown(), lines = sizeof help_lines / sizeof help_lines[0];

        put_line(HEAD_LINES - 1, "Keys (any other key goes back)", A_REVERSE);
        for (int y = 0; y < rows; y++)
                put_line(HEAD_LINES + y, y < lines ? help_lines[y] : "", 0);
}

/* A line of parts that is wider than the screen loses the last ones, and no part of one. */
static void put_parts(int y, const char *parts, int attributes)
{
        char line[512];
        size_t end = (size_t)COLS;

        snprintf(line, sizeof line, "%s", parts);
        if (strlen(line) > end) {
                while (end && !strchr(",;", line[end]) && strncmp(line + end, "  ", 2) != 0)
                        end--;
                line[end ? end : (size_t)COLS] = '\0';
        }
        put_line(y, line, attributes);
}

static void draw_head(struct screen *s)
{
        char line[512], right[96], now[16];
        time_t t = time(NULL);
        struct tm tm;
        int n;

        top_make_line(s->state, s->choice, 0, line, sizeof line);
        put_line(0, line, A_BOLD);
        strftime(now, sizeof now, "%H:%M:%S", localtime_r(&t, &tm));
        n = snprintf(right, sizeof right, "  %s%s%severy %.4g s  %s", *s->choice->name ? "/" : "",
                     s->choice->name, *s->choice->name ? "  " : "", s->every,
                     s->paused ? "paused" : now);
        if (n < COLS)
                mvaddnstr(0, COLS - n, right, n);
        for (unsigned i = 1; i <= 2; i++) {
                top_make_line(s->state, s->choice, i, line, sizeof line);
                put_parts((int)i, line, 0);
        }
}

static void draw(struct screen *s)
{
        char line[128];

        free(s->table.rows);
        s->table.rows = NULL;
        if (!top_make_table(s->state, s->choice, &s->table))
                return;
        draw_head(s);
        if (s->help)
                draw_help();
        else
                draw_table(s);
        if (s->asking) {
                snprintf(line, sizeof line, " name: %s_", s->answer);
                put_line(LINES - 1, line, A_REVERSE);
        } else {
                put_parts(LINES - 1, keys_line, A_REVERSE);
        }
        move(LINES - 1, 0);
        refresh();
}

/* ---- keys ---- */

static void take_answer_key(struct screen *s, int key)
{
        size_t n = strlen(s->answer);

        if (key == '\n' || key == '\r' || key == KEY_ENTER) {
                memcpy(s->choice->name, s->answer, sizeof s->choice->name);
                s->asking = false;
                s->first = 0;
        } else if (key == 27) {
                s->asking = false;
        } else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && n) {
                s->answer[n - 1] = 0;
        } else if (key >= ' ' && key < 127 && n + 1 < sizeof s->answer) {
                s->answer[n] = (char)key;
                s->answer[n + 1] = 0;
        }
}

static void show(struct screen *s, enum top_view view)
{
        s->choice->view = view;
        s->first = 0;
        memset(s->width, 0, sizeof s->width);
}

static void move_sort(struct screen *s, int by)
{
        unsigned columns, *column = &s->choice->sort[s->choice->view];

        top_titles(s->choice->view, s->choice->totals, &columns);
        *column = (*column + columns + (unsigned)by) % columns;
}

static void scroll_rows(struct screen *s, int by)
{
        if (by < 0 && s->first < (size_t)-by)
                s->first = 0;
        else if (by < 0 || s->first + (size_t)by < s->table.count)
                s->first = s->first + (size_t)by;
}

static void change_every(struct screen *s, double by)
{
        s->every *= by;
        if (s->every < EVERY_LEAST)
                s->every = EVERY_LEAST;
        if (s->every > EVERY_MOST)
                s->every = EVERY_MOST;
}

static void take_view_key(struct screen *s, int key)
{
        static const char letters[] = "csngf";
        const char *at = key > 0 && key < 128 ? strchr(letters, key) : NULL;

        if (at)
                show(s, (enum top_view)(at - letters));
        else if (key == '<' || key == ',')
                move_sort(s, -1);
        else if (key == '>' || key == '.')
                move_sort(s, 1);
        else if (key == KEY_UP || key == 'k')
                scroll_rows(s, -1);
        else if (key == KEY_DOWN || key == 'j')
                scroll_rows(s, 1);
        else if (key == KEY_PPAGE)
                scroll_rows(s, -rows_shown());
        else if (key == KEY_NPAGE)
                scroll_rows(s, rows_shown());
        else if (key == KEY_HOME)
                s->first = 0;
}

static void take_key(struct screen *s, int key)
{
        if (s->asking) {
                take_answer_key(s, key);
                return;
        }
        if (s->help && key != 'q' && key != KEY_RESIZE) {
                s->help = false;
                return;
        }
        switch (key) {
        case 'q':
        case 'Q':
                s->leave = true;
                break;
        case 'h':
        case '?':
                s->help = true;
                break;
        case '/':
                s->asking = true;
                s->answer[0] = 0;
                break;
        case 'r':
                s->choice->up = !s->choice->up;
                break;
        case 'a':
                s->choice->all = !s->choice->all;
                break;
        case 'L' & 31:
                clearok(stdscr, TRUE);
                break;
        case KEY_RESIZE:
                memset(s->width, 0, sizeof s->width);
                break;
        case 't':
                s->choice->totals = !s->choice->totals;
                break;
        case 'z':
                top_reset(s->state);
                s->choice->totals = true;
                break;
        case '+':
                change_every(s, 2);
                break;
        case '-':
                change_every(s, 0.5);
                break;
        case 'p':
                s->paused = !s->paused;
                break;
        case ' ':
                s->whole = true;
                break;
        default:
                take_view_key(s, key);
        }
}

/* ---- the loop ---- */

static double seconds_now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Takes keys until the next look is due, a look is asked for, or the user leaves. */
static void wait_for_keys(struct screen *s, double due)
{
        for (;;) {
                double left = due - seconds_now();
                int key;

                if (s->leave || s->whole || (left <= 0 && !s->paused))
                        return;
                timeout(s->paused || left > 1 ? 1000 : (int)(left * 1000) + 1);
                key = getch();
                if (key == ERR) {
                        if (!isatty(STDIN_FILENO))
                                s->leave = true;
                        continue;
                }
                take_key(s, key);
                draw(s);
        }
}

static int loop(struct screen *s)
{
        int error = 0;

        while (!s->leave) {
                double begun = seconds_now();

                error = top_look(s->state, s->whole);
                s->whole = false;
                if (error)
                        return error;
                draw(s);
                wait_for_keys(s, begun + s->every);
        }
        return 0;
}

int top_run(struct top_state *state, struct top_choice *choice, double every)
{
        struct screen s = { .state = state, .choice = choice, .every = every };
        SCREEN *terminal;
        int error;

        if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
                fputs("stook top: it needs a terminal; `stook info --every SECONDS` does not\n",
                      stderr);
                return STATUS_CANNOT;
        }
        terminal = newterm(NULL, stdout, stdin);
        if (terminal && !tigetstr("cup")) {     /* it cannot move its cursor: TERM=dumb */
                endwin();
                delscreen(terminal);
                terminal = NULL;
        }
        if (!terminal) {
                say(stderr, "stook top: the terminal is of no known kind, or cannot move its "
                    "cursor (TERM=%s); `stook info --every SECONDS` needs none\n",
                    getenv("TERM") ? getenv("TERM") : "");
                return STATUS_CANNOT;
        }
        cbreak();
        noecho();
        keypad(stdscr, TRUE);
        curs_set(0);
        set_escdelay(50);
        error = loop(&s);
        endwin();
        delscreen(terminal);
        free(s.table.rows);
        if (!error)
                return 0;
        say(stderr, "stook top: process %u: %s\n", state->target->memory.pid, state->now.error);
        return 1;
}
