/* The micro-kernel: all sums of a register tile stay in registers. What the file that includes it defines:
 *   element, lane, lanes    the dtype; the type of a lane; a vector of them, TILE_BYTES long
 *   sum_element             element of a tile in memory, as wide as a lane or narrower
 *   ROWS, VECTORS           rows of the tile; its width in vectors
 *   GROUP                   consecutive k that are packed together
 *   A_WORDS, B_WORDS        lanes that hold a group of one row of a, of one column of b
 *   SUMS                    accumulators of each vector of the tile
 *   STEPS                   steps in which a group is added; each takes 1 / STEPS of its words
 *   add_products()          adds the products of one step's words a and b to the accumulators
 *   total()                 combines the accumulators; the low bits of the lanes are the result
 *   IN_ORDER                1: accumulators start from the sums in memory, which keeps the order of k;
 *                           0: they are added to these at the end */

enum { COLUMNS = VECTORS * (TILE_BYTES / sizeof(lane)) };

typedef sum_element totals
    __attribute__((vector_size(TILE_BYTES / sizeof(lane) * sizeof(sum_element))));

static void compute_tile(const char *a, const char *b, ptrdiff_t groups, char *c, ptrdiff_t c_row,
                         bool accumulate)
{
    lanes sum[ROWS][VECTORS][SUMS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
#pragma GCC unroll 2
            for (int s = 0; s < SUMS; s++) {
                sum[r][v][s] = (lanes){0};
            }
            if (IN_ORDER && accumulate) {
                memcpy(&sum[r][v][0], c + r * c_row + v * (ptrdiff_t)sizeof(totals),
                       sizeof(totals));
            }
        }
    }
    /* Unroll by 2 where a group is one word: more would spill. */
    enum { groups_at_once = B_WORDS == 1 ? 2 : 1 };
#pragma GCC unroll groups_at_once
    for (ptrdiff_t group = 0; group < groups; group++) {
#pragma GCC unroll 4
        for (int step = 0; step < STEPS; step++) {
            const lane *rows = (const lane *)a + step * (A_WORDS / STEPS) * ROWS;
            const char *columns = b + step * (B_WORDS / STEPS) * VECTORS * TILE_BYTES;
            lanes column[VECTORS][B_WORDS / STEPS];
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
#pragma GCC unroll 4
                for (int w = 0; w < B_WORDS / STEPS; w++) {
                    memcpy(&column[v][w], columns + (w * VECTORS + v) * TILE_BYTES, TILE_BYTES);
                }
            }
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; r++) {
                lanes row[A_WORDS / STEPS];
#pragma GCC unroll 4
                for (int w = 0; w < A_WORDS / STEPS; w++) {
                    row[w] = rows[w * ROWS + r] - (lanes){0};
                }
#pragma GCC unroll 4
                for (int v = 0; v < VECTORS; v++) {
                    add_products(step, sum[r][v], row, column[v]);
                }
            }
        }
        a += ROWS * A_WORDS * sizeof(lane);
        b += VECTORS * B_WORDS * TILE_BYTES;
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            char *to = c + r * c_row + v * (ptrdiff_t)sizeof(totals);
            totals elements = __builtin_convertvector(total(sum[r][v]), totals);
            if (!IN_ORDER && accumulate) {
                totals before;
                memcpy(&before, to, sizeof before);
                elements += before;
            }
            memcpy(to, &elements, sizeof elements);
        }
    }
}
