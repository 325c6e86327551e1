/* main.c — finds the row in commands.def, parses the command line, runs, maps codes to status. */
#define _XOPEN_SOURCE 700 /* SIGXFSZ */
#include "cli.h"

#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct command_row {
    const rc_command *command;
    const char *name, *summary;
} command_row;

static const command_row rows[] = {
#define RC_COMMAND(name, summary) {&rc_command_##name, #name, summary},
#include "defs/commands.def"
#undef RC_COMMAND
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void print_help(FILE *to)
{
    fprintf(to,
            "recompute %s: activation recompute for transformer training, calculated\n\n"
            "usage: recompute COMMAND [ARGUMENTS]\n\ncommands:\n",
            RC_VERSION);
    for (size_t i = 0; i < N_ROWS; i++)
        fprintf(to, "  %-10s %s\n", rows[i].name, rows[i].summary);
    fprintf(to, "\n`recompute COMMAND --help` explains one of them.\n");
}

static int unknown_command(const char *typed)
{
    const char *names[N_ROWS];
    char safe[80];
    for (size_t i = 0; i < N_ROWS; i++)
        names[i] = rows[i].name;
    const char *nearest = rc_text_nearest(typed, names, N_ROWS);
    fprintf(stderr, "recompute: unknown command %s%s%s; `recompute --help` lists them\n",
            rc_text_printable(typed, strlen(typed), safe, sizeof safe),
            nearest ? ", did you mean " : "", nearest ? nearest : "");
    return 2;
}

static bool has_word(int argc, char **argv, const char *word)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

/* How long an idle OpenMP thread spins before it sleeps, in libgomp's turns. Its default spins for
 * milliseconds: with another program on the same cores a barrier then waits for a thread that is
 * not running, and a small model trains 2 to 20 times slower. A few microseconds are enough between
 * two kernels (RC_SPINS). libgomp reads the environment when it is loaded, hence the second start. Whoever sets
 * one of these variables has decided for himself. */
static void start_with_short_spins(char **argv)
{
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY"))
        return;
    char spins[16];
    snprintf(spins, sizeof spins, "%d", RC_SPINS);
    if (setenv("GOMP_SPINCOUNT", spins, 1) == 0)
        execv("/proc/self/exe", argv); /* where that fails things are only slower */
}

/* A standard stream that is closed would be the next file to be opened, and what is said would land in
 * it. In its place stands one on which every read or write fails. */
static void fill_closed_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            int opened = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
            (void)opened; /* the lowest number that is free: fd */
        }
}

static void on_limit(int number)
{
    (void)number;
}

/* A file that passes RLIMIT_FSIZE is then an error of its write, not the end of the process without a
 * word. A handler, not SIG_IGN: commands that are launched do not inherit it. */
static void survive_file_limit(void)
{
    struct sigaction before, action = {.sa_handler = on_limit, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGXFSZ, &action, NULL);
}

static int run_command(const rc_command *command, int argc, char **argv)
{
    rc_error err = {0};
    int status = 0;
    fill_closed_streams();
    rc_catch_bus_errors();
    survive_file_limit();
    rc_arena *mem = rc_arena_open();
    if (!mem) {
        fprintf(stderr, "recompute: the host is out of memory\n");
        return 3;
    }
    rc_args args;
    rc_code code = rc_args_parse(argc, argv, command, mem, &args, &err);
    if (code == RC_OK)
        code = command->run(&args, mem, &status, &err);
    int why = code == RC_OK ? rc_stream_flush(stdout) : 0;
    if (why)
        code = RC_FAIL(&err, RC_E_IO, RC_NOWHERE, "cannot write to standard output: %s",
                       strerror(why));
    if (code != RC_OK) {
        rc_error_print(&err, has_word(argc, argv, "--trace"), stderr);
        status = rc_code_exit_status(code);
    }
    rc_arena_close(mem);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("recompute %s\n", RC_VERSION);
        return 0;
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(argv[1], rows[i].name) != 0)
            continue;
        if (has_word(argc - 2, argv + 2, "--help") || has_word(argc - 2, argv + 2, "-h")) {
            rc_command_print_help(rows[i].command, stdout);
            return 0;
        }
        if (rows[i].command->has_threads)
            start_with_short_spins(argv);
        return run_command(rows[i].command, argc - 2, argv + 2);
    }
    return unknown_command(argv[1]);
}
