/* block.h — how operands are stored in the rows of a layer: block.c; builder.c stores them. */
#ifndef RC_GRAPH_BLOCK_H
#define RC_GRAPH_BLOCK_H

#include <recompute/graph.h>

enum { RC_ROW_ABSENT = -1, RC_ROW_INPUT = -2, RC_ROW_FIRST = -3 };

/* Index of the tensor that the first layer of a block begins with; -1 where none hands one on. */
int rc_block_input(const rc_graph *graph, int block);

/* Sets the firsts of every block, and the counts of the graph, from the counts of the blocks. */
void rc_block_count(rc_graph *graph);

#endif
