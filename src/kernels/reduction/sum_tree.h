/* The tree of a sum: leaves are added in pairs, by their index. */
#ifndef NUMC_SUM_TREE_H
#define NUMC_SUM_TREE_H

#include "sum_line.h"

/* A binary counter: bit k of `count` says whether level k holds the sum of 2^k neighbouring leaves. */
struct tree {
    uint64_t count;
    line level_sum[40];
};

INLINE void push(struct tree *tree, line sum, int level)
{
    const uint64_t count = tree->count;
    tree->count = count + ((uint64_t)1 << level);
    while (count >> level & 1) {
        sum = plus(tree->level_sum[level], sum);
        level++;
    }
    tree->level_sum[level] = sum;
}

INLINE line total(const struct tree *tree)
{
    int level = __builtin_ctzll(tree->count);
    line sum = tree->level_sum[level];
    for (level++; tree->count >> level != 0; level++) {
        if (tree->count >> level & 1) {
            sum = plus(tree->level_sum[level], sum);
        }
    }
    return sum;
}

#endif
