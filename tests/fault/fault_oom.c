/* fault_oom.c — runs one command again and again, its n-th allocation failing, n = 0, 1, 2, ...
 *
 * Until the command succeeds, every run must end in RC_E_MEMORY with a message: no crash, no other
 * error, no success on half the work. ASan adds: no leak, nothing used after it was given back.
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const rc_command *command;
} commands[] = {
#define RC_COMMAND(name, summary) {#name, &rc_command_##name},
#include "defs/commands.def"
#undef RC_COMMAND
};

/* The first failures one by one, where set-up happens; later ones at growing distances, since a
 * command may allocate tens of thousands of times. */
static int64_t next_after(int64_t n)
{
    return n < 400 ? n + 1 : n + n / 40;
}

static rc_code run(const rc_command *command, int argc, char **argv, int64_t n, rc_error *err)
{
    rc_args args;
    int status = 0;
    rc_arena *mem = rc_arena_open();
    if (!mem)
        return RC_E_BUG;
    rc_arena_fail_after(mem, n);
    rc_code code = rc_args_parse(argc, argv, command, mem, &args, err);
    if (code == RC_OK)
        code = command->run(&args, mem, &status, err);
    rc_arena_close(mem);
    return code;
}

static int fail_each(const rc_command *command, int argc, char **argv)
{
    int64_t n_failures = 0;
    for (int64_t n = 0;; n = next_after(n)) {
        rc_error err = {.code = RC_OK};
        rc_code code = run(command, argc, argv, n, &err);
        if (code == RC_OK) {
            fprintf(stderr, "%lld failures, then success with %lld allocations at most\n",
                    (long long)n_failures, (long long)n);
            return n_failures == 0;
        }
        if (code != RC_E_MEMORY || err.code != RC_E_MEMORY || !err.msg[0]) {
            fprintf(stderr, "allocation %lld failing gave code %d (error %d): %s at %s\n",
                    (long long)n, (int)code, (int)err.code, err.msg,
                    err.raised_at ? err.raised_at : "?");
            return 1;
        }
        n_failures++;
    }
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        if (!freopen("/dev/null", "w", stdout))
            return 2;
        return fail_each(commands[i].command, argc - 2, argv + 2);
    }
    fprintf(stderr, "usage: fault_oom COMMAND ARGUMENTS...\n");
    return 2;
}
