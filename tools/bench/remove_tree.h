/* tools/bench/remove_tree.h -- a directory and all that is in it goes. */
#ifndef TOOLS_BENCH_REMOVE_TREE_H
#define TOOLS_BENCH_REMOVE_TREE_H

/* As far as it can be: what stays is only litter. */
void remove_tree(const char *directory);

#endif
