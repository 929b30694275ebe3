// What both programs need: errors that end them with a message, arrays in three kinds of memory,
// and the time on the GPU.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

inline void check(cudaError_t error, const char *call)
{
    if (error != cudaSuccess) {
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
    }
}
#define CHECK(call) check((call), #call)

// A launch returns nothing. A bad configuration is told by this; what goes wrong within the kernel,
// by the next call that waits for it: Timer::stop().
inline void check_launch(const char *kernel)
{
    check(cudaGetLastError(), kernel);
}

enum class Kind { copied, pinned, managed };
constexpr Kind kinds[] = {Kind::copied, Kind::pinned, Kind::managed};
constexpr const char *names[] = {"copied", "pinned", "managed"};

// n floats that the CPU reads and writes at `host`, and the GPU at `device`.
class Array
{
  public:
    Array(Kind kind, size_t n) : kind(kind), bytes(n * sizeof(float))
    {
        try {
            if (kind == Kind::managed) {
                CHECK(cudaMallocManaged(&device, bytes));
                host = device; // one address: pages move to whoever touches them
                return;
            }
            CHECK(cudaMalloc(&device, bytes));
            if (kind == Kind::pinned) {
                CHECK(cudaMallocHost(&host, bytes));
            } else if ((host = static_cast<float *>(std::malloc(bytes))) == nullptr) {
                throw std::runtime_error("malloc: out of memory");
            }
        } catch (...) {
            release();
            throw;
        }
    }
    ~Array()
    {
        release();
    }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;

    void to_device() const
    {
        if (kind != Kind::managed) {
            CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
        }
    }
    void to_host() const
    {
        if (kind != Kind::managed) {
            CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
        }
    }

    // Has the CPU write to each page, so that managed ones are in its memory.
    void touch() const
    {
        volatile float *floats = host;
        for (size_t i = 0; i < bytes / sizeof(float); i += 1024) {
            floats[i] = floats[i];
        }
    }

    float *host = nullptr, *device = nullptr;

  private:
    // Errors are of no use here: another one is being told already, or all has been done.
    void release()
    {
        cudaFree(device);
        if (kind == Kind::pinned) {
            cudaFreeHost(host);
        } else if (kind == Kind::copied) {
            std::free(host);
        }
    }

    Kind kind;
    size_t bytes;
};

// Milliseconds between two points of the GPU's work.
class Timer
{
  public:
    Timer()
    {
        CHECK(cudaEventCreate(&begin));
        CHECK(cudaEventCreate(&end));
    }
    ~Timer()
    {
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
    }
    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

    void start()
    {
        CHECK(cudaEventRecord(begin));
    }
    float stop()
    {
        float milliseconds;
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        return milliseconds;
    }

  private:
    cudaEvent_t begin = nullptr, end = nullptr;
};

// Managed memory is not refused when it is too large: pages go to and fro, or the system kills
// programs. So what is free is asked for before, on the GPU and on the machine.
inline void require_memory(size_t bytes)
{
    size_t on_gpu, total, on_machine = 0;
    CHECK(cudaMemGetInfo(&on_gpu, &total));
    std::ifstream file("/proc/meminfo");
    for (std::string name, unit; file >> name >> on_machine;) {
        if (name == "MemAvailable:") {
            on_machine *= 1024;
            break;
        }
        file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    if (bytes > on_gpu / 4 * 3 || bytes > on_machine / 4 * 3) {
        throw std::runtime_error("needs " + std::to_string(bytes) +
                                 " bytes, more than 3/4 of the " + std::to_string(on_gpu) +
                                 " free on the GPU or the " + std::to_string(on_machine) +
                                 " free on the machine");
    }
}

// The only argument, a size of at least 1.
inline long size_argument(int argc, char **argv, long otherwise, long largest)
{
    if (argc == 1) {
        return otherwise;
    }
    char *end;
    const long n = std::strtol(argv[1], &end, 10);
    if (argc > 2 || end == argv[1] || *end != '\0' || n < 1 || n > largest) {
        throw std::invalid_argument(std::string("usage: ") + argv[0] + " [size from 1 to " +
                                    std::to_string(largest) + "], not: " + argv[1]);
    }
    return n;
}

// What main() does: run, and say on stderr what went wrong.
template <typename Function> int guarded(Function run)
{
    try {
        run();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
    return 0;
}
