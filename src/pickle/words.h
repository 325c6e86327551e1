/* words.h — numbers of the words the snapshot reader knows: string ids 1 to RC_KEY_COUNT-1. */
#ifndef RC_PICKLE_WORDS_H
#define RC_PICKLE_WORDS_H

enum {
    RC_KEY_NONE,
#define RC_WORD(id, text) RC_KEY_##id,
#include "defs/snapshot_words.def"
#undef RC_WORD
    RC_KEY_COUNT
};

#endif
