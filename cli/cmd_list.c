/* cmd_list.c — `recompute list`: prints the tables the program runs on. */
#include "cli.h"

#include <recompute/config.h>

#include <string.h>

static rc_code list_fields(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"field", NULL, RC_UNIT_TEXT},
                                        {"key", NULL, RC_UNIT_TEXT},
                                        {"default", NULL, RC_UNIT_TEXT},
                                        {"flag", NULL, RC_UNIT_TEXT},
                                        {"help", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "fields", NULL, columns, 5, out, err));
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_field_facts *field = rc_field_find((rc_field)i);
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(field->name);
        row[1] = rc_cell_text(field->key);
        row[2] = rc_cell_text(field->dflt);
        row[3] = rc_cell_text(field->flag);
        row[4] = rc_cell_text(field->help);
    }
    return RC_OK;
}

static const struct {
    const char *name;
    rc_code (*make)(rc_arena *mem, rc_table **out, rc_error *err);
} lists[] = {{"fields", list_fields}};

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    (void)status;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (args->n_words != 1 || strcmp(args->words[0], lists[i].name) != 0)
            continue;
        rc_table *table;
        RC_TRY(lists[i].make(mem, &table, err));
        return rc_table_write(table, args->format, stdout, err);
    }
    return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "name one list: fields");
}

const rc_command rc_command_list = {
    .name = "list",
    .usage = "recompute list NAME",
    .about = "Prints one of the tables the program itself runs on.",
    .run = run,
};
