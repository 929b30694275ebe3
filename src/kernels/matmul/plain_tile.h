/* Portable register tile: one k per lane; lanes have the type of the elements. */

enum { ROWS = TILE_ROWS, GROUP = 1, A_WORDS = 1, A_AS_WORDS = 0, B_AS_WORDS = 0 };

INLINE void encode_a(const element *e, lane *word)
{
    word[0] = e[0];
}

INLINE void encode_b(const element *e, lane *word)
{
    word[0] = e[0];
}

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
    sum[0] += a[0] * b[0];
}
