/* Winograd's inner product, a0 b0 + a1 b1 = (a0 + b1) (a1 + b0) - a0 a1 - b0 b1, halves the multiplications
 * of two k. The correction -(a0 a1 + b0 b1) is summed while packing, see pack_template.h. */

enum { GROUP = 2, A_WORDS = 2, A_AS_WORDS = 0, B_AS_WORDS = 0, WINOGRAD = 1 };

INLINE void encode_a(const element *e, lane *word)
{
    word[0] = e[0];
    word[1] = e[1];
}

INLINE void encode_b(const element *e, lane *word)
{
    word[0] = e[1];
    word[1] = e[0];
}
