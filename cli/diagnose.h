/* diagnose.h — the files of a job, by what they are (cli/diagnose_files.c, cli/cmd_diagnose.c). */
#ifndef RC_CLI_DIAGNOSE_H
#define RC_CLI_DIAGNOSE_H

#include <recompute/diagnose.h>

typedef enum rc_job_role {
    RC_ROLE_LOG,
    RC_ROLE_ARGS,       /* Megatron-LM arguments or a launch script */
    RC_ROLE_CONFIG,     /* Megatron Bridge's YAML */
    RC_ROLE_OVERRIDES,  /* key=value words */
    RC_ROLE_RUN_CONFIG, /* the resolved configuration that Bridge saves */
    RC_ROLE_HF,         /* Hugging Face config.json */
    RC_ROLE_SNAPSHOT,
    RC_ROLE_OTHER /* no file of a job */
} rc_job_role;

typedef struct rc_job_file {
    const char *path;
    rc_job_role role;
    /* of the run before the change */
    bool is_base;
} rc_job_file;

typedef struct rc_job_files {
    rc_job_file *at;
    size_t n, n_room;
    rc_arena *mem;
} rc_job_files;

/* Adds a file, or every file of a folder that looks like one of a job's, sorted by name.
 * `is_base` marks a run before the change; names that end in _base do so themselves. */
RC_MUST_CHECK
rc_code rc_job_files_add(rc_job_files *files, const char *path, bool is_base, rc_error *err);

/* Reads them all into `job`. A settings file that cannot be read is an error; a log never is. */
RC_MUST_CHECK
rc_code rc_job_read(const rc_job_files *files, rc_job *job, rc_arena *mem, rc_error *err);

#endif
