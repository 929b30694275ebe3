// A block computes a tile of the result in registers, from slices of the operands in shared memory.
// Slices are double-buffered: the next one is loaded while one is in use.
#include "tiled.h"

#include "arithmetic.cuh"

namespace
{

constexpr int THREADS = 256, SIDE = 16; // threads of a block, along each side of its tile

// Rows and columns of a block's tile, the length of k in a slice, and the blocks that must be
// resident on a multiprocessor (bounds registers).
template <int ROWS, int COLUMNS, int DEPTH, int BLOCKS> struct Shape {
    static constexpr int rows = ROWS, columns = COLUMNS, depth = DEPTH, blocks = BLOCKS;
};

struct Problem {
    const void *a, *b;
    void *c;
    int64_t batch, m, n, k;
    // Elements between rows, columns and matrices.
    int64_t a_row, a_column, a_batch, b_row, b_column, b_batch;
    bool adds; // adds to c instead of overwriting it
};

// A slice of an operand: LINES rows of a or columns of b, DEPTH elements each. Every thread loads
// COUNT elements; neighbouring threads load neighbouring addresses (coalesced).
template <typename Arithmetic, int LINES, int DEPTH> struct Slice {
    using Element = typename Arithmetic::Element;
    using Value = typename Arithmetic::Value;
    static constexpr int COUNT = LINES * DEPTH / THREADS;
    static constexpr int VECTOR = 16 / sizeof(Value);
    static constexpr int PITCH = LINES + VECTOR; // keeps vectors aligned, and avoids bank conflicts
    static_assert(LINES * DEPTH % THREADS == 0 && THREADS % DEPTH == 0 && COUNT > 0, "");
    static_assert(THREADS % LINES == 0 || LINES % THREADS == 0, "");

    static_assert(COUNT <= 32, "");

    const Element *next;   // the thread's first element
    int64_t step, advance; // to its next one, and to the next slice
    int place, place_step; // in shared memory
    unsigned lines_there;  // bit mask: the thread's elements within the operand
    Value loaded[COUNT];

    __device__ void begin(const Element *first, int64_t along_line, int64_t along_depth,
                          int64_t lines)
    {
        const int thread = threadIdx.x;
        const bool deep = along_depth == 1;
        const int line = deep ? thread / DEPTH : thread % LINES;
        const int depth = deep ? thread % DEPTH : thread / LINES;
        const int line_step = deep ? THREADS / DEPTH : 0;
        const int depth_step = deep ? 0 : THREADS / LINES;
        step = line_step * along_line + depth_step * along_depth;
        advance = DEPTH * along_depth;
        place = depth * PITCH + line;
        place_step = depth_step * PITCH + line_step;
        next = first + line * along_line + depth * along_depth;
        lines_there = 0;
        for (int i = 0; i < COUNT; i++) {
            lines_there |= (unsigned)(line + i * line_step < lines) << i;
        }
    }

    __device__ void load(int64_t left)
    {
        unsigned there = lines_there;
        if (left < DEPTH) {
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                there &= ~((unsigned)((place + i * place_step) / PITCH >= left) << i);
            }
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            loaded[i] = there >> i & 1 ? Arithmetic::load(next[i * step]) : Value{};
        }
        next += advance;
    }

    __device__ void store(Value *shared) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            shared[place + i * place_step] = loaded[i];
        }
    }
};

// A thread's values of one line of shared memory: groups of consecutive elements, SIDE groups
// apart.
template <typename Value, int COUNT>
__device__ void load_fragment(Value (&fragment)[COUNT], const Value *line, int place)
{
    constexpr int VECTOR = 16 / sizeof(Value);
    struct alignas(16) Vector {
        Value value[VECTOR];
    };
#pragma unroll
    for (int i = 0; i < COUNT / VECTOR; i++) {
        const Vector vector = *reinterpret_cast<const Vector *>(line + (i * SIDE + place) * VECTOR);
#pragma unroll
        for (int j = 0; j < VECTOR; j++) {
            fragment[i * VECTOR + j] = vector.value[j];
        }
    }
}

template <int VECTOR> __device__ int place_of(int i, int place)
{
    return (i / VECTOR * SIDE + place) * VECTOR + i % VECTOR;
}

// Adds the products of one slice to a thread's sums.
template <typename Arithmetic, typename Tile, int ROWS, int COLUMNS, int PITCH_A, int PITCH_B>
__device__ void add_products(typename Arithmetic::Sum (&sum)[ROWS][COLUMNS],
                             const typename Arithmetic::Value (&a)[Tile::depth][PITCH_A],
                             const typename Arithmetic::Value (&b)[Tile::depth][PITCH_B],
                             int my_row, int my_column)
{
    using Value = typename Arithmetic::Value;
#pragma unroll
    for (int depth = 0; depth < Tile::depth; depth++) {
        Value of_a[ROWS], of_b[COLUMNS];
        load_fragment(of_a, a[depth], my_row);
        load_fragment(of_b, b[depth], my_column);
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                Arithmetic::add_product(sum[i][j], of_a[i], of_b[j]);
            }
        }
    }
}

template <typename Arithmetic, int VECTOR, int ROWS, int COLUMNS>
__device__ void store_sums(const Problem &problem, int64_t matrix, int64_t row, int64_t column,
                           int my_row, int my_column,
                           const typename Arithmetic::Sum (&sum)[ROWS][COLUMNS])
{
    using Element = typename Arithmetic::Element;
    Element *c = (Element *)problem.c + matrix * problem.m * problem.n;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int64_t r = row + place_of<VECTOR>(i, my_row);
        asm volatile(
            "" ::
                : "memory"); // keeps the compiler from loading all rows at once: too many registers
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const int64_t s = column + place_of<VECTOR>(j, my_column);
            if (r < problem.m && s < problem.n) {
                Element &to = c[r * problem.n + s];
                if constexpr (Arithmetic::IN_SLABS) {
                    to = problem.adds ? Arithmetic::add(to, sum[i][j])
                                      : Arithmetic::store(sum[i][j]);
                } else {
                    to = Arithmetic::store(sum[i][j]);
                }
            }
        }
    }
}

template <typename Arithmetic, typename Tile>
__device__ void multiply_tile(const Problem &problem, int64_t row, int64_t column, int64_t matrix)
{
    using Element = typename Arithmetic::Element;
    using Value = typename Arithmetic::Value;
    using SliceA = Slice<Arithmetic, Tile::rows, Tile::depth>;
    using SliceB = Slice<Arithmetic, Tile::columns, Tile::depth>;
    constexpr int ROWS = Tile::rows / SIDE, COLUMNS = Tile::columns / SIDE;
    constexpr int VECTOR = SliceA::VECTOR;
    __shared__ alignas(16) Value shared_a[2][Tile::depth][SliceA::PITCH];
    __shared__ alignas(16) Value shared_b[2][Tile::depth][SliceB::PITCH];

    // A warp is 4 by 8 threads: few distinct vectors of shared memory are read at a time.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int my_row = warp / 2 * 4 + lane / 8, my_column = warp % 2 * 8 + lane % 8;

    SliceA a;
    SliceB b;
    a.begin((const Element *)problem.a + matrix * problem.a_batch + row * problem.a_row,
            problem.a_row, problem.a_column, problem.m - row);
    b.begin((const Element *)problem.b + matrix * problem.b_batch + column * problem.b_column,
            problem.b_column, problem.b_row, problem.n - column);
    a.load(problem.k);
    b.load(problem.k);
    a.store(shared_a[0][0]);
    b.store(shared_b[0][0]);
    __syncthreads();

    typename Arithmetic::Sum sum[ROWS][COLUMNS] = {};
    int current = 0;
    for (int64_t left = problem.k; left > 0; left -= Tile::depth) {
        const bool more = left > Tile::depth;
        if (more) {
            a.load(left - Tile::depth);
            b.load(left - Tile::depth);
        }
        add_products<Arithmetic, Tile>(sum, shared_a[current], shared_b[current], my_row,
                                       my_column);
        current ^= 1;
        if (more) {
            a.store(shared_a[current][0]);
            b.store(shared_b[current][0]);
        }
        __syncthreads();
    }

    store_sums<Arithmetic, VECTOR>(problem, matrix, row, column, my_row, my_column, sum);
}

template <typename Arithmetic, typename Tile>
__global__ void __launch_bounds__(THREADS, Tile::blocks) multiply(const Problem problem)
{
    const int64_t across = (problem.n + Tile::columns - 1) / Tile::columns;
    const int64_t row = blockIdx.x / across * Tile::rows;
    const int64_t column = blockIdx.x % across * Tile::columns;
    for (int64_t matrix = blockIdx.z; matrix < problem.batch; matrix += gridDim.z) {
        multiply_tile<Arithmetic, Tile>(problem, row, column, matrix);
    }
}

template <typename Tile> int64_t tiles_of(const Problem &problem)
{
    return (problem.m + Tile::rows - 1) / Tile::rows *
           ((problem.n + Tile::columns - 1) / Tile::columns);
}

template <typename Arithmetic, typename Tile>
cudaError_t launch_tile(const Problem &problem, cudaStream_t stream)
{
    constexpr int64_t MOST_MATRICES = 65535;
    const int64_t tiles = tiles_of<Tile>(problem);
    if (tiles > INT32_MAX) {
        return cudaErrorInvalidConfiguration;
    }
    const dim3 grid((unsigned)tiles, 1,
                    (unsigned)(problem.batch < MOST_MATRICES ? problem.batch : MOST_MATRICES));
    multiply<Arithmetic, Tile><<<grid, THREADS, 0, stream>>>(problem);
    return cudaGetLastError();
}

// Large tiles, unless they would leave half of the multiprocessors idle, or exceed the result.
template <typename Arithmetic, typename Large, typename Small>
cudaError_t launch(const Problem &problem, int multiprocessors, cudaStream_t stream)
{
    const bool large = problem.m > Small::rows && problem.n > Small::columns &&
                       2 * tiles_of<Large>(problem) * problem.batch > multiprocessors;
    return large ? launch_tile<Arithmetic, Large>(problem, stream)
                 : launch_tile<Arithmetic, Small>(problem, stream);
}

template <typename Arithmetic>
cudaError_t launch_4(const Problem &problem, int multiprocessors, cudaStream_t stream)
{
    return launch<Arithmetic, Shape<128, 128, 8, 2>, Shape<64, 64, 16, 2>>(problem, multiprocessors,
                                                                           stream);
}

template <typename Arithmetic>
cudaError_t launch_8(const Problem &problem, int multiprocessors, cudaStream_t stream)
{
    return launch<Arithmetic, Shape<128, 64, 8, 1>, Shape<64, 32, 8, 2>>(problem, multiprocessors,
                                                                         stream);
}

cudaError_t launch_16(const Problem &problem, int multiprocessors, cudaStream_t stream)
{
    return launch<Complex<double>, Shape<64, 64, 8, 1>, Shape<32, 32, 8, 2>>(
        problem, multiprocessors, stream);
}

template <typename T> __global__ void add(Pair<T> *to, const Pair<T> *from, int64_t count)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        to[i] = Complex<T>::add(to[i], from[i]);
    }
}

template <typename T> cudaError_t launch_add(const struct gemm *gemm, cudaStream_t stream)
{
    constexpr int64_t MOST_BLOCKS = 2048; // enough to keep the memory of any GPU busy
    const int64_t count = gemm->batch * gemm->m * gemm->n;
    const int64_t blocks = (count + THREADS - 1) / THREADS;
    add<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0, stream>>>(
        (Pair<T> *)gemm->c, (const Pair<T> *)gemm->spare, count);
    return cudaGetLastError();
}

} // namespace

extern "C" cudaError_t tiled_add(const struct gemm *gemm, cudaStream_t stream)
{
    return gemm->type.size == 8 ? launch_add<float>(gemm, stream)
                                : launch_add<double>(gemm, stream);
}

extern "C" cudaError_t tiled_multiply(const struct gemm *gemm, const struct slab *slab,
                                      int multiprocessors, cudaStream_t stream)
{
    const int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    const size_t size = gemm->type.size;
    const int64_t a_first = slab->first * (gemm->a.transposed ? m : 1);
    const int64_t b_first = slab->first * (gemm->b.transposed ? 1 : n);
    const Problem problem = {(const char *)gemm->a.at + a_first * (int64_t)size,
                             (const char *)gemm->b.at + b_first * (int64_t)size,
                             (void *)slab->c,
                             gemm->batch,
                             m,
                             n,
                             slab->k,
                             gemm->a.transposed ? 1 : gemm_a_row(gemm),
                             gemm->a.transposed ? m : 1,
                             gemm->a.batch_step,
                             gemm->b.transposed ? 1 : n,
                             gemm->b.transposed ? k : 1,
                             gemm->b.batch_step,
                             slab->adds};
    switch (gemm->type.kind) {
    case ELEMENT_BOOL:
        return launch_4<Boolean>(problem, multiprocessors, stream);
    case ELEMENT_INTEGER:
        return size == 1   ? launch_4<Integer<uint8_t>>(problem, multiprocessors, stream)
               : size == 2 ? launch_4<Integer<uint16_t>>(problem, multiprocessors, stream)
               : size == 4 ? launch_4<Integer<uint32_t>>(problem, multiprocessors, stream)
                           : launch_8<Integer64>(problem, multiprocessors, stream);
    case ELEMENT_FLOAT:
        return size == 2   ? launch_4<Half>(problem, multiprocessors, stream)
               : size == 4 ? launch_4<Real<float>>(problem, multiprocessors, stream)
                           : launch_8<Real<double>>(problem, multiprocessors, stream);
    default:
        return size == 8 ? launch_8<Complex<float>>(problem, multiprocessors, stream)
                         : launch_16(problem, multiprocessors, stream);
    }
}
