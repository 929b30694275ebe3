/* Sums of the elements of one inner call in NumPy's order: halves, down to leaves of at most 128 parts
 * with eight running sums. */
#ifndef NUMC_SUM_PAIRWISE_H
#define NUMC_SUM_PAIRWISE_H

#include "kernels/sizes.h"
#include "sum_line.h"

enum {
    GATHERED_PARTS = 4 * REDUCTION_LEAF_PARTS,
    /* Additions of floats in one leaf would wait for each other. */
    PAIRS_LEAVES = sizeof(accumulator) == 4,
    AHEAD_BYTES = 512, /* prefetched, from memory: Zen 1 takes 1.1 times as long without */
};

INLINE sum load_sum(const char *from)
{
    sum result;
    for (int i = 0; i < PARTS; i++) {
        result.part[i] = load_part(from + i * (ptrdiff_t)sizeof(stored));
    }
    return result;
}

/* Adds fewer parts than there are running sums, one by one. */
INLINE sum sum_rest(sum result, const char *data, ptrdiff_t parts)
{
    for (ptrdiff_t i = 0; i < parts; i += PARTS) {
        result = plus_sum(result, load_sum(data + i * (ptrdiff_t)sizeof(stored)));
    }
    return result;
}

INLINE line sum_lines(line result, const char *data, ptrdiff_t lines, bool from_memory)
{
    const char *const end = data + lines * LINE_STORED_BYTES;
#pragma GCC unroll 8
    for (; data < end; data += LINE_STORED_BYTES) {
        if (from_memory) {
            __builtin_prefetch(data + AHEAD_BYTES);
        }
        result = plus(result, load(data));
    }
    return result;
}

INLINE sum sum_leaf(const char *data, ptrdiff_t parts, bool from_memory)
{
    if (parts < SUMS) {
        return sum_rest(load_sum(data), data + PARTS * sizeof(stored), parts - PARTS);
    }
    const char *const second = data + LINE_STORED_BYTES;
    const ptrdiff_t more = parts / SUMS - 1;
    const line result = from_memory ? sum_lines(load(data), second, more, true)
                                    : sum_lines(load(data), second, more, false);
    return sum_rest(fold(result), data + parts / SUMS * LINE_STORED_BYTES, parts % SUMS);
}

/* Leaves are added in the order of addresses, which hardware prefetchers follow best; the processor
 * overlaps the latencies of several. C leaves it open which operand of a call is computed first: each half is a
 * statement. */
NOINLINE sum sum_contiguous(const char *data, ptrdiff_t parts, bool from_memory)
{
    if (parts <= REDUCTION_LEAF_PARTS) {
        return sum_leaf(data, parts, from_memory);
    }
    const ptrdiff_t half = reduction_half(parts);
    const char *const second = data + half * (ptrdiff_t)sizeof(stored);
    if (parts - half <= REDUCTION_LEAF_PARTS) {
        const sum first = sum_leaf(data, half, from_memory);
        return plus_sum(first, sum_leaf(second, parts - half, from_memory));
    }
    const sum first = sum_contiguous(data, half, from_memory);
    return plus_sum(first, sum_contiguous(second, parts - half, from_memory));
}

#if PARTS == 2
typedef accumulator pair __attribute__((vector_size(2 * sizeof(accumulator))));

INLINE pair load_pair(const char *from)
{
    pair loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

/* The four running sums of a leaf's strided complex elements. */
typedef struct {
    pair a, b, c, d;
} four;

INLINE four load_four(const char *data, ptrdiff_t step)
{
    return (four){load_pair(data), load_pair(data + step), load_pair(data + 2 * step),
                  load_pair(data + 3 * step)};
}

INLINE four plus_four(four x, four y)
{
    return (four){x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
}

/* Adds what remains of a leaf. */
INLINE pair finish_leaf(four x, const char *data, ptrdiff_t step, ptrdiff_t n)
{
    for (; n >= 4; n -= 4, data += 4 * step) {
        x = plus_four(x, load_four(data, step));
    }
    pair all = (x.a + x.b) + (x.c + x.d);
    for (; n > 0; n--, data += step) {
        all += load_pair(data);
    }
    return all;
}

/* Two leaves at a time, of n and `more` elements. */
INLINE pair sum_two_leaves(const char *data, ptrdiff_t step, ptrdiff_t n, ptrdiff_t more)
{
    const char *second = data + n * step;
    four x = load_four(data, step), y = load_four(second, step);
    data += 4 * step, second += 4 * step;
    const ptrdiff_t next = 6 * n * step; /* hardware does not follow both */
    for (ptrdiff_t left = n - 4; left > 0; left -= 4, data += 4 * step, second += 4 * step) {
        __builtin_prefetch(data + next);
        __builtin_prefetch(second + next);
        x = plus_four(x, load_four(data, step));
        y = plus_four(y, load_four(second, step));
    }
    return (x.a + x.b) + (x.c + x.d) + finish_leaf(y, second, step, more - n);
}

/* Pairs are returned in a register, sums in two. */
NOINLINE pair sum_strided_pairs(const char *data, ptrdiff_t step, ptrdiff_t n, bool pairs_leaves)
{
    if (n * PARTS <= REDUCTION_LEAF_PARTS) {
        return finish_leaf(load_four(data, step), data + 4 * step, step, n - 4);
    }
    const ptrdiff_t half = reduction_half(n * PARTS) / PARTS;
    if (pairs_leaves && (n - half) * PARTS <= REDUCTION_LEAF_PARTS) {
        return sum_two_leaves(data, step, half, n - half);
    }
    const pair first = sum_strided_pairs(data, step, half, pairs_leaves);
    return first + sum_strided_pairs(data + half * step, step, n - half, pairs_leaves);
}

INLINE sum sum_strided(const char *data, ptrdiff_t step, ptrdiff_t n, bool from_memory)
{
    const pair all = sum_strided_pairs(data, step, n, PAIRS_LEAVES && !from_memory);
    return (sum){{all[0], all[1]}};
}
#else
/* Gathers strided elements, in the order of memory. */
SCALAR static void gather(const char *data, ptrdiff_t step, ptrdiff_t n, stored *gathered)
{
#pragma GCC unroll 4
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(gathered + i, data, sizeof *gathered);
        data += step;
    }
}

/* Descending elements are added as they lie. The running sums are in descending order then, which fold() turns into
 * the same sum: it adds neighbours, then pairs of them, then halves. */
INLINE sum sum_descending_leaf(const char *data, ptrdiff_t n)
{
    const char *lowest = data + sizeof(stored) - LINE_STORED_BYTES;
    line lines = load(lowest);
#pragma GCC unroll 4
    for (n -= SUMS; n >= SUMS; n -= SUMS) {
        lowest -= LINE_STORED_BYTES;
        lines = plus(lines, load(lowest));
    }
    sum result = fold(lines);
    for (; n > 0; n--) {
        lowest -= sizeof(stored);
        result.part[0] += load_part(lowest);
    }
    return result;
}

/* Eight running sums of a leaf's strided elements in scalar registers: filling vectors costs more. Hardware does not
 * look far enough ahead: Zen 1 took 1.3 times as long from memory, an Ice Lake 1.1 times from its second-level cache. */
enum { AHEAD = 512 / sizeof(stored) };
SCALAR static sum sum_strided_leaf(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    const ptrdiff_t second = step, third = 2 * step, fourth = 3 * step;
    const ptrdiff_t ahead = AHEAD * step;
    const char *half = data + 4 * step;
    accumulator a = load_part(data), b = load_part(data + second), c = load_part(data + third),
                d = load_part(data + fourth);
    accumulator e = load_part(half), f = load_part(half + second), g = load_part(half + third),
                h = load_part(half + fourth);
    for (n -= SUMS; n >= SUMS; n -= SUMS) {
        data += SUMS * step;
        half += SUMS * step;
        __builtin_prefetch(data + ahead);
        a += load_part(data), b += load_part(data + second), c += load_part(data + third);
        d += load_part(data + fourth);
        e += load_part(half), f += load_part(half + second), g += load_part(half + third);
        h += load_part(half + fourth);
    }
    sum result = {{((a + b) + (c + d)) + ((e + f) + (g + h))}};
    for (data += SUMS * step; n > 0; n--) {
        result.part[0] += load_part(data);
        data += step;
    }
    return result;
}

/* Not inlined: else each level of the recursion that calls this has room for the elements. */
NOINLINE sum sum_gathered(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    _Alignas(VECTOR_BYTES) stored gathered[GATHERED_PARTS];
    gather(data, step, n, gathered);
    return sum_contiguous((const char *)gathered, n, false);
}

NOINLINE sum sum_strided_halves(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    const bool is_descending = step == -(ptrdiff_t)sizeof(stored);
    const bool is_gathered = sizeof(stored) < sizeof(accumulator) && !is_descending;
    if (is_gathered && n <= GATHERED_PARTS) {
        return sum_gathered(data, step, n);
    }
    if (!is_gathered && n <= REDUCTION_LEAF_PARTS) {
        return is_descending ? sum_descending_leaf(data, n) : sum_strided_leaf(data, step, n);
    }
    const ptrdiff_t half = reduction_half(n);
    const char *const second = data + half * step;
    if (!is_gathered && !is_descending && n - half <= REDUCTION_LEAF_PARTS) {
        const sum first = sum_strided_leaf(data, step, half);
        return plus_sum(first, sum_strided_leaf(second, step, n - half));
    }
    const sum first = sum_strided_halves(data, step, half);
    return plus_sum(first, sum_strided_halves(second, step, n - half));
}

/* In the order of addresses. */
INLINE sum sum_strided(const char *data, ptrdiff_t step, ptrdiff_t n, bool from_memory)
{
    (void)from_memory;
    return sum_strided_halves(data, step, n);
}
#endif

static void reduce_each(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                        ptrdiff_t n, ptrdiff_t next, ptrdiff_t count, bool from_memory, void *sums)
{
    (void)kernel;
    sum *result = sums;
    const ptrdiff_t parts = n * PARTS;
    const bool is_contiguous = step == PARTS * (ptrdiff_t)sizeof(stored);
    for (ptrdiff_t k = 0; k < count; k++) {
        const char *first = data + k * next;
        if (parts < SUMS) {
            sum few = load_sum(first);
            for (ptrdiff_t i = 1; i < n; i++) {
                few = plus_sum(few, load_sum(first + i * step));
            }
            result[k] = few;
        } else if (!is_contiguous) {
            result[k] = sum_strided(first, step, n, from_memory);
        } else {
            result[k] = sum_contiguous(first, parts, from_memory);
        }
    }
}

#endif
