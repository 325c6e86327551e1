/* test_file.c — whole files in and out; what was there stays until the new one is complete. */
#include "check.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[256];

static int make_folder(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/recompute-file-XXXXXX", base ? base : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Removes what a test left and says how many entries that were. */
static int empty_folder(void)
{
    int n = 0;
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (struct dirent *entry; (entry = readdir(all));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        assert_int_equal(unlink(in_folder(entry->d_name)), 0);
        n++;
    }
    closedir(all);
    return n;
}

static int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

static void write_file(const char *name, const char *bytes, size_t n)
{
    rc_out_file file;
    assert_ok(rc_out_file_open(in_folder(name), &file, NULL));
    assert_int_equal(fwrite(bytes, 1, n, file.to), n);
    assert_ok(rc_out_file_commit(&file, NULL));
}

static void written_bytes_are_read_back(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const char *bytes;
    size_t n;
    write_file("a", "one\0two", 7);
    assert_ok(rc_file_read(in_folder("a"), 7, mem, &bytes, &n, NULL));
    assert_int_equal(n, 7);
    assert_memory_equal(bytes, "one\0two\0", 8);
    rc_map map;
    assert_ok(rc_map_open(in_folder("a"), &map, NULL));
    assert_int_equal(map.n_bytes, 7);
    assert_memory_equal(map.at, "one\0two", 7);
    rc_map_close(&map);
    assert_int_equal(map.n_bytes, 0);
    rc_arena_close(mem);
    assert_int_equal(empty_folder(), 1);
}

static void old_content_stays_until_commit_and_after_abort(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_out_file file;
    const char *bytes;
    size_t n;
    write_file("a", "old", 3);
    assert_ok(rc_out_file_open(in_folder("a"), &file, NULL));
    fputs("half of the new", file.to);
    fflush(file.to);
    assert_ok(rc_file_read(in_folder("a"), 100, mem, &bytes, &n, NULL));
    assert_string_equal(bytes, "old");
    rc_out_file_abort(&file);
    rc_out_file_abort(&file); /* twice is fine */
    assert_ok(rc_file_read(in_folder("a"), 100, mem, &bytes, &n, NULL));
    assert_string_equal(bytes, "old");
    rc_arena_close(mem);
    assert_int_equal(empty_folder(), 1); /* no temporary is left */
}

static void commit_that_cannot_be_written_fails_and_cleans_up(void **state)
{
    (void)state;
    rc_error err = {0};
    rc_out_file file;
    assert_int_equal(mkdir(in_folder("d"), 0700), 0);
    assert_ok(rc_out_file_open(in_folder("d"), &file, NULL)); /* a file cannot replace it */
    fputs("x", file.to);
    assert_int_equal(rc_out_file_commit(&file, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "/d"));
    assert_int_equal(rmdir(in_folder("d")), 0);
    assert_int_equal(empty_folder(), 0);
    assert_int_equal(rc_out_file_open("/nonexistent/x", &file, &(rc_error){0}), RC_E_IO);
}

/* Renamed over, a link or a device would be a regular file from then on. */
static void what_is_no_regular_file_is_written_to_directly(void **state)
{
    (void)state;
    rc_out_file file;
    char target[600], link[600];
    struct stat info;
    snprintf(target, sizeof target, "%s", in_folder("target"));
    snprintf(link, sizeof link, "%s", in_folder("link"));
    assert_int_equal(symlink(target, link), 0);
    assert_ok(rc_out_file_open(link, &file, NULL));
    fputs("through", file.to);
    assert_ok(rc_out_file_commit(&file, NULL));
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(target, &info), 0);
    assert_int_equal(info.st_size, 7);
    assert_ok(rc_out_file_open("/dev/null", &file, NULL));
    fputs("gone", file.to);
    assert_ok(rc_out_file_commit(&file, NULL));
    assert_int_equal(lstat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    unlink(link);
    unlink(target);
}

static void the_end_of_a_file_names_it_where_the_writer_could_not_write(void **state)
{
    (void)state;
    rc_out_file file;
    rc_error err = {0};
    assert_ok(rc_out_file_open(in_folder("e"), &file, NULL));
    rc_code code = RC_FAIL(&err, RC_E_IO, RC_NOWHERE, "the picture could not be written");
    assert_int_equal(rc_out_file_end(&file, code, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "/e"));
    assert_int_equal(access(in_folder("e"), F_OK), -1);
    err = (rc_error){0};
    assert_ok(rc_out_file_open(in_folder("e"), &file, NULL));
    code = RC_FAIL(&err, RC_E_RANGE, RC_NOWHERE, "too large");
    assert_int_equal(rc_out_file_end(&file, code, &err), RC_E_RANGE);
    assert_string_equal(err.msg, "too large");
}

static void full_device_is_an_error_not_a_short_file(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0) {
        print_message("skipped: there is no /dev/full\n");
        skip();
    }
    rc_out_file file;
    assert_ok(rc_out_file_open(in_folder("a"), &file, NULL));
    assert_non_null(freopen("/dev/full", "wb", file.to));
    fputs("x", file.to);
    assert_int_equal(rc_out_file_commit(&file, NULL), RC_E_IO);
    assert_int_equal(empty_folder(), 0);
}

/* A stream that failed long before it is committed: its reason is gone, but something failed. */
static void a_failed_write_is_told_with_a_reason(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0) {
        print_message("skipped: there is no /dev/full here\n");
        skip();
    }
    rc_out_file file;
    rc_error err = {0};
    assert_ok(rc_out_file_open("/dev/full", &file, NULL));
    setvbuf(file.to, NULL, _IONBF, 0);
    fputs("x", file.to);
    assert_int_equal(rc_out_file_write(&file, "x", 1, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "cannot write /dev/full: No space left"));
    err = (rc_error){0};
    errno = 0;
    assert_int_equal(rc_out_file_commit(&file, &err), RC_E_IO);
    assert_null(strstr(err.msg, "Success"));
}

static void a_locked_folder_is_locked_until_it_is_unlocked(void **state)
{
    (void)state;
    int first, second;
    bool is_locked;
    assert_ok(rc_path_lock(folder, 0, &first, &is_locked, NULL));
    assert_true(is_locked);
    assert_ok(rc_path_lock(folder, 0, &second, &is_locked, NULL));
    assert_false(is_locked);
    assert_int_equal(second, -1);
    rc_path_unlock(&first);
    assert_ok(rc_path_lock(folder, 0, &second, &is_locked, NULL));
    assert_true(is_locked);
    rc_path_unlock(&second);
    assert_int_equal(rc_path_lock("/nonexistent", 0, &second, &is_locked, &(rc_error){0}),
                     RC_E_IO);
}

static void limits_directories_and_missing_files_are_named(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const char *bytes;
    size_t n;
    rc_map map;
    write_file("a", "12345", 5);
    rc_error err = {0};
    assert_int_equal(rc_file_read(in_folder("a"), 4, mem, &bytes, &n, &err), RC_E_RANGE);
    err = (rc_error){0};
    assert_int_equal(rc_file_read(in_folder("none"), 9, mem, &bytes, &n, &err), RC_E_IO);
    assert_non_null(strstr(err.where.file, "none"));
    assert_non_null(strstr(err.msg, "No such file"));
    err = (rc_error){0};
    assert_int_equal(rc_file_read(folder, 9, mem, &bytes, &n, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "directory"));
    assert_int_equal(rc_map_open(folder, &map, NULL), RC_E_IO);
    assert_int_equal(rc_map_open(in_folder("none"), &map, NULL), RC_E_IO);
    rc_arena_close(mem);
    empty_folder();
}

static void bytes_that_were_cut_off_are_an_error(void **state)
{
    (void)state;
    rc_in_file file;
    rc_error err = {0};
    char bytes[4] = "";
    write_file("a", "12345678", 8);
    assert_ok(rc_in_file_open(in_folder("a"), &file, NULL));
    assert_int_equal(file.n_bytes, 8);
    assert_ok(rc_in_file_read(&file, 4, 4, bytes, NULL));
    assert_memory_equal(bytes, "5678", 4);
    assert_int_equal(truncate(in_folder("a"), 6), 0);
    assert_ok(rc_in_file_read(&file, 2, 4, bytes, NULL));
    assert_int_equal(rc_in_file_read(&file, 4, 4, bytes, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "has no byte 6 any more; it had 8"));
    rc_in_file_close(&file);
    rc_in_file_close(&file); /* twice is fine */
    empty_folder();
}

/* What stands there is named at once; nothing waits for the other end of a FIFO. */
static void what_is_no_file_is_named(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const char *bytes;
    size_t n;
    FILE *stream;
    rc_in_file file;
    rc_out_file out;
    assert_int_equal(mkfifo(in_folder("p"), 0666), 0);
    static const struct {
        const char *path, *says;
        rc_code code;
    } cases[] = {{"p", "is a FIFO; a file is needed here", RC_E_IO},
                 {"/dev/zero", "is a character device; a file is needed here", RC_E_IO},
                 {"", "a path is empty", RC_E_INPUT}};
    for (size_t i = 0; i < 3; i++) {
        const char *path = i == 0 ? in_folder("p") : cases[i].path;
        rc_error err[3] = {{0}};
        assert_int_equal(rc_in_file_open(path, &file, &err[0]), cases[i].code);
        assert_int_equal(rc_file_read(path, 9, mem, &bytes, &n, &err[1]), cases[i].code);
        assert_int_equal(rc_stream_open(path, "rb", &stream, &err[2]), cases[i].code);
        for (int k = 0; k < 3; k++)
            assert_non_null(strstr(err[k].msg, cases[i].says));
    }
    rc_error err = {0};
    assert_int_equal(rc_out_file_open(in_folder("p"), &out, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "a FIFO that nobody reads"));
    assert_int_equal(rc_out_file_open("", &out, NULL), RC_E_INPUT);
    assert_int_equal(rc_path_make_directory("", NULL), RC_E_INPUT);
    rc_arena_close(mem);
    empty_folder();
}

static void empty_file_maps_and_reads_as_zero_bytes(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const char *bytes;
    size_t n = 9;
    rc_map map;
    write_file("e", "", 0);
    assert_ok(rc_map_open(in_folder("e"), &map, NULL));
    assert_non_null(map.at);
    assert_int_equal(map.n_bytes, 0);
    rc_map_close(&map);
    assert_ok(rc_file_read(in_folder("e"), 0, mem, &bytes, &n, NULL));
    assert_int_equal(n, 0);
    assert_string_equal(bytes, "");
    rc_arena_close(mem);
    empty_folder();
}

static void directories_are_made_with_their_parents(void **state)
{
    (void)state;
    char deep[512];
    snprintf(deep, sizeof deep, "%s/x/y/z", folder);
    assert_ok(rc_path_make_directory(deep, NULL));
    assert_ok(rc_path_make_directory(deep, NULL));
    assert_true(rc_path_is_directory(deep));
    write_file("f", "x", 1);
    snprintf(deep, sizeof deep, "%s/f/g", folder);
    assert_int_equal(rc_path_make_directory(deep, NULL), RC_E_IO);
    assert_true(rc_path_exists(in_folder("f")));
    assert_false(rc_path_is_directory(in_folder("f")));
    assert_false(rc_path_exists(in_folder("nothing")));
    assert_int_equal(rmdir(in_folder("x/y/z")), 0);
    assert_int_equal(rmdir(in_folder("x/y")), 0);
    assert_int_equal(rmdir(in_folder("x")), 0);
    empty_folder();
}

/* Whatever was called behind the call that failed, its reason is what is said. */
static void a_folder_that_cannot_be_made_tells_why(void **state)
{
    (void)state;
    rc_error err = {0};
    if (access("/sys/kernel", F_OK) != 0) {
        print_message("skipped: there is no /sys\n");
        skip();
    }
    /* nobody may make a folder there, and none is */
    assert_int_equal(rc_path_make_directory("/sys/recompute-test/a", &err), RC_E_IO);
    if (strstr(err.msg, "No such file"))
        fail_msg("%s", err.msg);
}

static void the_reason_is_that_of_the_call_that_failed(void **state)
{
    (void)state;
    rc_error err;
    if (access("/dev/full", W_OK) != 0) {
        print_message("skipped: there is no /dev/full\n");
        skip();
    }
    for (int is_flushed = 0; is_flushed < 2; is_flushed++) {
        rc_out_file file;
        static char bytes[1 << 16];
        err = (rc_error){0};
        assert_ok(rc_out_file_open("/dev/full", &file, NULL));
        (void)!fwrite(bytes, 1, is_flushed ? sizeof bytes : 10, file.to);
        if (is_flushed)
            fflush(file.to);
        assert_int_equal(access("/none/such", F_OK), -1); /* errno is ENOENT */
        rc_code code = RC_FAIL(&err, RC_E_IO, RC_NOWHERE, "the report could not be written");
        assert_int_equal(rc_out_file_end(&file, code, &err), RC_E_IO);
        if (!strstr(err.msg, "/dev/full") || !strstr(err.msg, "No space left"))
            fail_msg("%s", err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_bytes_are_read_back),
        cmocka_unit_test(old_content_stays_until_commit_and_after_abort),
        cmocka_unit_test(commit_that_cannot_be_written_fails_and_cleans_up),
        cmocka_unit_test(what_is_no_regular_file_is_written_to_directly),
        cmocka_unit_test(the_end_of_a_file_names_it_where_the_writer_could_not_write),
        cmocka_unit_test(a_folder_that_cannot_be_made_tells_why),
        cmocka_unit_test(the_reason_is_that_of_the_call_that_failed),
        cmocka_unit_test(full_device_is_an_error_not_a_short_file),
        cmocka_unit_test(a_failed_write_is_told_with_a_reason),
        cmocka_unit_test(a_locked_folder_is_locked_until_it_is_unlocked),
        cmocka_unit_test(limits_directories_and_missing_files_are_named),
        cmocka_unit_test(bytes_that_were_cut_off_are_an_error),
        cmocka_unit_test(what_is_no_file_is_named),
        cmocka_unit_test(empty_file_maps_and_reads_as_zero_bytes),
        cmocka_unit_test(directories_are_made_with_their_parents),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
