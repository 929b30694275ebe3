// out[i] = a[i] + b[i] on a GPU, from copied, pinned and managed memory:  add [n]
#include "gpu.cuh"

#include <algorithm>
#include <chrono>

// As many threads as fill the GPU, each of which takes every so many-th element: neighbouring threads
// read neighbouring elements, which the memory serves at once.
__global__ void add(const float *a, const float *b, float *out, size_t n)
{
    const size_t threads = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += threads) {
        out[i] = a[i] + b[i];
    }
}

static void launch(const Array &a, const Array &b, const Array &out, size_t n)
{
    constexpr size_t threads = 256, most_blocks = 65536;
    const auto blocks = unsigned(std::min((n + threads - 1) / threads, most_blocks));
    add<<<blocks, threads>>>(a.device, b.device, out.device, n);
    check_launch("add");
}

static void measure(Kind kind, size_t n)
{
    const Array a(kind, n), b(kind, n), out(kind, n);
    for (size_t i = 0; i < n; i++) {
        a.host[i] = float(i % 1000);
        b.host[i] = 0.5f;
        out.host[i] = -1;
    }
    Timer timer;
    float best_whole = 1e30f, best_kernel = 1e30f;
    for (int round = 0; round < 5; round++) {
        a.host[0] = float(round); // a result of the last round would be wrong
        a.touch();
        b.touch();
        const auto before = std::chrono::steady_clock::now();
        a.to_device();
        b.to_device();
        timer.start();
        launch(a, b, out, n);
        const float kernel = timer.stop();
        out.to_host();
        out.touch(); // of managed memory, this is the copy
        const std::chrono::duration<float, std::milli> whole =
            std::chrono::steady_clock::now() - before;
        best_whole = std::min(best_whole, whole.count());
        best_kernel = std::min(best_kernel, kernel);
        for (size_t i = 0; i < n; i++) {
            if (out.host[i] != a.host[i] + b.host[i]) {
                throw std::runtime_error(std::string(names[int(kind)]) + ": wrong sum at " +
                                         std::to_string(i));
            }
        }
    }
    const double gigabytes = 3e-9 * sizeof(float) * double(n);
    std::printf("%-10s%12.3f ms in all%12.3f ms kernel%10.1f GB/s\n", names[int(kind)], best_whole,
                best_kernel, 1e3 * gigabytes / best_kernel);
}

int main(int argc, char **argv)
{
    return guarded([&] {
        const auto n = size_t(size_argument(argc, argv, 10'000'000, 1L << 40));
        require_memory(3 * n * sizeof(float));
        for (const Kind kind : kinds) {
            measure(kind, n);
        }
        std::printf("all sums are those of the CPU\n");
    });
}
