/* Rows along k become columns of a panel: words of 4 or 8 bytes, 4 x 4 of them at a time. */

#define TRANSPOSE_4X4(word)                                                                        \
    typedef word four __attribute__((vector_size(4 * sizeof(word))));                              \
    four a, b, c, d;                                                                               \
    memcpy(&a, from, sizeof a);                                                                    \
    memcpy(&b, from + step, sizeof b);                                                             \
    memcpy(&c, from + 2 * step, sizeof c);                                                         \
    memcpy(&d, from + 3 * step, sizeof d);                                                         \
    const four ab_even = __builtin_shufflevector(a, b, 0, 4, 2, 6);                                \
    const four ab_odd = __builtin_shufflevector(a, b, 1, 5, 3, 7);                                 \
    const four cd_even = __builtin_shufflevector(c, d, 0, 4, 2, 6);                                \
    const four cd_odd = __builtin_shufflevector(c, d, 1, 5, 3, 7);                                 \
    a = __builtin_shufflevector(ab_even, cd_even, 0, 1, 4, 5);                                     \
    b = __builtin_shufflevector(ab_odd, cd_odd, 0, 1, 4, 5);                                       \
    c = __builtin_shufflevector(ab_even, cd_even, 2, 3, 6, 7);                                     \
    d = __builtin_shufflevector(ab_odd, cd_odd, 2, 3, 6, 7);                                       \
    memcpy(to, &a, sizeof a);                                                                      \
    memcpy(to + to_step, &b, sizeof b);                                                            \
    memcpy(to + 2 * to_step, &c, sizeof c);                                                        \
    memcpy(to + 3 * to_step, &d, sizeof d)

INLINE void transpose_4x4_uint32(const char *from, ptrdiff_t step, char *to, ptrdiff_t to_step)
{
    TRANSPOSE_4X4(uint32_t);
}

INLINE void transpose_4x4_uint64(const char *from, ptrdiff_t step, char *to, ptrdiff_t to_step)
{
    TRANSPOSE_4X4(uint64_t);
}

/* Element w of row u, of `size` bytes, comes to to[w][u]: `units` units of which `count` exist, the
 * rest being copies of the last. */
INLINE void transpose(const char *from, ptrdiff_t unit_step, ptrdiff_t count, ptrdiff_t units,
                      ptrdiff_t words, char *to, ptrdiff_t size)
{
    const ptrdiff_t in_squares = (count < units ? count : units) / 4 * 4;
    for (ptrdiff_t unit = 0; unit < in_squares; unit += 4) {
        const char *line = from + unit * unit_step;
        ptrdiff_t word = 0;
        for (; word + 4 <= words; word += 4) {
            (size == 4 ? transpose_4x4_uint32 : transpose_4x4_uint64)(
                line + word * size, unit_step, to + (word * units + unit) * size, units * size);
        }
        for (; word < words; word++) {
            for (int i = 0; i < 4; i++) {
                memcpy(to + (word * units + unit + i) * size, line + i * unit_step + word * size,
                       (size_t)size);
            }
        }
    }
    for (ptrdiff_t unit = in_squares; unit < units; unit++) {
        const char *line = from + (unit < count ? unit : count - 1) * unit_step;
        for (ptrdiff_t word = 0; word < words; word++) {
            memcpy(to + (word * units + unit) * size, line + word * size, (size_t)size);
        }
    }
}
