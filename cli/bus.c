/* bus.c — what becomes of a mapped file that lost its end, or whose disk fails: an error with its name.
 *
 * Data of a training run is read, not mapped. Files of weights are mapped while they are loaded, and
 * the program and its libraries are too; touching a page that is gone raises SIGBUS. Nothing can go
 * on from there, but who is waiting can be told which file it was, and that nothing here is broken.
 *
 * A handler knows no more than the address. /proc/self/maps knows the file, and reading it takes
 * only calls that a handler may make.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 + 128, EXIT_MACHINE = 3 };

/* A hexadecimal number at *at, which moves behind it. */
static uintptr_t read_hex(const char **at)
{
    uintptr_t value = 0;
    for (;; (*at)++) {
        if (**at >= '0' && **at <= '9')
            value = value * 16 + (uintptr_t)(**at - '0');
        else if (**at >= 'a' && **at <= 'f')
            value = value * 16 + (uintptr_t)(**at - 'a' + 10);
        else
            return value;
    }
}

/* "7f00-7f80 r--p 00000000 08:01 1234    /a/path": the path when the line holds the address. */
static const char *path_of(const char *line, uintptr_t address)
{
    uintptr_t first = read_hex(&line);
    line += *line == '-';
    uintptr_t end = read_hex(&line);
    return address >= first && address < end ? strchr(line, '/') : NULL;
}

/* Fills `line` with the next line of the file, cut to its room; false at the end. */
static bool read_line(int fd, char line[LINE_BYTES])
{
    size_t n = 0;
    char c;
    while (read(fd, &c, 1) == 1 && c != '\n')
        if (n < LINE_BYTES - 1)
            line[n++] = c;
    line[n] = '\0';
    return n > 0;
}

static void say(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n; /* there is no other place to say it */
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    char line[LINE_BYTES];
    const char *path = NULL;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    (void)context;
    while (fd >= 0 && !path && read_line(fd, line))
        path = path_of(line, (uintptr_t)info->si_addr);
    if (!path) { /* no file: a fault of ours, which shall be seen as what it is */
        struct sigaction none = {.sa_handler = SIG_DFL};
        sigaction(number, &none, NULL);
        raise(number);
        return;
    }
    for (char *at = line; *at; at++) /* the name is untrusted */
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    say(path);
    say(": was cut off while it was read, or its disk failed\n");
    _exit(EXIT_MACHINE);
}

void rc_catch_bus_errors(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
