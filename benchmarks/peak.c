/* What the processor can do, as far as products of floats can use it: multiplications and additions in
 * registers, and reading. Usage: peak THREADS [BYTES], prints operations/s of float32 and of float64, and
 * bytes/s read from arrays of so many bytes. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__AVX512F__)
enum { BYTES = 64 };
#define KEEP(x) __asm__ volatile("" : "+v"(x))
#elif defined(__AVX__)
enum { BYTES = 32 };
#define KEEP(x) __asm__ volatile("" : "+x"(x))
#elif defined(__x86_64__)
enum { BYTES = 16 };
#define KEEP(x) __asm__ volatile("" : "+x"(x))
#else
enum { BYTES = 16 };
#define KEEP(x) __asm__ volatile("" : "+w"(x))
#endif

/* Two results a cycle that take four to five cycles each need ten accumulators. */
enum { ACCUMULATORS = 12, ROUNDS = 2000000, REPETITIONS = 5 };

typedef float floats __attribute__((vector_size(BYTES)));
typedef double doubles __attribute__((vector_size(BYTES)));

/* Named one by one: compilers keep an array of them in memory. */
#define EACH(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)
#define SUM(i) vector sum##i = term;
#define ADD(i)                                                                                     \
    sum##i = sum##i * factor + term;                                                               \
    KEEP(sum##i);

#define DEFINE_MULTIPLY(name, vector_)                                                             \
    static void name(void)                                                                         \
    {                                                                                              \
        typedef vector_ vector;                                                                    \
        vector factor = (vector){0} + 0.5f, term = (vector){0} + 1;                                \
        KEEP(factor);                                                                              \
        KEEP(term);                                                                                \
        EACH(SUM)                                                                                  \
        for (long round = 0; round < ROUNDS; round++) {                                            \
            EACH(ADD)                                                                              \
        }                                                                                          \
    }
DEFINE_MULTIPLY(multiply_floats, floats)
DEFINE_MULTIPLY(multiply_doubles, doubles)

struct task {
    void (*multiply)(void);
    const char *array;
    size_t bytes;
    pthread_barrier_t *barrier;
    double start[REPETITIONS],
        end[REPETITIONS]; /* by its own clock: others may be scheduled late */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void read_all(const char *array, size_t bytes)
{
    doubles sum[4] = {{0}};
    for (size_t at = 0; at + 4 * BYTES <= bytes; at += 4 * BYTES) {
        for (int i = 0; i < 4; i++) {
            doubles vector;
            memcpy(&vector, array + at + (size_t)i * BYTES, BYTES);
            sum[i] += vector;
        }
    }
    for (int i = 0; i < 4; i++) {
        KEEP(sum[i]);
    }
}

static void *run(void *task_)
{
    struct task *task = task_;
    for (int i = 0; i < REPETITIONS; i++) {
        pthread_barrier_wait(task->barrier);
        task->start[i] = now();
        if (task->multiply != NULL) {
            task->multiply();
        } else {
            read_all(task->array, task->bytes);
        }
        task->end[i] = now();
    }
    return NULL;
}

/* The best of several. */
static double seconds(struct task task, int threads)
{
    pthread_barrier_t barrier;
    pthread_t thread[threads];
    struct task tasks[threads];
    double best = 1e9;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    task.barrier = &barrier;
    for (int i = 0; i < threads; i++) {
        tasks[i] = task;
        tasks[i].array = task.array + (size_t)i * task.bytes;
        if (pthread_create(&thread[i], NULL, run, &tasks[i]) != 0) {
            exit(EXIT_FAILURE);
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }
    for (int i = 0; i < REPETITIONS; i++) {
        double start = tasks[0].start[i], end = tasks[0].end[i];
        for (int t = 1; t < threads; t++) {
            start = tasks[t].start[i] < start ? tasks[t].start[i] : start;
            end = tasks[t].end[i] > end ? tasks[t].end[i] : end;
        }
        best = end - start < best ? end - start : best;
    }
    return best;
}

int main(int argc, char *argv[])
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const size_t bytes = (argc > 2 ? (size_t)atoll(argv[2]) : (size_t)128 << 20) / (size_t)threads;
    char *array = aligned_alloc(4096, (bytes * (size_t)threads + 4095) / 4096 * 4096);
    if (threads < 1 || array == NULL) {
        return EXIT_FAILURE;
    }
    memset(array, 0, bytes * (size_t)threads);
    const double operations = 2.0 * ACCUMULATORS * ROUNDS * threads;
    const double of_floats = operations * (BYTES / sizeof(float)) /
                             seconds((struct task){.multiply = multiply_floats}, threads);
    const double of_doubles = operations * (BYTES / sizeof(double)) /
                              seconds((struct task){.multiply = multiply_doubles}, threads);
    const double read = (double)bytes * threads /
                        seconds((struct task){.array = array, .bytes = bytes / 256 * 256}, threads);
    printf("%.6g %.6g %.6g\n", of_floats, of_doubles, read);
    free(array);
    return EXIT_SUCCESS;
}
