// c = a b of n*n floats on a GPU: naive, tiled and by cuBLAS, from three kinds of memory:  matmul [n]
#include "gpu.cuh"

#include <cublas_v2.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

constexpr int TILE = 32;

// One thread per element of the result. Each reads a row of a and a column of b from memory.
__global__ void naive(const float *a, const float *b, float *c, int n)
{
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row >= n || column >= n) {
        return;
    }
    float sum = 0;
    for (int k = 0; k < n; k++) {
        sum += a[size_t(row) * n + k] * b[size_t(k) * n + column];
    }
    c[size_t(row) * n + column] = sum;
}

// The threads of a block read a tile of a and of b together, and each element TILE times from there.
__global__ void tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        const int k_a = k + threadIdx.x, k_b = k + threadIdx.y;
        // No thread may leave before the barriers: what lies outside counts as 0.
        tile_a[threadIdx.y][threadIdx.x] = row < n && k_a < n ? a[size_t(row) * n + k_a] : 0;
        tile_b[threadIdx.y][threadIdx.x] = k_b < n && column < n ? b[size_t(k_b) * n + column] : 0;
        __syncthreads(); // the tiles are complete
        for (int i = 0; i < TILE; i++) {
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        }
        __syncthreads(); // nobody needs them any more
    }
    if (row < n && column < n) {
        c[size_t(row) * n + column] = sum;
    }
}

static void check(cublasStatus_t status, const char *call)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
    }
}

class Cublas
{
  public:
    Cublas()
    {
        CHECK(cublasCreate(&handle));
    }
    ~Cublas()
    {
        cublasDestroy(handle);
    }
    Cublas(const Cublas &) = delete;
    Cublas &operator=(const Cublas &) = delete;

    // cuBLAS takes matrices by columns. By columns, ours are transposed: c' = b' a'.
    void multiply(const float *a, const float *b, float *c, int n) const
    {
        const float one = 1, zero = 0;
        CHECK(
            cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, n, a, n, &zero, c, n));
    }

  private:
    cublasHandle_t handle = nullptr;
};

enum class Way { naive, tiled, cublas };
constexpr Way ways[] = {Way::naive, Way::tiled, Way::cublas};
constexpr const char *way_names[] = {"naive", "tiled", "cuBLAS"};

static void launch(Way way, const Cublas &cublas, const Array &a, const Array &b, const Array &c,
                   int n)
{
    const unsigned tiles = unsigned((n + TILE - 1) / TILE);
    const dim3 blocks(tiles, tiles), threads(TILE, TILE);
    if (way == Way::naive) {
        naive<<<blocks, threads>>>(a.device, b.device, c.device, n);
    } else if (way == Way::tiled) {
        tiled<<<blocks, threads>>>(a.device, b.device, c.device, n);
    } else {
        cublas.multiply(a.device, b.device, c.device, n);
    }
    check_launch(way_names[int(way)]);
}

// The largest error of a sample of elements, in units of what n roundings of positive sums allow.
static double error_of(const Array &a, const Array &b, const Array &c, int n)
{
    double largest = 0;
    for (int sample = 0; sample < 1000; sample++) {
        const size_t row = sample * 7919L % n, column = sample * 104729L % n;
        double sum = 0;
        for (int k = 0; k < n; k++) {
            sum += double(a.host[row * n + k]) * b.host[k * size_t(n) + column];
        }
        const double allowed = (n + 1) * sum * std::ldexp(1, -24) + 1e-30;
        const double error = std::fabs(c.host[row * n + column] - sum) / allowed;
        largest = error <= largest ? largest : error; // NaN counts as an error
    }
    return largest;
}

static void measure(Kind kind, Way way, const Cublas &cublas, int n)
{
    const size_t elements = size_t(n) * n;
    const Array a(kind, elements), b(kind, elements), c(kind, elements);
    for (size_t i = 0; i < elements; i++) {
        a.host[i] = float(i * 2654435761u % 1009) / 1009;
        b.host[i] = float(i * 40503u % 997) / 997;
        c.host[i] = NAN;
    }
    Timer timer;
    float best_whole = 1e30f, best_kernel = 1e30f;
    for (int round = 0; round < 4; round++) { // the first of cuBLAS loads its code
        a.touch();
        b.touch();
        const auto before = std::chrono::steady_clock::now();
        a.to_device();
        b.to_device();
        timer.start();
        launch(way, cublas, a, b, c, n);
        best_kernel = std::min(best_kernel, timer.stop());
        c.to_host();
        c.touch(); // of managed memory, this is the copy
        const std::chrono::duration<float, std::milli> whole =
            std::chrono::steady_clock::now() - before;
        best_whole = std::min(best_whole, whole.count());
    }
    const double error = error_of(a, b, c, n);
    if (!(error <= 1)) {
        throw std::runtime_error(std::string(way_names[int(way)]) + ": wrong product");
    }
    std::printf("%-10s%-10s%12.3f ms in all%12.3f ms kernel%10.2f TFLOP/s\n", names[int(kind)],
                way_names[int(way)], best_whole, best_kernel, 2e-9 * n * n * n / best_kernel);
}

int main(int argc, char **argv)
{
    return guarded([&] {
        const int n = int(size_argument(argc, argv, 2000, 40'000));
        require_memory(3 * size_t(n) * size_t(n) * sizeof(float));
        const Cublas cublas;
        for (const Kind kind : kinds) {
            for (const Way way : ways) {
                measure(kind, way, cublas, n);
            }
        }
        std::printf("all products agree with the CPU's\n");
    });
}
