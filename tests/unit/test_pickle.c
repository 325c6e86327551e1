/* test_pickle.c — what the pickle machine accepts, and why it refuses the rest.
 *
 * Each case is a whole file in bytes. SNAP(x) is {"segments": [], "device_traces": [], "x": ...}
 * with the opcodes of x under a key nobody reads.
 */
#include <recompute/snapshot.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(text) text, sizeof(text) - 1
#define EMPTY_SNAP "\x80\x02}(X\x08\0\0\0segments]X\x0D\0\0\0device_traces]"
#define SNAP(value) EMPTY_SNAP "X\x01\0\0\0x" value "u."
/* One event in one trace; `fields` are its pairs. */
#define EVENT(fields)                                                                          \
    "\x80\x02}(X\x08\0\0\0segments]X\x0D\0\0\0device_traces](](}(" fields "ueeu."

static const struct refused {
    const char *name;
    const char *bytes;
    size_t n_bytes;
    rc_refusal refusal;
} cases[] = {
    {"nothing", BYTES(""), RC_REFUSAL_EMPTY},
    {"text", BYTES("{\"segments\": []}"), RC_REFUSAL_NOT_PICKLE},
    {"zip", BYTES("PK\x03\x04rest"), RC_REFUSAL_COMPRESSED},
    {"xz",
     BYTES("\xFD"
           "7zXZ\0rest"),
     RC_REFUSAL_COMPRESSED},
    {"cut gzip", BYTES("\x1F\x8B\x08\0\0\0\0\0"), RC_REFUSAL_COMPRESSED},
    {"protocol 1", BYTES("\x80\x01}."), RC_REFUSAL_BAD_PROTOCOL},
    {"protocol 6", BYTES("\x80\x06}."), RC_REFUSAL_BAD_PROTOCOL},
    {"two protocols", BYTES("\x80\x02\x80\x02}."), RC_REFUSAL_BAD_PROTOCOL},
    {"only a protocol", BYTES("\x80\x04"), RC_REFUSAL_TRUNCATED},
    {"no stop", BYTES("\x80\x04}"), RC_REFUSAL_TRUNCATED},
    {"half an int", BYTES("\x80\x04J\x01\x02"), RC_REFUSAL_TRUNCATED},
    {"long frame", BYTES("\x80\x04\x95\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF}."),
     RC_REFUSAL_TRUNCATED},
    {"long string", BYTES("\x80\x04X\xFF\xFF\xFF\xFFx."), RC_REFUSAL_BAD_LENGTH},
    {"string of 2^63", BYTES("\x80\x04\x8D\0\0\0\0\0\0\0\x80x."), RC_REFUSAL_BAD_LENGTH},
    {"bytes of 2^64-1", BYTES("\x80\x04\x8E\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF."),
     RC_REFUSAL_BAD_LENGTH},
    {"negative long", BYTES("\x80\x04\x8B\xFF\xFF\xFF\xFF."), RC_REFUSAL_BAD_LENGTH},
    {"long of 10 bytes", BYTES(SNAP("\x8A\x0A\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A")),
     RC_REFUSAL_INT_RANGE},
    {"2^64", BYTES(SNAP("\x8A\x09\0\0\0\0\0\0\0\0\x01")), RC_REFUSAL_INT_RANGE},
    {"-2^63-1", BYTES(SNAP("\x8A\x09\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F\xFF")),
     RC_REFUSAL_INT_RANGE},
    {"get nothing", BYTES(SNAP("h\x07")), RC_REFUSAL_BAD_MEMO},
    {"get far", BYTES(SNAP("j\xFF\xFF\xFF\xFF")), RC_REFUSAL_BAD_MEMO},
    {"put far", BYTES(SNAP("Nr\xFF\xFF\xFF\x7F")), RC_REFUSAL_BAD_MEMO},
    {"put nothing", BYTES("\x80\x04q\x01."), RC_REFUSAL_STACK},
    {"memoize a mark", BYTES("\x80\x04(\x94."), RC_REFUSAL_STACK},
    {"no mark", BYTES("\x80\x04]e."), RC_REFUSAL_STACK},
    {"odd pairs", BYTES(SNAP("}(X\x01\0\0\0au")), RC_REFUSAL_STACK},
    {"append to an int",
     BYTES("\x80\x04K\x01K\x02"
           "a."),
     RC_REFUSAL_STACK},
    {"items into a list", BYTES("\x80\x04]K\x01K\x02s."), RC_REFUSAL_STACK},
    {"stop with two", BYTES("\x80\x04}}."), RC_REFUSAL_STACK},
    {"stop in a mark", BYTES("\x80\x04}(."), RC_REFUSAL_STACK},
    {"pop nothing",
     BYTES("\x80\x04"
           "0."),
     RC_REFUSAL_STACK},
    {"tuple over a mark", BYTES("\x80\x04K\x01(K\x02\x86."), RC_REFUSAL_STACK},
    {"list as a key", BYTES("\x80\x04}]K\x01s."), RC_REFUSAL_BAD_TYPE},
    {"global",
     BYTES("\x80\x02"
           "cos\nsystem\n."),
     RC_REFUSAL_CODE},
    {"stack global", BYTES(SNAP("X\x02\0\0\0osX\x06\0\0\0system\x93")), RC_REFUSAL_CODE},
    {"reduce", BYTES(SNAP("NNR")), RC_REFUSAL_CODE},
    {"build", BYTES(SNAP("}}b")), RC_REFUSAL_CODE},
    {"inst", BYTES("\x80\x02(ios\nsystem\n."), RC_REFUSAL_CODE},
    {"obj", BYTES("\x80\x02(o."), RC_REFUSAL_CODE},
    {"newobj", BYTES("\x80\x02NN\x81."), RC_REFUSAL_CODE},
    {"newobj_ex", BYTES("\x80\x02NNN\x92."), RC_REFUSAL_CODE},
    {"persid", BYTES("\x80\x02Pid\n."), RC_REFUSAL_CODE},
    {"binpersid", BYTES("\x80\x02NQ."), RC_REFUSAL_CODE},
    {"ext1", BYTES("\x80\x02\x82\x01."), RC_REFUSAL_CODE},
    {"ext4", BYTES("\x80\x02\x84\x01\0\0\0."), RC_REFUSAL_CODE},
    {"next buffer", BYTES("\x80\x05\x97."), RC_REFUSAL_CODE},
    {"readonly buffer", BYTES("\x80\x05N\x98."), RC_REFUSAL_CODE},
    {"empty set", BYTES("\x80\x04\x8F."), RC_REFUSAL_BAD_OPCODE},
    {"text int", BYTES("\x80\x02I1\n."), RC_REFUSAL_BAD_OPCODE},
    {"no opcode", BYTES("\x80\x04\xFF."), RC_REFUSAL_BAD_OPCODE},
    {"latin-1", BYTES(SNAP("X\x01\0\0\0\xE9")), RC_REFUSAL_BAD_UTF8},
    {"overlong", BYTES(SNAP("X\x02\0\0\0\xC0\xAF")), RC_REFUSAL_BAD_UTF8},
    {"past U+10FFFF", BYTES(SNAP("X\x04\0\0\0\xF4\x90\x80\x80")), RC_REFUSAL_BAD_UTF8},
    {"none", BYTES("\x80\x04N."), RC_REFUSAL_BAD_TYPE},
    {"an empty list", BYTES("\x80\x04]."), RC_REFUSAL_BAD_TYPE},
    {"an empty dict", BYTES("\x80\x04}."), RC_REFUSAL_MISSING_KEY},
    {"traces a dict", BYTES("\x80\x02}X\x0D\0\0\0device_traces}s."), RC_REFUSAL_BAD_TYPE},
    {"an event an int",
     BYTES("\x80\x02}X\x0D\0\0\0device_traces](](K\x01K\x02"
           "ees."),
     RC_REFUSAL_BAD_TYPE},
    {"event without action", BYTES(EVENT("X\x04\0\0\0sizeK\x01")), RC_REFUSAL_MISSING_KEY},
    {"alloc without size", BYTES(EVENT("X\x06\0\0\0actionX\x05\0\0\0alloc")),
     RC_REFUSAL_MISSING_KEY},
    {"alloc without addr",
     BYTES(EVENT("X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0sizeK\x01")),
     RC_REFUSAL_MISSING_KEY},
    {"size a bool",
     BYTES(EVENT("X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0size\x88X\x04\0\0\0addrK\x01")),
     RC_REFUSAL_BAD_TYPE},
    {"size negative",
     BYTES(EVENT(
         "X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0sizeJ\xFF\xFF\xFF\xFFX\x04\0\0\0addrK\x01")),
     RC_REFUSAL_BAD_VALUE},
    {"frames of strings",
     BYTES(EVENT("X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0sizeK\x01X\x04\0\0\0addrK\x01"
                 "X\x06\0\0\0frames](X\x01\0\0\0fe")),
     RC_REFUSAL_BAD_TYPE},
    {"an event twice",
     BYTES("\x80\x02}X\x0D\0\0\0device_traces](](}q\x01(X\x06\0\0\0actionX\x01\0\0\0nuh\x01"
           "ees."),
     RC_REFUSAL_LIMIT},
    {"a trace twice",
     BYTES("\x80\x02}X\x0D\0\0\0device_traces](]q\x01(}(X\x06\0\0\0actionX\x01\0\0\0nueh\x01"
           "es."),
     RC_REFUSAL_LIMIT},
    {"an event changed later",
     BYTES("\x80\x02}X\x0D\0\0\0device_traces](](}q\x01(X\x06\0\0\0actionX\x01\0\0\0nu"
           "(X\x04\0\0\0sizeK\x01uees."),
     RC_REFUSAL_LIMIT},
    {"an event popped",
     BYTES("\x80\x02}X\x0D\0\0\0device_traces](](}(X\x06\0\0\0actionX\x01\0\0\0nu0ees."),
     RC_REFUSAL_LIMIT},
};

static void each_bad_file_is_refused_for_its_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        rc_snapshot *snapshot;
        rc_refusal refusal;
        rc_error err = {0};
        rc_code code = rc_snapshot_make_bytes(cases[i].bytes, cases[i].n_bytes, NULL, NULL, mem,
                                              &snapshot, &refusal, &err);
        if (code != RC_E_INPUT || refusal != cases[i].refusal)
            fail_msg("%s: code %d, %s instead of %s: %s", cases[i].name, code,
                     rc_snapshot_refusal_name(refusal),
                     rc_snapshot_refusal_name(cases[i].refusal), err.msg);
        if (refusal != RC_REFUSAL_COMPRESSED && !strstr(err.msg, ", at byte "))
            fail_msg("%s: no place in: %s", cases[i].name, err.msg);
        rc_arena_close(mem);
    }
}

static const struct {
    const char *name;
    const char *bytes;
    size_t n_bytes;
    int64_t n_events;
} fine[] = {
    {"nothing recorded", BYTES(SNAP("N")), 0},
    {"bytes and floats nobody reads", BYTES(SNAP("(C\x01zG\x3F\xE0\0\0\0\0\0\0t")), 0},
    {"a cycle nobody reads",
     BYTES(SNAP("]q\x05(h\x05"
                "e")),
     0},
    {"2^64-1 and -2^63",
     BYTES(SNAP("(\x8A\x09\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\x8A\x08\0\0\0\0\0\0\0\x80t")), 0},
    {"an int without bytes", BYTES(SNAP("\x8A\0")), 0},
    {"dup and pop",
     BYTES(SNAP("N2"
                "0")),
     0},
    {"pop to a mark", BYTES(SNAP("N(NN1")), 0},
    {"a surrogate", BYTES(SNAP("X\x03\0\0\0\xED\xB3\xA9")), 0},
    {"a short frame", BYTES("\x80\x04\x95\x01\0\0\0\0\0\0\0}X\x08\0\0\0segments]s."), 0},
    {"rubbish after the end",
     BYTES(SNAP("N") "\0\0\xFF"
                     "cos\n"),
     0},
    {"a key twice: the last wins",
     BYTES(EVENT("X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0sizeNX\x04\0\0\0sizeK\x01"
                 "X\x04\0\0\0addrK\x01")),
     1},
    {"an action from the future", BYTES(EVENT("X\x06\0\0\0actionX\x05\0\0\0dream")), 1},
    {"an event built key by key",
     BYTES("\x80\x02}X\x0D\0\0\0device_traces](](}X\x06\0\0\0actionX\x01\0\0\0nsees."), 1},
    {"an event appended alone",
     BYTES("\x80\x02}X\x0D\0\0\0device_traces]]}(X\x06\0\0\0actionX\x01\0\0\0nuaas."), 1},
};

static void odd_but_valid_files_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        rc_arena *mem = rc_arena_open();
        rc_snapshot *snapshot;
        rc_error err = {0};
        rc_code code = rc_snapshot_make_bytes(fine[i].bytes, fine[i].n_bytes, NULL, NULL, mem,
                                              &snapshot, NULL, &err);
        if (code != RC_OK)
            fail_msg("%s: %s", fine[i].name, err.msg);
        int64_t n = 0;
        for (size_t k = 0; k < snapshot->n_devices; k++)
            n += snapshot->devices[k].n_events;
        if (n != fine[i].n_events)
            fail_msg("%s: %d events", fine[i].name, (int)n);
        rc_arena_close(mem);
    }
}

static rc_refusal refusal_of(const unsigned char *bytes, size_t n)
{
    rc_arena *mem = rc_arena_open();
    rc_snapshot *snapshot;
    rc_refusal refusal;
    rc_code code = rc_snapshot_make_bytes(bytes, n, NULL, NULL, mem, &snapshot, &refusal, NULL);
    assert_int_equal(code == RC_OK, refusal == RC_REFUSAL_NONE);
    rc_arena_close(mem);
    return refusal;
}

static void depth_is_limited_at_64(void **state)
{
    (void)state;
    enum { N = 100000 };
    unsigned char *bytes = malloc(2 * N + 8);
    assert_non_null(bytes);
    memcpy(bytes, "\x80\x04", 2);
    for (size_t i = 0; i < N; i++)
        bytes[2 + i] = '(';
    assert_int_equal(refusal_of(bytes, N + 2), RC_REFUSAL_TOO_DEEP);
    for (size_t i = 0; i < N; i++) {
        bytes[2 + i] = ']';
        bytes[2 + N + i] = 'a';
    }
    assert_int_equal(refusal_of(bytes, 2 * N + 2), RC_REFUSAL_TOO_DEEP);
    free(bytes);
    /* the top dict may hold 63 lists in each other: 64 levels */
    for (int n_lists = 62; n_lists <= 65; n_lists++) {
        unsigned char one[512];
        size_t n = sizeof EMPTY_SNAP - 1;
        memcpy(one, EMPTY_SNAP, n);
        memcpy(one + n, "X\x01\0\0\0x", 6);
        n += 6;
        for (int i = 0; i < n_lists; i++)
            one[n++] = ']';
        for (int i = 1; i < n_lists; i++)
            one[n++] = 'a';
        memcpy(one + n, "u.", 2);
        /* the innermost list is empty: it adds no level of its own */
        assert_int_equal(refusal_of(one, n + 2),
                         n_lists <= 64 ? RC_REFUSAL_NONE : RC_REFUSAL_TOO_DEEP);
    }
}

static void every_cut_of_a_good_file_is_refused(void **state)
{
    (void)state;
    static const char good[] =
        EVENT("X\x06\0\0\0actionX\x05\0\0\0allocX\x04\0\0\0sizeK\x01X\x04\0\0\0addrK\x01"
              "X\x06\0\0\0frames](}(X\x04\0\0\0nameX\x01\0\0\0fX\x08\0\0\0filenameX\x01\0\0\0g"
              "X\x04\0\0\0lineK\x01ue");
    assert_int_equal(refusal_of((const unsigned char *)good, sizeof good - 1), RC_REFUSAL_NONE);
    for (size_t n = 0; n < sizeof good - 1; n++)
        assert_int_not_equal(refusal_of((const unsigned char *)good, n), RC_REFUSAL_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_file_is_refused_for_its_reason),
        cmocka_unit_test(odd_but_valid_files_are_read),
        cmocka_unit_test(depth_is_limited_at_64),
        cmocka_unit_test(every_cut_of_a_good_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
