/* From which size each way of computing a product pays. Reasons and tables are in docs/decisions/0009-matmul.md;
 * `python benchmarks/matmul.py` measures them again. */
#ifndef NUMC_MATMUL_CUTOFFS_H
#define NUMC_MATMUL_CUTOFFS_H

enum {
    /* ---- NumPy's loop or a kernel; _MULS: multiplications, m k n ---- */
    /* Up to here NumPy's loop takes less time than our planning. */
    TINY_MULS = 4 * 4 * 3,
    TINY_VECTOR_MULS = 256, /* the same for a single column */
    /* The same in a stack, of which each product costs a call of the kernel, NumPy's loop one for each result. */
    TINY_STACK_RESULTS = 4,
    TINY_STACK_MULS = 24,
    /* A kernel beats a call of BLAS, whose overhead is fixed, up to here; rows must be whole vectors. */
    SMALL_FLOAT_MULS = 16 * 16 * 16,
    SMALL_FLOAT_SIDE = 32,
    WHOLE_VECTOR_BYTES = 32,
    SHORT_K =
        16, /* up to here c is written more slowly than it is computed, and BLAS goes over it twice */
    SHORT_K_BYTES = 64, /* on many threads BLAS is as fast with a longer one */
    /* Of so many rows of c that are more than one vector, up to two (Zen 4: 0.6 to 0.9 of BLAS's speed above). */
    SHORT_K_MOST_SHORT_ROWS = 32,
    /* Converting halves pays from so many multiplications, packing them from more. */
    TINY_HALF_MULS = 8, /* of few rows or columns, and for one sum */
    SMALL_HALF_MULS = 128,
    /* NumPy breaks off at the first true product; kernels that find several elements in a line pay earlier. */
    SMALL_BOOL_MULS = 24 * 24 * 24,
    SMALL_BOOL_RESULTS = 32,
    SHORT_BOOL_DOT = 16, /* elements up to which bools are looked at in one or two words */
    LONG_BOOL_DOT = 32,  /* from which on they are in vectors */
    /* OpenBLAS stays on the calling thread up to here: above, its threads and ours would multiply. */
    SERIAL_BLAS_MULS = 64 * 64 * 64,
    SERIAL_BLAS_COMPLEX_MULS = 32 * 32 * 32,
    SERIAL_BLAS_VECTOR_MULS = 9000,
    SERIAL_BLAS_COMPLEX_VECTOR_MULS = 4000,
    /* Of floats: up to here its threads gain little, or recent versions have none. */
    SMALL_BLAS_MULS = 100 * 100 * 100,
    SMALL_BLAS_VECTOR_MULS = 460800,

    /* ---- stacks in which one operand is repeated ---- */
    MOST_JOINED_ROWS = 1 << 30, /* BLAS may count in 32 bits */
    JOIN_LEAST_SUMS = 8, /* of integers: a product of so few rows takes longer than its sums */
    JOIN_MOST_ROWS = 16, /* of one product: with more, BLAS reads the repeated operand seldom */
    JOIN_FROM_BYTES = 48 << 10, /* of the repeated operand of floats */
    /* All by `python benchmarks/matmul.py joined --threads 1`. */
    JOIN_NOT_UP_TO_MULS = 2500000, /* of floats, from SMALL_BLAS_MULS on */
    /* Vectors: so many at least, or, with a matrix of at most so many rows on their left, at most so many; */
    JOIN_VECTORS = 8,
    JOIN_FEW_VECTORS = 4,
    JOIN_FEW_VECTORS_MOST_ROWS = 512,
    /* complex ones, if the matrix is not thin, or k is short. */
    JOIN_COMPLEX_VECTORS = 48,
    JOIN_COMPLEX_LEAST_ROWS = 16,
    JOIN_COMPLEX_SHORT_K = 4,
    JOIN_COPY_LEAST_SIDE = 32, /* k and n: a copy is to be read several times */
    JOIN_COPY_MOST_ROWS = 4,   /* of one product */
    JOIN_COPY_LEAST_ROWS = 64, /* of the whole stack */
    JOIN_COPY_LEAST_COMPLEX_ROWS = 16,
    JOIN_COPY_BYTES = 4 << 20, /* at a time */

    /* ---- threads ---- */
    BREAK_EVEN_NS = 40000,     /* twice what a region costs whose workers sleep */
    SPLIT_PRODUCT_NS = 400000, /* a few products this long are split themselves, not their stack */
    BOOL_SPLIT_PRODUCT_ELEMENTS = 1000000, /* the same, in elements of a, b and c */
    EARLY_END_TIMED_NS = 2000, /* products of bools that took so long tell what the others take */

    /* ---- packed or not ---- */
    DIRECT_MULS = 32 * 32 * 32,
    DIRECT_ELEMENT_MULS = 4 * 4 * 4, /* where the unpacked kernel goes element by element */
    THIN_SIDE = 4,                   /* so few rows or columns of integers are not worth packing */
    /* Nor are, of integers, so many of both; of 16 bits or more, three or two times as many of one (`thin`). */
    THIN_MOST_SIDE = 12,
    THIN_MOST_K = 8,
    THIN_NEAR_BYTES = 1 << 20, /* of what rows are read of several times: the second level */
    /* Kernels of large tiles (AMX) pay from here on, at half of their speed where 33 rows take two tiles. */
    LARGE_MULS = 96 * 96 * 96,
    LARGE_SIDE = 32,
    RANGE_SIDE = 256, /* rows or columns of a thin product that one thread takes at a time */

    /* ---- products of floats with few columns (or rows): _ELEMENTS of the matrix that is read once ---- */
    MOST_THIN_COLUMNS = 8, /* floats, of which a complex number is two; above, BLAS is as fast */
    MOST_THIN_COLUMNS_ALONE = 6, /* on one thread: above, AVX-512 tiles of BLAS are full */
    THIN_FEW = 5,                /* more need a longer k */
    THIN_FROM_BYTES = 2 << 20,   /* of the matrix, or of all in a stack */
    THIN_BYTES_PER_NS = 12,
    THIN_LEAST_K = 64,
    THIN_LEAST_PACKED_FOR = 16, /* rows that read the packed columns again */
    THIN_LEAST_ROWS = 256,      /* where rows are contiguous: of one unit */
    THIN_UNIT_ELEMENTS = 65536,
    THIN_SLAB_ROWS = 16,    /* so many times what a unit has at least are enough for threads */
    THIN_WIDE_ROWS = 16384, /* so long ones are cut, shorter ones are whole in slabs of k */
    THIN_SLAB_ELEMENTS = 65536,
    THIN_MOST_SLABS = 64,
    THIN_SLABS_BYTES = 8 << 20, /* of the sums of all slabs */
    THIN_ADDED_FLOATS =
        2048, /* of a slab, which one thread adds to those of the others at a time */
    THIN_SUMS_BYTES = 32 << 10, /* of sums along rows, of up to eight columns */
    /* What is added one after the other: the error grows with its root. */
    THIN_SUM_K = 256,            /* where sums run along rows */
    THIN_LANE_K = 128,           /* in each lane of a dot */
    THIN_PACKED_BYTES = 1 << 20, /* of b, packed at once */
    THIN_ROOM_BYTES = 192 << 10, /* of the sums and packed pieces of one unit: the second level */

    /* ---- copies of a thin product's operands ---- */
    COPY_TO_STACK_BYTES = 8192, /* the first level of cache holds it, and every thread's stack */
    COPY_MOST_BYTES = 512 << 10,
    COPY_LEAST_ROW_BYTES = 16, /* shorter rows are not worth vectors */
    COPY_LONG_DOT = 32,
    COPY_LEAST_COLUMNS = 3, /* of shorter dots: fewer do not pay for a copy of the other operand */
    DOTS_MOST_COLUMNS = 7,  /* more are half a vector of bytes, or several */
    COPY_MOST_ASPECT = 16,  /* columns for each row that reads the copy again, of floats */

    /* ---- blocks; any from a half to four times as large made no difference beyond the noise ---- */
    PANEL_BYTES = 24 << 10,  /* of one panel of b, in the first level of cache */
    BLOCK_BYTES = 192 << 10, /* of the panels of a in one block, in the second level */
    BLOCK_COLUMNS = 512,
    BLOCKS_PER_THREAD = 4,
    /* What is packed at once, so that memory stays bounded: the outer blocks of larger matrices. */
    OUTER_BLOCK_BYTES = 16 << 20,
    OUTER_BLOCK_SIDE = 4096,
};

#endif
