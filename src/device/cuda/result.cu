#include "result.h"

namespace
{

constexpr int THREADS = 256, SIDE = 32, ROWS = 8;
constexpr int64_t MOST_BLOCKS = 2048; // enough to keep the memory of any GPU busy
constexpr int64_t MOST_MATRICES = 65535;

// Floats by their bits: of infinities and NaNs all bits of the exponent are set.
template <typename Bits>
__global__ void scan(const Bits *at, int64_t count, Bits exponent, volatile bool *nonfinite)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    bool found = false;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        found |= (at[i] & exponent) == exponent;
    }
    if (found) {
        *nonfinite = true;
    }
}

template <typename Bits>
cudaError_t launch_scan(device_address at, int64_t count, Bits exponent, bool *nonfinite,
                        cudaStream_t stream)
{
    const int64_t blocks = (count + THREADS - 1) / THREADS;
    scan<<<(unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), THREADS, 0, stream>>>(
        (const Bits *)at, count, exponent, nonfinite);
    return cudaGetLastError();
}

// A block takes a tile above the diagonal through shared memory: rows are read, and rows written.
template <typename T> __global__ void mirror(T *c, int64_t n, int64_t batch)
{
    __shared__ T tile[SIDE][SIDE + 1]; // the extra column avoids bank conflicts
    if (blockIdx.x < blockIdx.y) {
        return;
    }
    const int64_t row = (int64_t)blockIdx.y * SIDE, column = (int64_t)blockIdx.x * SIDE;
    for (int64_t matrix = blockIdx.z; matrix < batch; matrix += gridDim.z) {
        T *of = c + matrix * n * n;
        for (int i = threadIdx.y; i < SIDE; i += ROWS) {
            if (row + i < n && column + threadIdx.x < n) {
                tile[i][threadIdx.x] = of[(row + i) * n + column + threadIdx.x];
            }
        }
        __syncthreads();
        for (int i = threadIdx.y; i < SIDE; i += ROWS) {
            const int64_t to_row = column + i, to_column = row + threadIdx.x;
            if (to_row < n && to_column < to_row) {
                of[to_row * n + to_column] = tile[threadIdx.x][i];
            }
        }
        __syncthreads();
    }
}

template <typename T> cudaError_t launch_mirror(const struct gemm *gemm, cudaStream_t stream)
{
    const unsigned tiles = (unsigned)((gemm->n + SIDE - 1) / SIDE);
    const int64_t matrices = gemm->batch < MOST_MATRICES ? gemm->batch : MOST_MATRICES;
    mirror<<<dim3(tiles, tiles, (unsigned)matrices), dim3(SIDE, ROWS), 0, stream>>>(
        (T *)gemm->c, gemm->n, gemm->batch);
    return cudaGetLastError();
}

} // namespace

extern "C" cudaError_t result_scan(struct element_type type, device_address at, ptrdiff_t count,
                                   bool *nonfinite, cudaStream_t stream)
{
    const int parts = type.kind == ELEMENT_COMPLEX ? 2 : 1;
    switch (type.size / parts) {
    case 2:
        return launch_scan<uint16_t>(at, count, 0x7C00, nonfinite, stream);
    case 4:
        return launch_scan<uint32_t>(at, parts * count, 0x7F800000, nonfinite, stream);
    default:
        return launch_scan<uint64_t>(at, parts * count, 0x7FF0000000000000, nonfinite, stream);
    }
}

extern "C" cudaError_t result_mirror(const struct gemm *gemm, cudaStream_t stream)
{
    switch (gemm->type.size) {
    case 2:
        return launch_mirror<uint16_t>(gemm, stream);
    case 4:
        return launch_mirror<uint32_t>(gemm, stream);
    case 8:
        return launch_mirror<uint64_t>(gemm, stream);
    default:
        return launch_mirror<ulonglong2>(gemm, stream);
    }
}
