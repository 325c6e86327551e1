/* check_inputs.c — the words of `recompute check` as configurations.
 *
 * takes  files, folders, `-`, --model, --with, Megatron-LM arguments and key=value overrides
 * gives  paths, each a configuration of its own, and what is combined with every one of them:
 *        built-in model, then the file, then --with, then arguments and overrides; later wins
 */
#include "check.h"
#include "model.h"

#include "base/file.h"
#include "base/text.h"

#include <recompute/read.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

typedef struct gatherer {
    rc_check_plan *plan;
    rc_arena *mem;
} gatherer;

static rc_code add_path(gatherer *work, const char *path, rc_error *err)
{
    rc_check_plan *plan = work->plan;
    RC_TRY(
        RC_GROW(work->mem, &plan->paths, plan->n_paths, &plan->n_room, plan->n_paths + 1, err));
    plan->paths[plan->n_paths++] = path;
    return RC_OK;
}

static bool has_config_name(const char *name)
{
    static const char *const endings[] = {".yaml", ".yml", ".json", ".sh"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0)
            return *name != '.';
    return false;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum { MAX_DEPTH = 16 };

static rc_code add_folder(gatherer *work, const char *path, int depth, rc_error *err)
{
    DIR *folder = opendir(path);
    rc_code code = RC_OK;
    if (!folder)
        return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "%s: cannot open this folder", path);
    for (struct dirent *entry = readdir(folder); entry && code == RC_OK;
         entry = readdir(folder)) {
        const char *full;
        if (entry->d_name[0] == '.')
            continue;
        bool has_slash = path[strlen(path) - 1] == '/';
        code = rc_arena_printf(work->mem, &full, err, "%s%s%s", path, has_slash ? "" : "/",
                               entry->d_name);
        if (code != RC_OK)
            break;
        bool is_folder = rc_path_is_directory(full);
        bool is_entered = is_folder && depth < MAX_DEPTH && !rc_path_is_link(full);
        if (is_entered) /* a link may lead back here */
            code = add_folder(work, full, depth + 1, err);
        else if (!is_folder && has_config_name(entry->d_name))
            code = add_path(work, full, err);
    }
    closedir(folder);
    return code;
}

static rc_code add_file_or_folder(gatherer *work, const char *path, rc_error *err)
{
    size_t n_before = work->plan->n_paths;
    if (strcmp(path, "-") == 0 || !rc_path_is_directory(path))
        return add_path(work, path, err);
    RC_TRY(add_folder(work, path, 0, err));
    if (work->plan->n_paths == n_before)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "%s: no file here ends in .yaml, .yml, .json or .sh", path);
    qsort(work->plan->paths + n_before, work->plan->n_paths - n_before,
          sizeof *work->plan->paths, compare_paths);
    return RC_OK;
}

static rc_code add_with(const rc_args *args, gatherer *work, rc_error *err)
{
    const char *path;
    RC_TRY(RC_NEW(work->mem, &work->plan->with, args->n_options + 1, err));
    for (size_t i = 0; (path = rc_args_find_nth(args, "--with", i)) != NULL; i++) {
        rc_doc *doc;
        RC_TRY(rc_doc_read(path, work->mem, &doc, err));
        work->plan->with[work->plan->n_with++] = (rc_input){doc, RC_FROM_FILE};
    }
    return RC_OK;
}

rc_code rc_check_plan_make(const rc_args *args, rc_arena *mem, rc_check_plan *out,
                           rc_error *err)
{
    gatherer work = {out, mem};
    rc_inputs said;
    *out = (rc_check_plan){0};
    RC_TRY(rc_args_refuse_typos(args, err));
    RC_TRY(rc_model_presets(args, mem, &out->presets, &out->n_presets, err));
    RC_TRY(add_with(args, &work, err));
    RC_TRY(rc_inputs_read_settings(args->words, args->n_words, mem, &said, err));
    out->settings = said.at;
    for (size_t i = 0; i < said.n; i++)
        if (said.at[i].kind == RC_FROM_PRESET) /* behind `--` */
            out->presets[out->n_presets++] = said.at[i];
        else
            out->settings[out->n_settings++] = said.at[i];
    for (size_t i = 0; i < said.n_files; i++)
        RC_TRY(add_file_or_folder(&work, said.files[i], err));
    if (said.n_files == 0 && out->n_presets + out->n_with + out->n_settings == 0)
        return RC_FAIL(
            err, RC_E_INPUT, RC_NOWHERE,
            "name a config file, a folder, -, --model NAME, Megatron-LM arguments or "
            "key=value settings");
    out->has_no_file = said.n_files == 0;
    return out->has_no_file ? add_path(&work, "command line", err) : RC_OK;
}

rc_code rc_check_plan_read(const rc_check_plan *plan, const char *path, rc_arena *mem,
                           rc_check_inputs *out, rc_error *err)
{
    size_t room = plan->n_presets + 1 + plan->n_with + plan->n_settings;
    *out = (rc_check_inputs){0};
    RC_TRY(RC_NEW(mem, &out->at, room, err));
    for (size_t i = 0; i < plan->n_presets; i++)
        out->at[out->n++] = plan->presets[i];
    if (!plan->has_no_file) {
        rc_doc *doc;
        RC_TRY(rc_doc_read(path, mem, &doc, err));
        out->file = doc;
        out->at[out->n++] = (rc_input){doc, RC_FROM_FILE};
    }
    for (size_t i = 0; i < plan->n_with; i++)
        out->at[out->n++] = plan->with[i];
    for (size_t i = 0; i < plan->n_settings; i++)
        out->at[out->n++] = plan->settings[i];
    return RC_OK;
}
