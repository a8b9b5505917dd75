#include "jdtool/top/terminal.h"

#include <curses.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

static FILE *keyboard; /* standard input is the recording's later */

const char *terminal_check(void)
{
    int known = 0;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return "it needs a terminal";
    }
    if (setupterm(NULL, STDOUT_FILENO, &known) != OK) {
        return "the terminal's kind is not known (TERM)";
    }
    /* Without it curses shows an empty screen. */
    return tigetstr("cup") ? NULL : "the terminal cannot place its cursor (TERM=dumb?)";
}

bool terminal_open(void)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    keyboard = fd >= 0 ? fdopen(fd, "r") : NULL;
    (void)setlocale(LC_CTYPE, "");
    if (!keyboard || !newterm(NULL, stdout, keyboard)) {
        return false;
    }
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    if (has_colors() && !getenv("NO_COLOR")) {
        start_color();
        use_default_colors();
        init_pair(TERMINAL_HOT, COLOR_RED, -1);
        init_pair(TERMINAL_WARM, COLOR_GREEN, -1);
    }
    refresh();
    return true;
}

int terminal_keyboard(void)
{
    return fileno(keyboard);
}

void terminal_close(void)
{
    if (keyboard) {
        endwin();
        fclose(keyboard);
        keyboard = NULL;
    }
}
