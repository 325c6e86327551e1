/* read/readers.c — one file, by its extension or else by its look, through its reader.
 *
 * takes  a path
 * gives  the rc_doc of the reader whose row in readers.def fits
 */
#include "base/file.h"
#include "read/reader.h"

#include <string.h>
#include <strings.h>

typedef rc_code reader(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                       rc_doc **out, rc_error *err);

static const struct {
    const char *name, *extensions;
    reader *read;
} readers[] = {
#define RC_READER(name, extensions, read, help) {#name, extensions, read},
#include "defs/readers.def"
#undef RC_READER
};

/* Is `extension` one of the words in `extensions`? */
static bool is_among(const char *extension, const char *extensions)
{
    size_t n = strlen(extension);
    for (const char *at = extensions; *at;) {
        size_t length = strcspn(at, " ");
        if (length == n && strncasecmp(at, extension, n) == 0)
            return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

static reader *find_by_extension(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < sizeof readers / sizeof *readers; i++)
        if (is_among(dot, readers[i].extensions))
            return readers[i].read;
    return NULL;
}

/* JSON begins with a brace or bracket and a quote soon after; all else is tried as YAML, which
 * holds JSON too but says less about its faults. */
static reader *find_by_look(const char *bytes)
{
    bytes += strspn(bytes, "\xEF\xBB\xBF \t\r\n");
    if (*bytes != '{' && *bytes != '[')
        return rc_yaml_read;
    bytes++;
    bytes += strspn(bytes, " \t\r\n");
    return *bytes == '"' ? rc_json_read : rc_yaml_read;
}

rc_code rc_doc_read(const char *path, rc_arena *mem, rc_doc **out, rc_error *err)
{
    const char *bytes;
    size_t n_bytes;
    RC_TRY(rc_file_read(path, RC_READ_MAX_BYTES, mem, &bytes, &n_bytes, err));
    reader *read = find_by_extension(path);
    if (!read)
        read = find_by_look(bytes);
    return read(strcmp(path, "-") == 0 ? "standard input" : path, bytes, n_bytes, mem, out,
                err);
}
