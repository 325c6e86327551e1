/* say_value.c — a value of any kind in words. */
#include "check/say_value.h"

#include <inttypes.h>

rc_code rc_say_value(rc_text *text, const rc_doc *value, rc_error *err)
{
    char safe[120];
    switch (value->kind) {
    case RC_DOC_NULL:
        return rc_text_printf(text, err, "null");
    case RC_DOC_BOOL:
        return rc_text_printf(text, err, value->i ? "true" : "false");
    case RC_DOC_INT:
        return rc_text_printf(text, err, "%" PRId64, value->i);
    case RC_DOC_FLOAT:
        return rc_text_printf(text, err, "%g", value->f);
    case RC_DOC_STRING:
        rc_text_printable(value->text, value->n_bytes, safe, sizeof safe);
        return rc_text_printf(text, err, value->n_bytes ? "%s" : "\"\"", safe);
    case RC_DOC_LIST:
        RC_TRY(rc_text_printf(text, err, "["));
        for (const rc_doc *item = value->child; item && text->n < 300; item = item->next) {
            RC_TRY(rc_say_value(text, item, err));
            RC_TRY(rc_text_printf(text, err, item->next ? ", " : ""));
        }
        return rc_text_printf(text, err, "]");
    case RC_DOC_MAP:
        return rc_text_printf(text, err, "%s", value->tag ? value->tag : "a map");
    }
    return RC_OK;
}
