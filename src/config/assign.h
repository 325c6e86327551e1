/* assign.h — what a row of aliases.def, hf.def or presets.def sets: a list checked by the compiler.
 *
 * The macros are the words of these tables (aliases.def says what each means); they are for the
 * files that expand a table, and each makes one rc_assign.
 */
#ifndef RC_CONFIG_ASSIGN_H
#define RC_CONFIG_ASSIGN_H

#include <recompute/config.h>

/* A model_type that has a row of its own. */
typedef enum rc_family {
#define RC_HF(name, when, settings)
#define RC_FAMILY(name, settings) RC_FAMILY_##name,
#include "defs/hf.def"
#undef RC_FAMILY
#undef RC_HF
    RC_FAMILY_COUNT
} rc_family;

typedef enum rc_assign_kind {
    /* the last of a list */
    RC_ASSIGN_END,
    RC_ASSIGN_VALUE,
    RC_ASSIGN_BRIDGE_VALUE,
    RC_ASSIGN_GIVEN,
    RC_ASSIGN_PRODUCT,
    RC_ASSIGN_DENSE_FIRST,
    RC_ASSIGN_DENSE_FIRST_GIVEN,
    RC_ASSIGN_WINDOW,
    RC_ASSIGN_PLACES,
    RC_ASSIGN_FAMILY
} rc_assign_kind;

typedef struct rc_assign {
    rc_assign_kind kind;
    rc_field field;
    /* only where no input has set the field */
    bool is_weak;
    /* the value as in YAML, or the word of PLACES */
    const char *text;
    /* the other field of PRODUCT, n of DENSE_FIRST, the rc_family of FAMILY */
    int operand;
} rc_assign;

#define SET(field, ...) {RC_ASSIGN_VALUE, RC_FIELD_##field, false, #__VA_ARGS__, 0},
#define IF_UNSET(field, ...) {RC_ASSIGN_VALUE, RC_FIELD_##field, true, #__VA_ARGS__, 0},
#define BRIDGE_SETS(field, ...)                                                                \
    {RC_ASSIGN_BRIDGE_VALUE, RC_FIELD_##field, false, #__VA_ARGS__, 0},
#define GIVEN(field) {RC_ASSIGN_GIVEN, RC_FIELD_##field, false, "", 0},
#define GIVEN_IF_UNSET(field) {RC_ASSIGN_GIVEN, RC_FIELD_##field, true, "", 0},
#define TIMES_IF_UNSET(field, other)                                                           \
    {RC_ASSIGN_PRODUCT, RC_FIELD_##field, true, "", RC_FIELD_##other},
#define DENSE_FIRST(field, n) {RC_ASSIGN_DENSE_FIRST, RC_FIELD_##field, false, "", n},
#define DENSE_FIRST_GIVEN(field) {RC_ASSIGN_DENSE_FIRST_GIVEN, RC_FIELD_##field, false, "", 0},
#define WINDOW_IF_UNSET(field) {RC_ASSIGN_WINDOW, RC_FIELD_##field, true, "", 0},
#define PLACES(field, word) {RC_ASSIGN_PLACES, RC_FIELD_##field, false, #word, 0},
#define FAMILY(name) {RC_ASSIGN_FAMILY, RC_FIELD_COUNT, false, #name, RC_FAMILY_##name},
#define NOTHING

/* A row's settings, for an initializer outside functions. */
#define RC_ASSIGNS(...)                                                                        \
    (const rc_assign[])                                                                        \
    {                                                                                          \
        __VA_ARGS__                                                                            \
        {                                                                                      \
            .kind = RC_ASSIGN_END                                                              \
        }                                                                                      \
    }

/* Whether a list has one of that kind; whether it sets that field. */
bool rc_assigns_have(const rc_assign *list, rc_assign_kind kind);
bool rc_assigns_field(const rc_assign *list, rc_field field);
/* Whether a list reads other fields or lists, so that it waits until all is read. */
bool rc_assigns_wait(const rc_assign *list);

#endif
