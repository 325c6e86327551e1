/* diagnose_files.c — which file of a job is what, and what it adds to the diagnosis.
 *
 * takes  paths: files, or a folder of a job
 * gives  rc_job: the log(s), the settings with their origin, the snapshot
 *
 * Names decide first (log*, args*, overrides*, config.yaml, run_config.yaml, config.json,
 * *.pickle), then how the first bytes look.
 */
#define _POSIX_C_SOURCE 200809L
#include "diagnose.h"

#include "base/file.h"
#include "base/text.h"

#include <recompute/read.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool has_start(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

static bool has_end(const char *name, const char *end)
{
    size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

static bool is_packed(const char *name)
{
    return has_end(name, ".gz") || has_end(name, ".zst") || has_end(name, ".zstd");
}

/* --- what a file is */

static bool first_bytes(const char *path, char *to, size_t room)
{
    FILE *from;
    if (rc_path_is_directory(path) || rc_stream_open(path, "rb", &from, NULL) != RC_OK)
        return false;
    size_t n = fread(to, 1, room - 1, from);
    to[n] = '\0';
    fclose(from);
    return n > 0;
}

/* A file without a telling name: an argument line, a snapshot, or text of a job. */
static rc_job_role role_by_bytes(const char *path)
{
    char bytes[4097];
    if (!first_bytes(path, bytes, sizeof bytes))
        return RC_ROLE_LOG;
    if ((unsigned char)bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5)
        return RC_ROLE_SNAPSHOT;
    if (bytes[0] == '{' &&
        (strstr(bytes, "\"model_type\"") || strstr(bytes, "\"architectures\"")))
        return RC_ROLE_HF;
    bool has_flags = strstr(bytes, "--num-layers") || strstr(bytes, "--micro-batch-size") ||
                     strstr(bytes, "--tensor-model-parallel-size");
    bool is_script = has_start(bytes, "#!") || has_start(bytes, "--");
    bool is_output = strstr(bytes, "Traceback") || strstr(bytes, "out of memory");
    return has_flags && is_script && !is_output ? RC_ROLE_ARGS : RC_ROLE_LOG;
}

/* Names decide in this order; a start or an end may be "". */
static const struct {
    const char *start, *end;
    rc_job_role role;
} names[] = {
    {"", ".pickle", RC_ROLE_SNAPSHOT},
    {"", ".pkl", RC_ROLE_SNAPSHOT},
    {"run_config", ".yaml", RC_ROLE_RUN_CONFIG},
    {"run_config", ".yml", RC_ROLE_RUN_CONFIG},
    {"", ".yaml", RC_ROLE_CONFIG},
    {"", ".yml", RC_ROLE_CONFIG},
    {"config", ".json", RC_ROLE_HF},
    {"overrides", "", RC_ROLE_OVERRIDES},
    {"args", "", RC_ROLE_ARGS},
    {"", ".sh", RC_ROLE_ARGS},
    {"", ".sbatch", RC_ROLE_ARGS},
    {"log", "", RC_ROLE_LOG},
    {"", ".log", RC_ROLE_LOG},
    {"", ".out", RC_ROLE_LOG},
    {"", ".err", RC_ROLE_LOG},
};

static rc_job_role role_of(const char *path, bool is_named)
{
    const char *name = name_of(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has_start(name, names[i].start) && has_end(name, names[i].end))
            return names[i].role;
    bool is_text = has_end(name, ".txt") || is_packed(name);
    if (has_end(name, ".json") && !is_named)
        return RC_ROLE_OTHER;
    return is_named || is_text ? role_by_bytes(path) : RC_ROLE_OTHER;
}

static bool is_base_name(const char *path)
{
    const char *name = name_of(path);
    const char *mark = strstr(name, "_base");
    return mark && (mark[5] == '.' || mark[5] == '\0' || mark[5] == '_');
}

static rc_code add_file(rc_job_files *files, const char *path, bool is_base, bool is_named,
                        rc_error *err)
{
    rc_job_role role = strcmp(path, "-") == 0 ? RC_ROLE_LOG : role_of(path, is_named);
    if (role == RC_ROLE_OTHER)
        return RC_OK;
    RC_TRY(RC_GROW(files->mem, &files->at, files->n, &files->n_room, files->n + 1, err));
    files->at[files->n++] = (rc_job_file){path, role, is_base || is_base_name(path)};
    return RC_OK;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const rc_job_file *)a)->path, ((const rc_job_file *)b)->path);
}

rc_code rc_job_files_add(rc_job_files *files, const char *path, bool is_base, rc_error *err)
{
    if (!rc_path_is_directory(path))
        return add_file(files, path, is_base, true, err);
    DIR *folder = opendir(path);
    size_t first = files->n;
    rc_code code = RC_OK;
    if (!folder)
        return RC_FAIL(err, RC_E_IO, ((rc_where){.file = path}), "cannot be listed");
    for (struct dirent *entry; code == RC_OK && (entry = readdir(folder));) {
        const char *full;
        if (entry->d_name[0] == '.')
            continue;
        code = rc_arena_printf(files->mem, &full, err, "%s/%s", path, entry->d_name);
        if (code == RC_OK && !rc_path_is_directory(full))
            code = add_file(files, full, is_base, false, err);
    }
    closedir(folder);
    RC_TRY(code);
    if (files->n > first)
        qsort(files->at + first, files->n - first, sizeof *files->at, compare_paths);
    return RC_OK;
}

/* --- settings */

enum { MOST_INPUTS = 12 };

typedef struct settings {
    rc_input asked[MOST_INPUTS], resolved[MOST_INPUTS];
    size_t n_asked, n_resolved;
    bool has_args, has_yaml, has_hf;
    const char *path; /* of the first settings file */
} settings;

static rc_code read_overrides(const char *path, rc_arena *mem, rc_doc **out, rc_error *err)
{
    enum { MOST_BYTES = 1 << 20, MOST_WORDS = 512 };
    const char *bytes;
    size_t n_bytes, n_words = 0;
    const char **words;
    RC_TRY(rc_file_read(path, MOST_BYTES, mem, &bytes, &n_bytes, err));
    RC_TRY(RC_NEW(mem, &words, MOST_WORDS, err));
    for (const char *at = bytes; *at && n_words < MOST_WORDS;) {
        at += strspn(at, " \t\r\n\\");
        if (*at == '#') {
            at += strcspn(at, "\n");
            continue;
        }
        size_t n = strcspn(at, " \t\r\n");
        if (n > 0)
            RC_TRY(rc_arena_copy(mem, at, n, &words[n_words++], err));
        at += n;
    }
    return rc_override_read(words, n_words, mem, out, err);
}

static rc_code read_args(const char *path, rc_arena *mem, rc_doc **out, rc_error *err)
{
    enum { MOST_BYTES = 4 << 20 };
    const char *bytes;
    size_t n_bytes;
    RC_TRY(rc_file_read(path, MOST_BYTES, mem, &bytes, &n_bytes, err));
    return rc_args_read(path, bytes, n_bytes, mem, out, err);
}

static rc_code add_settings(const rc_job_file *file, settings *all, rc_arena *mem,
                            rc_error *err)
{
    rc_doc *doc = NULL;
    rc_origin_kind kind = RC_FROM_FILE;
    if (all->n_asked + 1 >= MOST_INPUTS || all->n_resolved + 1 >= MOST_INPUTS)
        return RC_FAIL(err, RC_E_INPUT, ((rc_where){.file = file->path}),
                       "is one settings file too many; %d are read", MOST_INPUTS);
    if (file->role == RC_ROLE_ARGS) {
        kind = RC_FROM_FLAG;
        all->has_args = true;
        RC_TRY(read_args(file->path, mem, &doc, err));
    } else if (file->role == RC_ROLE_OVERRIDES) {
        kind = RC_FROM_OVERRIDE;
        RC_TRY(read_overrides(file->path, mem, &doc, err));
    } else {
        RC_TRY(rc_doc_read(file->path, mem, &doc, err));
        all->has_yaml = all->has_yaml || file->role != RC_ROLE_HF;
        all->has_hf = all->has_hf || file->role == RC_ROLE_HF;
    }
    if (!all->path)
        all->path = file->path;
    rc_input input = {doc, kind};
    if (file->role == RC_ROLE_RUN_CONFIG)
        all->resolved[all->n_resolved++] = input;
    else
        all->asked[all->n_asked++] = input;
    return RC_OK;
}

/* The argument dump of a log, written out again for the one reader that knows its values. */
static rc_code add_dump(const rc_log *log, settings *all, rc_arena *mem, rc_error *err)
{
    if (!log->settings || log->settings->n_children < 8)
        return RC_OK;
    rc_text text = {.mem = mem};
    rc_doc *doc;
    RC_TRY(rc_text_printf(&text, err,
                          "------------------------ arguments ------------------------\n"));
    for (const rc_doc *node = log->settings->child; node; node = node->next)
        RC_TRY(rc_text_printf(&text, err, "  %s ........................ %s\n", node->key,
                              node->text));
    RC_TRY(rc_text_printf(&text, err,
                          "-------------------- end of arguments ---------------------\n"));
    rc_error ignored = {.code = RC_OK};
    if (rc_dump_read(log->path, text.at, text.n, mem, &doc, &ignored) != RC_OK)
        return RC_OK; /* dots that were no argument dump */
    all->has_args = true;
    all->resolved[all->n_resolved++] = (rc_input){doc, RC_FROM_FLAG};
    return RC_OK;
}

/* A recompute setting that was asked for and is another one in the resolved configuration. */
static rc_code find_lost_setting(const settings *all, rc_job *job, rc_arena *mem, rc_error *err)
{
    static const rc_field fields[] = {RC_FIELD_recompute_granularity,
                                      RC_FIELD_recompute_modules, RC_FIELD_recompute_method,
                                      RC_FIELD_recompute_num_layers};
    rc_config *asked, *resolved;
    if (all->n_asked == 0 || all->n_resolved == 0)
        return RC_OK;
    RC_TRY(rc_config_make(all->asked, all->n_asked, mem, &asked, err));
    RC_TRY(rc_config_make(all->resolved, all->n_resolved, mem, &resolved, err));
    for (size_t i = 0; i < sizeof fields / sizeof *fields && !job->not_applied; i++) {
        const rc_origin *origin = &asked->origin[fields[i]];
        const char *want, *have;
        bool is_asked = origin->kind != RC_FROM_DEFAULT && origin->kind != RC_FROM_DERIVED;
        RC_TRY(rc_config_show(asked, fields[i], mem, &want, err));
        RC_TRY(rc_config_show(resolved, fields[i], mem, &have, err));
        if (!is_asked || strcmp(want, have) == 0)
            continue;
        job->not_applied_at = origin->where;
        RC_TRY(rc_arena_printf(mem, &job->not_applied, err,
                               "%s was set to %s (%s), but the resolved configuration has %s",
                               rc_field_find(fields[i])->name, want,
                               origin->where.file ? name_of(origin->where.file) : "?", have));
    }
    return RC_OK;
}

static rc_code make_config(settings *all, rc_job *job, rc_arena *mem, rc_error *err)
{
    RC_TRY(find_lost_setting(all, job, mem, err));
    size_t n = all->n_asked + all->n_resolved;
    if (n == 0)
        return RC_OK;
    rc_input *inputs;
    rc_config *cfg;
    RC_TRY(RC_NEW(mem, &inputs, n, err));
    memcpy(inputs, all->asked, all->n_asked * sizeof *inputs);
    memcpy(inputs + all->n_asked, all->resolved, all->n_resolved * sizeof *inputs);
    RC_TRY(rc_config_make(inputs, n, mem, &cfg, err));
    job->cfg = cfg;
    job->inputs = inputs;
    job->n_inputs = n;
    job->has_hf_config = all->has_hf;
    job->settings_path = all->path;
    if (all->has_yaml)
        job->framework = RC_TRAINER_BRIDGE;
    else if (all->has_args)
        job->framework = RC_TRAINER_MEGATRON_LM;
    return RC_OK;
}

/* Two runs are compared when both a log before and a log after were named. */
static bool is_comparison(const rc_job_files *files)
{
    bool has_before = false, has_after = false;
    for (size_t i = 0; i < files->n; i++) {
        const rc_job_file *file = &files->at[i];
        has_before = has_before || file->is_base;
        has_after = has_after || (file->role == RC_ROLE_LOG && !file->is_base);
    }
    return has_before && has_after;
}

/* A file of the run that is diagnosed. */
static rc_code read_file(const rc_job_file *file, rc_log *log, settings *all, rc_job *job,
                         rc_error *err)
{
    switch (file->role) {
    case RC_ROLE_LOG:
        return rc_log_read(file->path, log, err);
    case RC_ROLE_SNAPSHOT: {
        rc_snapshot_facts *facts;
        RC_TRY(rc_snapshot_facts_read(file->path, log->mem, &facts, err));
        job->snapshot = facts;
        return RC_OK;
    }
    case RC_ROLE_ARGS: /* launch scripts carry exported variables, so they are read as text too */
        RC_TRY(rc_log_read(file->path, log, err));
        return add_settings(file, all, log->mem, err);
    case RC_ROLE_CONFIG:
    case RC_ROLE_OVERRIDES:
    case RC_ROLE_RUN_CONFIG:
    case RC_ROLE_HF:
        return add_settings(file, all, log->mem, err);
    case RC_ROLE_OTHER:
    default:
        return RC_OK;
    }
}

rc_code rc_job_read(const rc_job_files *files, rc_job *job, rc_arena *mem, rc_error *err)
{
    rc_log *log, *base = NULL;
    settings all = {.n_asked = 0};
    RC_TRY(rc_log_make(mem, &log, err));
    if (is_comparison(files))
        RC_TRY(rc_log_make(mem, &base, err));
    for (size_t i = 0; i < files->n; i++) {
        const rc_job_file *file = &files->at[i];
        if (!base || !file->is_base)
            RC_TRY(read_file(file, log, &all, job, err));
        else if (file->role == RC_ROLE_LOG)
            RC_TRY(rc_log_read(file->path, base, err));
    }
    RC_TRY(add_dump(log, &all, mem, err));
    RC_TRY(make_config(&all, job, mem, err));
    job->log = log;
    job->base = base;
    return RC_OK;
}
