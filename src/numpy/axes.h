/* The order of axes in which NumPy's iterator goes through them. */
#ifndef NUMC_AXES_H
#define NUMC_AXES_H

/* Compares an axis with a later one as NumPy's iterator does: -1 keep their C order, 1 swap them,
 * 0 undecided. */
typedef int axes_turn(const void *context, int axis, int later);

/* Sorts axes 0 to `axes` - 1 into `order`, the fastest first. */
void axes_sort(int axes, int order[], axes_turn *turn, const void *context);

#endif
