/* style.c — how text may look on a stream: the terminal and the user's environment decide. */
#define _POSIX_C_SOURCE 200809L
#include <recompute/report.h>

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* See https://no-color.org: set and not empty means no colour. */
rc_style rc_style_of(FILE *to)
{
    rc_style style = {0};
    int fd = fileno(to);
    if (fd < 0 || !isatty(fd))
        return style;
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    style.has_colour = !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        style.width = size.ws_col;
    return style;
}
