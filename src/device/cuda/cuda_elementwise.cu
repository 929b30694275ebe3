// Two kernels: one for operands that are contiguous, or one element for all; one for everything
// else. Compiled without contraction: each operation rounds.
#include "cuda_elementwise.h"

#include "exact_arithmetic.cuh"

namespace
{

constexpr int THREADS = 256, VECTOR_BYTES = 16;

// ---- operations, by type ----

// VECTORS: of each operand, in flight at a time. The many short divisions of two need too many registers.
template <int OP, typename T> struct Operation {
    static constexpr int VECTORS = OP == ELEMENTWISE_DIVIDE && sizeof(T) < 8 ? 1 : 2;
};

template <int OP, typename T> struct OfIntegers : Operation<OP, T> {
    using Element = T;
    static __device__ T compute(T x, T y, unsigned &)
    {
        using Wide = decltype((uint32_t)1 * T{1}); // else products of 16 bits would be signed ones
        return OP == ELEMENTWISE_ADD        ? (T)((Wide)x + y)
               : OP == ELEMENTWISE_SUBTRACT ? (T)((Wide)x - y)
                                            : (T)((Wide)x * y);
    }
};

template <int OP> struct OfBools : Operation<OP, uint8_t> {
    using Element = uint8_t;
    static __device__ uint8_t compute(uint8_t x, uint8_t y, unsigned &)
    {
        return OP == ELEMENTWISE_ADD ? (x | y) != 0 : x != 0 && y != 0;
    }
};

template <int OP> struct OfHalves : Operation<OP, uint16_t> {
    using Element = uint16_t;
    static __device__ uint16_t compute(uint16_t x, uint16_t y, unsigned &raised)
    {
        return compute_half<OP>(x, y, raised);
    }
};

template <int OP, typename T> struct OfReals : Operation<OP, T> {
    using Element = T;
    static __device__ T compute(T x, T y, unsigned &raised)
    {
        return compute_real<OP>(x, y, raised);
    }
};

template <int OP, typename T, bool FUSES> struct OfComplex : Operation<OP, T> {
    using Element = ComplexNumber<T>;
    static __device__ Element compute(Element x, Element y, unsigned &raised)
    {
        if constexpr (OP == ELEMENTWISE_MULTIPLY) {
            return multiply_complex<T, FUSES>(x, y, raised);
        } else if constexpr (OP == ELEMENTWISE_DIVIDE) {
            return divide_complex(x, y, raised);
        } else {
            return {compute_real<OP>(x.real, y.real, raised),
                    compute_real<OP>(x.imaginary, y.imaginary, raised)};
        }
    }
};

// ---- exceptions ----

// One store of a warp for each of them. No atomic operations: all store the same.
__device__ void note_raised(unsigned raised, volatile uint32_t *words)
{
    if (__any_sync(0xffffffff, raised != 0)) {
        for (int i = 0; i < RAISED_WORDS; i++) {
            if (__any_sync(0xffffffff, raised >> i & 1) && threadIdx.x % 32 == 0) {
                words[i] = 1;
            }
        }
    }
}

// ---- contiguous operands ----

template <typename T> struct Vector {
    static constexpr int WIDTH = VECTOR_BYTES / sizeof(T);
    T element[WIDTH];
};

template <typename T> __device__ Vector<T> load(const T *from)
{
    const uint4 raw = *reinterpret_cast<const uint4 *>(from);
    Vector<T> vector;
    memcpy(&vector, &raw, sizeof raw);
    return vector;
}

// By an intrinsic: the compiler splits a plain store of 16 bytes into its elements, which the memory of the
// device forgives, but not the link to pinned memory: it was used at a half to a tenth of its rate.
template <typename T> __device__ void store(T *to, const Vector<T> &vector)
{
    uint4 raw;
    memcpy(&raw, &vector, sizeof raw);
    __stcg(reinterpret_cast<uint4 *>(to), raw);
}

// Elements before `first` and after the vectors are computed one by one.
template <typename T> struct Line {
    const T *in[ELEMENTWISE_INPUTS];
    T one[ELEMENTWISE_INPUTS];        // for all elements, where there is no address
    bool repeats[ELEMENTWISE_INPUTS]; // one element for all
    T *out;
    int64_t n, first, vectors;
};

template <typename T> struct Input {
    const T *at;
    bool repeats;
    Vector<T> all;

    __device__ Input(const Line<T> &line, int i) : at(line.in[i]), repeats(line.repeats[i])
    {
        const T one = repeats && at != nullptr ? *at : line.one[i];
        for (int j = 0; j < Vector<T>::WIDTH; j++) {
            all.element[j] = one;
        }
    }
    __device__ T element(int64_t i) const
    {
        return repeats ? all.element[0] : at[i];
    }
    __device__ Vector<T> vector(int64_t i) const
    {
        return repeats ? all : load(at + i);
    }
};

template <typename Op>
__global__ void __launch_bounds__(THREADS)
    compute_line(const __grid_constant__ Line<typename Op::Element> line, uint32_t *words)
{
    using T = typename Op::Element;
    constexpr int WIDTH = Vector<T>::WIDTH, VECTORS = Op::VECTORS;
    const Input<T> a(line, 0), b(line, 1);
    const int64_t threads = (int64_t)gridDim.x * THREADS;
    const int64_t me = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    unsigned raised = 0;
    for (int64_t i = me; i < line.vectors; i += VECTORS * threads) {
        Vector<T> x[VECTORS], y[VECTORS];
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            if (i + v * threads < line.vectors) {
                x[v] = a.vector(line.first + (i + v * threads) * WIDTH);
                y[v] = b.vector(line.first + (i + v * threads) * WIDTH);
            }
        }
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            if (i + v * threads < line.vectors) {
#pragma unroll
                for (int j = 0; j < WIDTH; j++) {
                    x[v].element[j] = Op::compute(x[v].element[j], y[v].element[j], raised);
                }
                store(line.out + line.first + (i + v * threads) * WIDTH, x[v]);
            }
        }
    }
    for (int64_t i = me; i < line.n - line.vectors * WIDTH; i += threads) {
        const int64_t at = i < line.first ? i : i + line.vectors * WIDTH;
        line.out[at] = Op::compute(a.element(at), b.element(at), raised);
    }
    note_raised(raised, words);
}

// ---- any steps ----

template <typename Op, typename Index>
__global__ void __launch_bounds__(THREADS)
    compute_axes(const __grid_constant__ struct elementwise_work work, const Index n,
                 uint32_t *words)
{
    using T = typename Op::Element;
    const Index threads = (Index)gridDim.x * THREADS;
    unsigned raised = 0;
    for (Index i = (Index)blockIdx.x * THREADS + threadIdx.x; i < n; i += threads) {
        Index left = i;
        int64_t offset[ELEMENTWISE_OPERANDS] = {0, 0, 0};
        for (int axis = work.axes - 1; axis >= 0; axis--) {
            const Index extent = (Index)work.axis[axis].n;
            const Index slower = axis > 0 ? left / extent : 0;
            const int64_t place = (int64_t)(left - slower * extent);
#pragma unroll
            for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
                offset[op] += place * work.axis[axis].step[op];
            }
            left = slower;
        }
        T in[ELEMENTWISE_INPUTS];
#pragma unroll
        for (int op = 0; op < ELEMENTWISE_INPUTS; op++) {
            if (work.at[op] != 0) {
                in[op] = *reinterpret_cast<const T *>(work.at[op] + offset[op]);
            } else {
                memcpy(&in[op], work.number[op], sizeof in[op]);
            }
        }
        *reinterpret_cast<T *>(work.at[ELEMENTWISE_INPUTS] + offset[ELEMENTWISE_INPUTS]) =
            Op::compute(in[0], in[1], raised);
    }
    note_raised(raised, words);
}

// ---- launches ----

// So many that few threads begin again: blocks that end are followed by others at once, and the last ones
// leave no multiprocessor idle for long.
unsigned blocks_for(int64_t threads)
{
    const int64_t blocks = (threads + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks < INT32_MAX ? blocks : INT32_MAX);
}

// False if the operands are not contiguous, or lie apart from vectors by different distances.
template <typename T> bool make_line(const struct elementwise_work *work, Line<T> *line)
{
    const struct elementwise_axis *axis = &work->axis[0];
    const device_address out = work->at[ELEMENTWISE_INPUTS], beyond = out % VECTOR_BYTES;
    if (work->axes > 1 || axis->step[ELEMENTWISE_INPUTS] != (ptrdiff_t)sizeof(T) ||
        beyond % sizeof(T) != 0) {
        return false;
    }
    line->out = reinterpret_cast<T *>(out);
    line->n = axis->n;
    line->first = beyond == 0 ? 0 : (int64_t)((VECTOR_BYTES - beyond) / sizeof(T));
    line->first = line->first < line->n ? line->first : line->n;
    line->vectors = (line->n - line->first) / Vector<T>::WIDTH;
    for (int op = 0; op < ELEMENTWISE_INPUTS; op++) {
        line->in[op] = reinterpret_cast<const T *>(work->at[op]);
        memcpy(&line->one[op], work->number[op], sizeof(T));
        line->repeats[op] = work->at[op] == 0 || axis->step[op] == 0;
        if (!line->repeats[op] &&
            (axis->step[op] != (ptrdiff_t)sizeof(T) || work->at[op] % VECTOR_BYTES != beyond)) {
            return false;
        }
    }
    return true;
}

template <typename Op>
cudaError_t launch(const struct elementwise_work *work, uint32_t *raised, cudaStream_t stream)
{
    Line<typename Op::Element> line;
    if (make_line(work, &line)) {
        const int64_t alone = line.n - line.vectors * Vector<typename Op::Element>::WIDTH;
        const int64_t tuples = (line.vectors + Op::VECTORS - 1) / Op::VECTORS;
        const int64_t threads = tuples > alone ? tuples : alone;
        compute_line<Op><<<blocks_for(threads), THREADS, 0, stream>>>(line, raised);
        return cudaGetLastError();
    }
    int64_t n = 1;
    for (int axis = 0; axis < work->axes; axis++) {
        n *= work->axis[axis].n;
    }
    const unsigned blocks = blocks_for(n);
    // An index must not wrap around in its last step, either.
    if (n <= INT32_MAX) {
        compute_axes<Op, uint32_t><<<blocks, THREADS, 0, stream>>>(*work, (uint32_t)n, raised);
    } else {
        compute_axes<Op, uint64_t><<<blocks, THREADS, 0, stream>>>(*work, (uint64_t)n, raised);
    }
    return cudaGetLastError();
}

template <int OP>
cudaError_t launch_type(const struct elementwise_work *work, uint32_t *raised, cudaStream_t stream)
{
    constexpr bool DIVIDES = OP == ELEMENTWISE_DIVIDE, MULTIPLIES = OP == ELEMENTWISE_MULTIPLY;
    const size_t size = work->type.size;
    switch (work->type.kind) {
    case ELEMENT_BOOL:
        if constexpr (OP == ELEMENTWISE_ADD || MULTIPLIES) {
            return launch<OfBools<OP>>(work, raised, stream);
        }
        return cudaErrorInvalidValue;
    case ELEMENT_INTEGER:
        if constexpr (!DIVIDES) {
            return size == 1   ? launch<OfIntegers<OP, uint8_t>>(work, raised, stream)
                   : size == 2 ? launch<OfIntegers<OP, uint16_t>>(work, raised, stream)
                   : size == 4 ? launch<OfIntegers<OP, uint32_t>>(work, raised, stream)
                               : launch<OfIntegers<OP, uint64_t>>(work, raised, stream);
        }
        return cudaErrorInvalidValue;
    case ELEMENT_FLOAT:
        return size == 2   ? launch<OfHalves<OP>>(work, raised, stream)
               : size == 4 ? launch<OfReals<OP, float>>(work, raised, stream)
                           : launch<OfReals<OP, double>>(work, raised, stream);
    default:
        if (MULTIPLIES && work->fuses) {
            return size == 8 ? launch<OfComplex<OP, float, MULTIPLIES>>(work, raised, stream)
                             : launch<OfComplex<OP, double, MULTIPLIES>>(work, raised, stream);
        }
        return size == 8 ? launch<OfComplex<OP, float, false>>(work, raised, stream)
                         : launch<OfComplex<OP, double, false>>(work, raised, stream);
    }
}

} // namespace

extern "C" cudaError_t cuda_elementwise(const struct elementwise_work *work,
                                        uint32_t raised[RAISED_WORDS], cudaStream_t stream)
{
    switch (work->op) {
    case ELEMENTWISE_ADD:
        return launch_type<ELEMENTWISE_ADD>(work, raised, stream);
    case ELEMENTWISE_SUBTRACT:
        return launch_type<ELEMENTWISE_SUBTRACT>(work, raised, stream);
    case ELEMENTWISE_MULTIPLY:
        return launch_type<ELEMENTWISE_MULTIPLY>(work, raised, stream);
    default:
        return launch_type<ELEMENTWISE_DIVIDE>(work, raised, stream);
    }
}
