/* Adds lines in pairs, by their index. */
#ifndef NUMC_SUM_TREE_H
#define NUMC_SUM_TREE_H

#include "sum_line.h"

/* Sums of 2^k neighbouring leaves, of which there is one for each bit k of count. */
struct tree {
    uint64_t count;
    line of[40];
};

INLINE void push(struct tree *tree, line sum, int level)
{
    const uint64_t count = tree->count;
    tree->count = count + ((uint64_t)1 << level);
    while (count >> level & 1) {
        sum = plus(tree->of[level], sum);
        level++;
    }
    tree->of[level] = sum;
}

INLINE line total(const struct tree *tree)
{
    int level = __builtin_ctzll(tree->count);
    line sum = tree->of[level];
    for (level++; tree->count >> level != 0; level++) {
        if (tree->count >> level & 1) {
            sum = plus(tree->of[level], sum);
        }
    }
    return sum;
}

#endif
