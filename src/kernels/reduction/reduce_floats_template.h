/* Sums of one float dtype; included once per dtype. Parameters:
 *   DTYPE   suffix of the names, KIND 'f', or 'c' with PARTS 2: a real and an imaginary part
 *   STORED  the C type of a part in memory, SUM the one it is added in, BITS unsigned of that size
 *   LOAD    the vector of SUM made of the parts at an address; WIDEN and NARROW convert one part
 *   ZERO    a stored negative zero: adding it changes nothing, and raises nothing */
#define vector JOIN(sum_vector, DTYPE)
#define lanes JOIN(sum_lanes, DTYPE)
#define tree JOIN(sum_tree, DTYPE)
#define load JOIN(sum_load, DTYPE)
#define load_vector JOIN(sum_load_vector, DTYPE)
#define store_vector JOIN(sum_store_vector, DTYPE)
#define load_sums JOIN(sum_load_sums, DTYPE)
#define store_lanes JOIN(sum_store_lanes, DTYPE)
#define load_some JOIN(sum_load_some, DTYPE)
#define plus JOIN(sum_plus, DTYPE)
#define push JOIN(sum_push, DTYPE)
#define total JOIN(sum_total, DTYPE)
#define sum_short JOIN(sum_short, DTYPE)
#define sum_strided_piece JOIN(sum_strided_piece, DTYPE)
#define sum_any JOIN(sum_any, DTYPE)
#define sum_eight_lanes JOIN(sum_eight_lanes, DTYPE)
#define bring_together JOIN(sum_bring_together, DTYPE)
#define add_strided_rows JOIN(sum_add_strided_rows, DTYPE)
#define add_some_rows JOIN(sum_add_some_rows, DTYPE)
#define load_last JOIN(sum_load_last, DTYPE)
#define keep JOIN(sum_keep, DTYPE)
#define keep_vector JOIN(sum_keep_vector, DTYPE)
#define bit_vector JOIN(sum_bit_vector, DTYPE)
#define sum_piece JOIN(sum_piece, DTYPE)
#define sum_group JOIN(sum_group, DTYPE)
#define sum_rest JOIN(sum_rest, DTYPE)
#define sum_contiguous JOIN(sum_contiguous, DTYPE)
#define sum_strided JOIN(sum_strided, DTYPE)
#define fold_lanes JOIN(sum_fold_lanes, DTYPE)
#define sum_elements JOIN(sum_elements, DTYPE)
#define sum_each JOIN(sum_each, DTYPE)
#define add_rows JOIN(sum_add_rows, DTYPE)
#define sum_row_piece JOIN(sum_row_piece, DTYPE)
#define sum_columns JOIN(sum_columns, DTYPE)
#define sum_rows JOIN(sum_rows, DTYPE)
#define add_sums JOIN(add_sums, DTYPE)
#define fold_sum JOIN(fold_sum, DTYPE)
#define store_sums JOIN(store_sums, DTYPE)
#define PART(data) WIDEN(*(const STORED *)(data))
#define LANES JOIN(SUM_LANES, DTYPE)
#define PIECE JOIN(SUM_PIECE, DTYPE)
#define PIECE_BYTES JOIN(SUM_PIECE_BYTES, DTYPE)
#define LANES_STORED JOIN(SUM_LANES_STORED, DTYPE)
#define GROUP_PIECES JOIN(SUM_GROUP_PIECES, DTYPE)
#define ROW_PARTS JOIN(SUM_ROW_PARTS, DTYPE)

enum {
    LANES = ACCUMULATORS_BYTES / sizeof(SUM),
    LANES_STORED = LANES * sizeof(STORED),
    PIECE = PIECE_TURNS * LANES, /* parts that are added without folding lanes */
    PIECE_BYTES = PIECE_TURNS * LANES_STORED,
    GROUP_PIECES = 16,
    ROW_PARTS = ROW_BYTES / sizeof(SUM),
};

typedef SUM vector __attribute__((vector_size(VECTOR_BYTES)));
typedef BITS bit_vector __attribute__((vector_size(VECTOR_BYTES)));
/* What the mask selects, elsewhere negative zero. */
INLINE vector keep_vector(vector x, vector mask)
{
    const BITS zero = (BITS)1 << (8 * sizeof(BITS) - 1);
    return (vector)(((bit_vector)x & (bit_vector)mask) | (zero & ~(bit_vector)mask));
}

/* By vectors: a copy of all lanes would be one by halves of vectors, on which the next load of a whole
 * one waits. */
INLINE vector load_vector(const void *from)
{
    vector loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

INLINE void store_vector(SUM *to, vector sum)
{
    memcpy(to, &sum, sizeof sum);
}

/* Not an array: compilers would keep it in memory. */
#if LANE_VECTORS == 2
typedef struct {
    vector a, b;
} lanes;

INLINE lanes load(const char *from)
{
    return (lanes){LOAD(from), LOAD(from + LANES_STORED / 2)};
}

INLINE lanes plus(lanes x, lanes y)
{
    return (lanes){x.a + y.a, x.b + y.b};
}

INLINE lanes keep(lanes x, lanes mask)
{
    return (lanes){keep_vector(x.a, mask.a), keep_vector(x.b, mask.b)};
}

INLINE lanes load_sums(const void *from)
{
    const SUM *sum = from;
    return (lanes){load_vector(sum), load_vector(sum + LANES / 2)};
}

INLINE void store_lanes(SUM *to, lanes sum)
{
    store_vector(to, sum.a);
    store_vector(to + LANES / 2, sum.b);
}
#else
typedef struct {
    vector a, b, c, d;
} lanes;

INLINE lanes load(const char *from)
{
    return (lanes){LOAD(from), LOAD(from + LANES_STORED / 4), LOAD(from + LANES_STORED / 2),
                   LOAD(from + LANES_STORED / 4 * 3)};
}

INLINE lanes plus(lanes x, lanes y)
{
    return (lanes){x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
}

INLINE lanes keep(lanes x, lanes mask)
{
    return (lanes){keep_vector(x.a, mask.a), keep_vector(x.b, mask.b), keep_vector(x.c, mask.c),
                   keep_vector(x.d, mask.d)};
}

INLINE lanes load_sums(const void *from)
{
    const SUM *sum = from;
    return (lanes){load_vector(sum), load_vector(sum + LANES / 4), load_vector(sum + LANES / 2),
                   load_vector(sum + LANES / 4 * 3)};
}

INLINE void store_lanes(SUM *to, lanes sum)
{
    store_vector(to, sum.a);
    store_vector(to + LANES / 4, sum.b);
    store_vector(to + LANES / 2, sum.c);
    store_vector(to + LANES / 4 * 3, sum.d);
}
#endif

/* The first of them, and zeros. */
INLINE lanes load_some(const char *from, ptrdiff_t parts)
{
    STORED padded[LANES];
    for (int i = 0; i < LANES; i++) {
        padded[i] = ZERO;
    }
    for (ptrdiff_t i = 0; i < parts; i++) {
        padded[i] = ((const STORED *)from)[i];
    }
    return load((const char *)padded);
}

/* The last of those before `end`, and zeros in front. */
INLINE lanes load_last(const char *end, ptrdiff_t parts)
{
    static const BITS mask[2 * LANES] = {[LANES... 2 * LANES - 1] = (BITS)-1};
    const lanes loaded = load(end - LANES_STORED), kept = load_sums(mask + parts);
    return keep(loaded, kept);
}

/* Sums of 2^k neighbouring leaves, of which there is one for each bit k of count. */
struct tree {
    uint64_t count;
    lanes of[40];
};

INLINE void push(struct tree *tree, lanes sum, int level)
{
    const uint64_t count = tree->count;
    tree->count = count + ((uint64_t)1 << level);
    while (count >> level & 1) {
        sum = plus(tree->of[level], sum);
        level++;
    }
    tree->of[level] = sum;
}

INLINE lanes total(const struct tree *tree)
{
    int level = __builtin_ctzll(tree->count);
    lanes sum = tree->of[level];
    for (level++; tree->count >> level != 0; level++) {
        if (tree->count >> level & 1) {
            sum = plus(tree->of[level], sum);
        }
    }
    return sum;
}

INLINE lanes sum_piece(const char *data)
{
    lanes sum = load(data);
    for (int i = 1; i < PIECE_TURNS; i++) {
        sum = plus(sum, load(data + i * LANES_STORED));
    }
    return sum;
}

/* In the order of memory: processors fetch ahead of one stream of addresses best. */
NOINLINE lanes sum_group(const char *data)
{
    lanes leaf[GROUP_PIECES];
    for (int i = 0; i < GROUP_PIECES; i++) {
        leaf[i] = sum_piece(data + i * PIECE_BYTES);
    }
    for (int apart = 1; apart < GROUP_PIECES; apart *= 2) {
        for (int i = 0; i < GROUP_PIECES; i += 2 * apart) {
            leaf[i] = plus(leaf[i], leaf[i + apart]);
        }
    }
    return leaf[0];
}

/* The sum of fewer parts than there are lanes. */
INLINE SUM sum_short(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    SUM sum = PART(data);
    if (n < 4) {
        for (ptrdiff_t k = 1; k < n; k++) {
            sum += PART(data + k * step);
        }
        return sum;
    }
    SUM a = PART(data + step), b = PART(data + 2 * step), c = PART(data + 3 * step);
    for (n -= 4, data += 4 * step; n >= 4; n -= 4, data += 4 * step) {
        sum += PART(data);
        a += PART(data + step);
        b += PART(data + 2 * step);
        c += PART(data + 3 * step);
    }
    sum += n > 0 ? PART(data) : (SUM)-0.0;
    a += n > 1 ? PART(data + step) : (SUM)-0.0;
    b += n > 2 ? PART(data + 2 * step) : (SUM)-0.0;
    return (sum + b) + (a + c);
}

/* Less than a leaf. */
INLINE lanes sum_rest(const char *data, ptrdiff_t parts)
{
    if (parts < LANES) {
        return load_some(data, parts);
    }
    const char *const end = data + parts * (ptrdiff_t)sizeof(STORED);
    lanes sum = load(data);
    for (parts -= LANES, data += LANES_STORED; parts >= LANES; parts -= LANES) {
        sum = plus(sum, load(data));
        data += LANES_STORED;
    }
    return parts > 0 ? plus(sum, load_last(end, parts)) : sum;
}

INLINE lanes sum_contiguous(const char *data, ptrdiff_t parts)
{
    if (parts < PIECE) {
        return sum_rest(data, parts);
    }
    struct tree tree;
    tree.count = 0;
    for (; parts >= GROUP_PIECES * PIECE; parts -= GROUP_PIECES * PIECE) {
        push(&tree, sum_group(data), __builtin_ctz(GROUP_PIECES));
        data += GROUP_PIECES * PIECE_BYTES;
    }
    for (; parts >= PIECE; parts -= PIECE) {
        push(&tree, sum_piece(data), 0);
        data += PIECE_BYTES;
    }
    if (parts > 0) {
        push(&tree, sum_rest(data, parts), 0);
    }
    return total(&tree);
}

/* Elements from far apart come next to each other, in the order of memory. */
SCALAR static void bring_together(const char *data, ptrdiff_t step, ptrdiff_t n, STORED *near)
{
#pragma GCC unroll 4
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(near + i * PARTS, data, PARTS * sizeof *near);
        data += step;
    }
}

/* Eight of the lanes of sum_piece, in registers. As vectors they would have to be put together. */
SCALAR static void sum_eight_lanes(const char *data, ptrdiff_t step, SUM *sums)
{
    const ptrdiff_t second = step, third = 2 * step, fourth = 3 * step;
    const char *half = data + 4 * step;
    SUM a = PART(data), b = PART(data + second), c = PART(data + third), d = PART(data + fourth);
    SUM e = PART(half), f = PART(half + second), g = PART(half + third), h = PART(half + fourth);
    for (int turn = 1; turn < PIECE_TURNS; turn++) {
        data += LANES * step;
        half += LANES * step;
        a += PART(data), b += PART(data + second), c += PART(data + third);
        d += PART(data + fourth);
        e += PART(half), f += PART(half + second), g += PART(half + third);
        h += PART(half + fourth);
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
    sums[4] = e, sums[5] = f, sums[6] = g, sums[7] = h;
}

/* As sum_piece, or as sum_rest if there are fewer elements. */
INLINE lanes sum_strided_piece(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    /* One pass over the leaf for each eight lanes: with several, what is far comes out of order. */
    const ptrdiff_t far = LINE_BYTES * 8 / LANES;
    const bool is_near = step < far && step > -far;
    if (PARTS == 1 && sizeof(STORED) == sizeof(SUM) && is_near && n == PIECE) {
        SUM sums[LANES];
        for (int lane = 0; lane < LANES; lane += 8) {
            sum_eight_lanes(data + lane * step, step, sums + lane);
        }
        return load_sums(sums);
    }
    STORED near[PIECE];
    bring_together(data, step, n, near);
    return n * PARTS == PIECE ? sum_piece((const char *)near)
                              : sum_rest((const char *)near, n * PARTS);
}

INLINE lanes sum_strided(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    struct tree tree;
    tree.count = 0;
    for (; n > 0; n -= PIECE / PARTS) {
        push(&tree, sum_strided_piece(data, step, n < PIECE / PARTS ? n : PIECE / PARTS), 0);
        data += step * (PIECE / PARTS);
    }
    return total(&tree);
}

INLINE void fold_lanes(lanes of, SUM sum[PARTS])
{
    SUM lane[LANES];
    store_lanes(lane, of);
    for (int width = LANES / 2; width >= PARTS; width /= 2) {
        for (int i = 0; i < width; i++) {
            lane[i] += lane[i + width];
        }
    }
    memcpy(sum, lane, PARTS * sizeof *sum);
}

NOINLINE lanes sum_any(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    return step == PARTS * (ptrdiff_t)sizeof(STORED) ? sum_contiguous(data, n * PARTS)
                                                     : sum_strided(data, step, n);
}

static void sum_elements(const char *data, ptrdiff_t step, ptrdiff_t n, void *result)
{
    store_lanes(result, sum_any(data, step, n));
}

static void sum_each(const char *data, ptrdiff_t step, ptrdiff_t n, ptrdiff_t next, ptrdiff_t count,
                     void *sums)
{
    SUM *sum = sums;
    for (ptrdiff_t k = 0; k < count && n * PARTS < LANES; k++) {
        for (int part = 0; part < PARTS; part++) {
            const char *first = data + k * next + part * (ptrdiff_t)sizeof(STORED);
            sum[k * PARTS + part] = sum_short(first, step, n);
        }
    }
    for (ptrdiff_t k = 0; k < count && n * PARTS >= LANES; k++) {
        fold_lanes(sum_any(data + k * next, step, n), sum + k * PARTS);
    }
}

static void add_sums(void *into, const void *later, size_t bytes)
{
    SUM *sum = into;
    const SUM *other = later;
    for (size_t i = 0; i < bytes / sizeof *sum; i++) {
        sum[i] += other[i];
    }
}

/* sums = rows, or += rows: `rows` of them, a constant, added in order. */
INLINE void add_rows(const char *data, ptrdiff_t step, int rows, ptrdiff_t parts, SUM *sums,
                     bool first)
{
    ptrdiff_t at = 0;
    for (; at + LANES <= parts; at += LANES) {
        const char *from = data + at * (ptrdiff_t)sizeof(STORED);
        lanes sum = load(from);
        if (!first) {
            sum = plus(load_sums(sums + at), sum);
        }
#pragma GCC unroll 8
        for (int row = 1; row < rows; row++) {
            sum = plus(sum, load(from + row * step));
        }
        store_lanes(sums + at, sum);
    }
    for (; at < parts; at++) {
        const char *from = data + at * (ptrdiff_t)sizeof(STORED);
        SUM sum = first ? PART(from) : sums[at] + PART(from);
        for (int row = 1; row < rows; row++) {
            sum += PART(from + row * step);
        }
        sums[at] = sum;
    }
}

/* Likewise where the elements of a row lie `next` bytes apart. */
SCALAR static void add_strided_rows(const char *data, ptrdiff_t step, ptrdiff_t rows,
                                    ptrdiff_t next, ptrdiff_t parts, SUM *sums, bool first)
{
    for (ptrdiff_t at = 0; at < parts; at += PARTS) {
        const STORED *from = (const STORED *)(data + at / PARTS * next);
        SUM sum = WIDEN(from[0]), other = WIDEN(from[PARTS - 1]);
        if (!first) {
            sum += sums[at];
            other += sums[at + PARTS - 1];
        }
        for (ptrdiff_t row = 1; row < rows; row++) {
            from = (const STORED *)((const char *)from + step);
            sum += WIDEN(from[0]);
            other += WIDEN(from[PARTS - 1]);
        }
        sums[at + PARTS - 1] = other;
        sums[at] = sum;
    }
}

/* 1, SOME_ROWS or MANY_ROWS. */
NOINLINE void add_some_rows(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                            ptrdiff_t parts, SUM *sums, bool first)
{
    if (next != PARTS * (ptrdiff_t)sizeof(STORED)) {
        add_strided_rows(data, step, rows, next, parts, sums, first);
    } else if (rows == MANY_ROWS) {
        add_rows(data, step, MANY_ROWS, parts, sums, first);
    } else if (rows == SOME_ROWS) {
        add_rows(data, step, SOME_ROWS, parts, sums, first);
    } else {
        add_rows(data, step, 1, parts, sums, first);
    }
}

INLINE void sum_row_piece(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                          ptrdiff_t parts, SUM *sums)
{
    const bool one_by_one = next == PARTS * (ptrdiff_t)sizeof(STORED) &&
                            parts * (ptrdiff_t)sizeof(STORED) <= SHORT_ROW_BYTES;
    for (ptrdiff_t row = 0; row < rows;) {
        const ptrdiff_t left = rows - row;
        const ptrdiff_t taken = one_by_one || left < SOME_ROWS ? 1
                                : left < MANY_ROWS             ? SOME_ROWS
                                                               : MANY_ROWS;
        add_some_rows(data + row * step, step, taken, next, parts, sums, row == 0);
        row += taken;
    }
}

/* The tree again, over leaves of rows. */
INLINE void sum_columns(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                        ptrdiff_t parts, SUM *scratch, SUM *sums)
{
    if (rows <= LEAF_ROWS) {
        sum_row_piece(data, step, rows, next, parts, sums);
        return;
    }
    const size_t bytes = (size_t)parts * sizeof *sums;
    const size_t apart = (bytes + LINE_BYTES - 1) / LINE_BYTES * (LINE_BYTES / sizeof *sums);
    unsigned count = 0;
    int level = 0;
    for (ptrdiff_t row = 0; row < rows; row += LEAF_ROWS) {
        const ptrdiff_t left = rows - row;
        level = __builtin_ctz(~count);
        sum_row_piece(data + row * step, step, left < LEAF_ROWS ? left : LEAF_ROWS, next, parts,
                      scratch + (size_t)level * apart);
        for (int below = 0; below < level; below++) {
            add_sums(scratch + (size_t)level * apart, scratch + (size_t)below * apart, bytes);
        }
        count++;
    }
    const int lowest = level;
    for (level++; count >> level != 0; level++) {
        if (count >> level & 1) {
            add_sums(scratch + (size_t)lowest * apart, scratch + (size_t)level * apart, bytes);
        }
    }
    memcpy(sums, scratch + (size_t)lowest * apart, bytes);
}

/* Short rows come one by one, wherever they are: the bits depend on that. */
static void sum_rows(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                     ptrdiff_t columns, bool from_memory, void *scratch, void *sums)
{
    (void)from_memory;
    for (ptrdiff_t at = 0; at < columns * PARTS; at += ROW_PARTS) {
        const ptrdiff_t left = columns * PARTS - at;
        sum_columns(data + at / PARTS * next, step, rows, next, left < ROW_PARTS ? left : ROW_PARTS,
                    scratch, (SUM *)sums + at);
    }
}

static void fold_sum(const void *of, void *sum)
{
    fold_lanes(load_sums(of), sum);
}

static void store_sums(const void *sums, ptrdiff_t n, char *out, ptrdiff_t step, size_t out_size,
                       bool onto)
{
    (void)out_size;
    const SUM *sum = sums;
    if (step == PARTS * (ptrdiff_t)sizeof(STORED) && !onto) {
        for (ptrdiff_t k = 0; k < n * PARTS; k++) {
            ((STORED *)out)[k] = NARROW(sum[k] + 0);
        }
        return;
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        for (int part = 0; part < PARTS; part++) {
            STORED *to = (STORED *)(out + k * step) + part;
            *to = NARROW(sum[k * PARTS + part] + (onto ? WIDEN(*to) : 0));
        }
    }
}

static const struct reduction_kernel JOIN(reduction_add, DTYPE) = {
    .op = "add",
    .kind = KIND,
    .item_size = PARTS * sizeof(STORED),
    .sum_size = PARTS * sizeof(SUM),
    .leaf = PIECE / PARTS,
    .reduce = sum_elements,
    .reduce_each = sum_each,
    .reduce_rows = sum_rows,
    .combine = add_sums,
    .fold = fold_sum,
    .store = store_sums,
};

#undef vector
#undef lanes
#undef tree
#undef load
#undef load_vector
#undef store_vector
#undef load_some
#undef store_lanes
#undef load_sums
#undef plus
#undef push
#undef total
#undef sum_piece
#undef bit_vector
#undef keep_vector
#undef keep
#undef load_last
#undef add_some_rows
#undef add_strided_rows
#undef bring_together
#undef sum_eight_lanes
#undef sum_any
#undef sum_strided_piece
#undef sum_short
#undef sum_group
#undef sum_rest
#undef sum_contiguous
#undef sum_strided
#undef fold_lanes
#undef sum_elements
#undef sum_each
#undef add_rows
#undef sum_row_piece
#undef sum_columns
#undef sum_rows
#undef add_sums
#undef fold_sum
#undef store_sums
#undef LANES
#undef PIECE
#undef PIECE_BYTES
#undef LANES_STORED
#undef GROUP_PIECES
#undef ROW_PARTS
#undef PART
#undef DTYPE
#undef KIND
#undef STORED
#undef SUM
#undef PARTS
#undef LOAD
#undef ZERO
#undef WIDEN
#undef BITS
#undef NARROW
