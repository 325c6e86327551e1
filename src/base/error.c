/* error.c — filling rc_error, and what a failure means to the shell. */
#include <recompute/error.h>

#include <stdarg.h>
#include <stdio.h>

rc_code rc_fail(rc_error *err, rc_code code, rc_where where, const char *raised_at,
                const char *fmt, ...)
{
    if (!err || err->code != RC_OK)
        return code;
    err->code = code;
    err->where = where;
    err->raised_at = raised_at;
    va_list args;
    va_start(args, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, args);
    va_end(args);
    return code;
}

int rc_code_exit_status(rc_code code)
{
    switch (code) {
    case RC_OK:
    case RC_E_STOPPED: /* asked to stop, state saved: nothing went wrong */
        return 0;
    case RC_E_INPUT:
    case RC_E_RANGE:
        return 2;
    case RC_E_IO:
    case RC_E_MEMORY:
        return 3;
    case RC_E_UNSUPPORTED:
        return 4;
    case RC_E_BUG:
        break;
    }
    return 70;
}
