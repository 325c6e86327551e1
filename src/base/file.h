/* file.h — whole files in, whole files out: atomically, with clear errors. */
#ifndef RC_BASE_FILE_H
#define RC_BASE_FILE_H

#include <recompute/arena.h>

#include <stdio.h>

/* Reads a file (or "-" for standard input) into `mem`, NUL-terminated. A pipe that a shell made
 * (<(...), /dev/stdin) is read too; FIFOs, devices and sockets with a name of their own are refused.
 * errors  RC_E_IO with the path and the reason; RC_E_RANGE past max_bytes */
RC_MUST_CHECK
rc_code rc_file_read(const char *path, int64_t max_bytes, rc_arena *mem, const char **bytes,
                     size_t *n_bytes, rc_error *err);

/* A regular file to be read anywhere in it, while whoever owns it may change it. What it had when it
 * was opened and has no more is an error; a mapping would end the process (SIGBUS). */
typedef struct rc_in_file {
    /* borrowed */
    const char *path;
    /* -1 when closed */
    int fd;
    /* when it was opened */
    int64_t n_bytes;
} rc_in_file;
RC_MUST_CHECK
rc_code rc_in_file_open(const char *path, rc_in_file *file, rc_error *err);
/* Bytes [at, at + n), which lie inside n_bytes. errors  RC_E_IO when the file was cut off, or cannot
 * be read */
RC_MUST_CHECK
rc_code rc_in_file_read(const rc_in_file *file, int64_t at, int64_t n, void *out,
                        rc_error *err);
void rc_in_file_close(rc_in_file *file);

/* A read-only mapping; `close` unmaps. An empty file maps to a valid pointer and 0 bytes. */
typedef struct rc_map {
    const unsigned char *at;
    size_t n_bytes;
} rc_map;
RC_MUST_CHECK
rc_code rc_map_open(const char *path, rc_map *map, rc_error *err);
void rc_map_close(rc_map *map);

/* Atomic writing: open a temporary beside `path`, write to it, then commit (flush, fsync, rename).
 * Until commit `path` keeps its old content; abort removes the temporary. What is no regular file
 * (/dev/stdout, a pipe, a link) is written to directly and stays what it is. */
typedef struct rc_out_file {
    FILE *to;
    char path[4096];
    /* empty: written to directly */
    char tmp_path[4096];
} rc_out_file;
RC_MUST_CHECK
rc_code rc_out_file_open(const char *path, rc_out_file *file, rc_error *err);
/* Writes now what a stream would only say when it is committed: the reason, where it fails. */
RC_MUST_CHECK
rc_code rc_out_file_write(rc_out_file *file, const void *bytes, size_t n_bytes, rc_error *err);
RC_MUST_CHECK
rc_code rc_out_file_commit(rc_out_file *file, rc_error *err);
void rc_out_file_abort(rc_out_file *file);
/* Commits after a writer's RC_OK; else aborts and gives `code` back, naming the path where the
 * writer could not write. */
RC_MUST_CHECK
rc_code rc_out_file_end(rc_out_file *file, rc_code code, rc_error *err);

/* Opens a plain stream for reading ("rb"), writing or appending; close with fclose. It never waits:
 * see open.h for what is refused. */
RC_MUST_CHECK
rc_code rc_stream_open(const char *path, const char *mode, FILE **out, rc_error *err);
/* Writes what a stream holds back. Gives 0, or why it fails or failed before: an errno. */
RC_MUST_CHECK
int rc_stream_flush(FILE *to);

bool rc_path_is_directory(const char *path);
bool rc_path_is_link(const char *path); /* symbolic, itself */
bool rc_path_exists(const char *path);
/* The same where "no" has consequences. errors  RC_E_IO when it cannot be known: a folder on the way
 * may not be entered, its disk fails, the name is too long */
RC_MUST_CHECK
rc_code rc_path_look(const char *path, bool *exists, rc_error *err);
bool rc_path_is_same(const char *a,
                     const char *b); /* both exist and are one file or directory */
/* Makes the names in a directory durable: what was made, renamed or removed in it. */
RC_MUST_CHECK
rc_code rc_path_sync_directory(const char *path, rc_error *err);
/* The names in a directory, in no order. */
RC_MUST_CHECK
rc_code rc_path_list(const char *path, rc_arena *mem, const char ***names, size_t *n,
                     rc_error *err);
/* Makes a directory and its parents, durably; an existing one is fine. */
RC_MUST_CHECK
rc_code rc_path_make_directory(const char *path, rc_error *err);
/**
 * Keeps other processes that ask for the same directory out, until it is unlocked or this one ends.
 *
 * takes   wait_ms     how long to wait for another one, which may be about to end
 * gives   *is_locked  false where another holds it; true also on file systems without locks
 *         *fd         to be unlocked; -1 where it is not locked
 */
RC_MUST_CHECK
rc_code rc_path_lock(const char *path, int wait_ms, int *fd, bool *is_locked, rc_error *err);
void rc_path_unlock(int *fd);
RC_MUST_CHECK
rc_code rc_path_rename(const char *from, const char *to, rc_error *err);
/* Removes a file or an empty directory; a missing one is fine. */
RC_MUST_CHECK
rc_code rc_path_remove(const char *path, rc_error *err);
/* Removes a directory and the files in it, but enters no directory or link; a missing one is fine. */
RC_MUST_CHECK
rc_code rc_path_remove_folder(const char *path, rc_error *err);

#endif
