/* How many products are summed before the sum is added to c. The error of a sum grows with its length;
 * with these it is no larger than OpenBLAS's, which sums in blocks as well. One sum over all of k is up
 * to nine times less exact, and a tenth faster where the product takes longer than the operands' way. */
#ifndef NUMC_SUMS_H
#define NUMC_SUMS_H

enum { LONGEST_SINGLE = 384, LONGEST_DOUBLE = 352 };
enum { LONGEST_COMPLEX_SINGLE = 80, LONGEST_COMPLEX_DOUBLE = 64 };

#endif
