/* replay.c — runs a fuzz target over every file of the folders it is given, without a fuzzer.
 *
 * A folder that does not exist counts as empty; no file at all is a failure, since a test that
 * reads nothing proves nothing. The process dies where the fuzzer would report.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *from = fopen(path, "rb");
    if (!from)
        return 0;
    uint8_t *data = NULL;
    size_t n = 0, room = 1 << 16, got;
    /* The exact size on the heap, so that ASan sees a read past the end. */
    uint8_t *buffer = malloc(room);
    while (buffer && (got = fread(buffer + n, 1, room - n, from)) > 0) {
        n += got;
        if (n == room) {
            room *= 2;
            buffer = realloc(buffer, room);
        }
    }
    fclose(from);
    data = malloc(n ? n : 1);
    if (!buffer || !data)
        abort();
    memcpy(data, buffer, n);
    free(buffer);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 1;
}

static int run_folder(const char *folder)
{
    DIR *all = opendir(folder);
    int n_files = 0;
    if (!all)
        return 0;
    for (struct dirent *entry; (entry = readdir(all));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        n_files += run_file(path);
    }
    closedir(all);
    return n_files;
}

int main(int argc, char **argv)
{
    int n_files = 0;
    for (int i = 1; i < argc; i++)
        n_files += run_folder(argv[i]);
    printf("%d inputs\n", n_files);
    return n_files == 0;
}
