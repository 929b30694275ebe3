/* Element-wise calls: every element once, in an order that overlaps allow, on pages that exist. */
#include "engine/elementwise.h"
#include "expect.h"
#include "memory/pages.h"
#include "threads/limit.h"
#include "threads/pool.h"
#include "threads/region.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, ELEMENTS = 100003, MOST_SECONDS = 60, NEW_BYTES = 33 << 20 };

static const struct policy production, awaiting = {1, true, true};
static struct policy policy;

/* ---- inner loops ---- */

struct counts {
    _Atomic int before, after, chunks;
    _Atomic ptrdiff_t elements;
    const char *out;
    ptrdiff_t out_step;
    char seen[ELEMENTS]; /* how often each element was computed */
};

static struct counts counts;
static int32_t input[ELEMENTS + 8], output[ELEMENTS + 8];

/* out = in + 1, and which elements were computed. */
static void increment(char *data[], const ptrdiff_t *n, const ptrdiff_t step[], void *loop_data)
{
    struct counts *of = loop_data;
    const ptrdiff_t first = (data[1] - of->out) / of->out_step;
    for (ptrdiff_t k = 0; k < *n; k++) {
        *(int32_t *)(data[1] + k * step[1]) = *(const int32_t *)(data[0] + k * step[0]) + 1;
        of->seen[first + k]++;
    }
    of->chunks++;
    of->elements += *n;
}

static void count_before(void *hook_data)
{
    ((struct counts *)hook_data)->before++;
}

static void count_after(void *hook_data)
{
    ((struct counts *)hook_data)->after++;
}

static void before_chunk(void *hook_data)
{
    (void)hook_data;
}

static void after_chunk(void *hook_data, ptrdiff_t first)
{
    const struct counts *of = hook_data;
    expect(first >= 0 && first < ELEMENTS && of->seen[first] == 1, "a chunk from %td", first);
}

static const struct inner_loop_hooks hooks = {count_before, count_after, before_chunk, after_chunk};

static struct elementwise loop = {
    .policy = &policy,
    .function = increment,
    .function_data = &counts,
    .hooks = &hooks,
    .inputs = 1,
    .operands = 2,
    .item_size = {4, 4},
};

static void run(char *in, ptrdiff_t in_step, char *out, ptrdiff_t out_step, ptrdiff_t n)
{
    counts = (struct counts){.out = out, .out_step = out_step};
    elementwise_run_loop(&loop, &counts, (char *[]){in, out}, (ptrdiff_t[]){in_step, out_step}, n);
    expect(counts.elements == n, "%td of %td elements were computed", counts.elements, n);
    for (ptrdiff_t k = 0; k < n; k++) {
        if (counts.seen[k] != 1) {
            expect(false, "element %td of %td was computed %d times", k, n, counts.seen[k]);
            break;
        }
    }
    expect(counts.before == counts.after, "before_threads %d times, after_threads %d times",
           counts.before, counts.after);
}

static void number_input(void)
{
    for (int k = 0; k < ELEMENTS + 8; k++) {
        input[k] = k * 7;
        output[k] = -1;
    }
}

static void check_apart(ptrdiff_t n)
{
    number_input();
    run((char *)input, 4, (char *)output, 4, n);
    bool right = true;
    for (ptrdiff_t k = 0; k < n; k++) {
        right = right && output[k] == k * 7 + 1;
    }
    expect(right && output[n] == -1, "%td elements: wrong values", n);
    expect(n <= 1024 || counts.before == 1, "%td elements did not use threads", n);
}

static void check_reversed(ptrdiff_t n)
{
    number_input();
    run((char *)(input + n - 1), -4, (char *)output, 4, n);
    bool right = true;
    for (ptrdiff_t k = 0; k < n; k++) {
        right = right && output[k] == (n - 1 - k) * 7 + 1;
    }
    expect(right, "%td elements, reversed: wrong values", n);
}

static void check_in_place(ptrdiff_t n)
{
    number_input();
    run((char *)input, 4, (char *)input, 4, n);
    bool right = true;
    for (ptrdiff_t k = 0; k < n; k++) {
        right = right && input[k] == k * 7 + 1;
    }
    expect(right, "%td elements, in place: wrong values", n);
    expect(n <= 1024 || counts.before == 1, "%td elements in place did not use threads", n);
}

/* Each element reads what the one before it wrote: a running count. */
static void check_shifted(ptrdiff_t n)
{
    number_input();
    run((char *)input, 4, (char *)(input + 1), 4, n);
    bool right = true;
    for (ptrdiff_t k = 0; k <= n; k++) {
        right = right && input[k] == k;
    }
    expect(right, "%td elements, shifted: wrong values", n);
    expect(counts.before == 0, "%td elements, shifted, used threads", n);
}

static void check_loops(void)
{
    static const ptrdiff_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 129, 1000, 4096, 10007, ELEMENTS};
    elementwise_initialize(&loop);
    threads_set_for_this_thread(THREADS);
    for (int learnt = 0; learnt < 2; learnt++) {
        policy = awaiting;
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            check_apart(sizes[i]);
            check_reversed(sizes[i]);
            check_in_place(sizes[i]);
            check_shifted(sizes[i]);
        }
    }
    /* While the cost of an element is being learnt, values must be right as well. */
    policy = production;
    for (int i = 0; i < 20; i++) {
        number_input();
        run((char *)input, 4, (char *)output, 4, ELEMENTS);
        expect(output[0] == 1 && output[ELEMENTS - 1] == (ELEMENTS - 1) * 7 + 1,
               "learning: wrong values");
        expect(counts.chunks >= 1, "nothing ran");
    }
    policy = awaiting;
    threads_set_for_this_thread(1);
    number_input();
    run((char *)input, 4, (char *)output, 4, ELEMENTS);
    expect(counts.before == 0 && counts.chunks == 1, "one thread was to run all");
    threads_set_for_this_thread(0);
}

/* ---- sleeping workers ---- */

/* The next call is not timed, and is short if it has fewer than five times `break_even` elements. */
static void set_break_even(ptrdiff_t break_even)
{
    atomic_store(&loop.break_even, break_even);
    atomic_store(&loop.calls, 100);
}

/* Must come first: no worker exists yet, which counts as asleep. */
static void check_cold_calls(void)
{
    enum { SHORT = ELEMENTS / 4, LONG = ELEMENTS / 16, ENOUGH = 1000000 };
    threads_set_for_this_thread(2);
    pool_set_spin_us(0);
    elementwise_initialize(&loop);
    set_break_even(LONG);
    run((char *)input, 4, (char *)output, 4, ELEMENTS);
    expect(counts.before == 1, "a long call did not wake workers");
    while (!region_is_cold(2)) {
        sched_yield();
    }
    set_break_even(SHORT);
    run((char *)input, 4, (char *)output, 4, ELEMENTS);
    expect(counts.before == 0, "a short call woke workers");
    int calls = 0;
    do {
        set_break_even(SHORT);
        run((char *)input, 4, (char *)output, 4, ELEMENTS);
    } while (counts.before == 0 && ++calls < ENOUGH);
    expect(calls < ENOUGH, "short calls one after another never woke workers");
    threads_set_for_this_thread(0);
    pool_set_spin_us(WORKER_SPIN_US);
}

/* ---- which kernel ---- */

enum { NONE, INNER_LOOP, CACHED, STREAMING };
static int ran;

static void note_loop(char *data[], const ptrdiff_t *n, const ptrdiff_t step[], void *loop_data)
{
    (void)data, (void)n, (void)step, (void)loop_data;
    ran = INNER_LOOP;
}

static void note_cached(char *const data[], const ptrdiff_t step[], ptrdiff_t n)
{
    (void)data, (void)step, (void)n;
    ran = CACHED;
}

static void note_streaming(char *const data[], const ptrdiff_t step[], ptrdiff_t n)
{
    (void)data, (void)step, (void)n;
    ran = STREAMING;
}

static const struct kernel noting_kernel = {"note", 'i', 4, note_cached, note_streaming, NULL};
static struct elementwise noting = {
    .policy = &policy,
    .function = note_loop,
    .kernel = &noting_kernel,
    .inputs = 1,
    .operands = 2,
    .item_size = {4, 4},
};

/* No memory is touched: the addresses need not exist. */
static int chosen(uintptr_t in, uintptr_t out, ptrdiff_t in_step, ptrdiff_t n)
{
    ran = NONE;
    elementwise_run_loop(&noting, NULL, (char *[]){(char *)in, (char *)out},
                         (ptrdiff_t[]){in_step, 4}, n);
    return ran;
}

static void check_kernels(void)
{
    const uintptr_t a = (uintptr_t)1 << 40, b = (uintptr_t)1 << 41;
    const ptrdiff_t huge = (ptrdiff_t)1 << 34;
    elementwise_initialize(&noting);
    policy.threshold = PTRDIFF_MAX;
    expect(chosen(a, b, 4, huge) == STREAMING, "64 GiB should be streamed");
    expect(chosen(a, b, 4, 1000) == CACHED, "4 kB should stay in the cache");
    expect(chosen(a, a, 4, huge) == CACHED, "in place should not be streamed");
    expect(chosen(a, b, 0, huge) == STREAMING, "a scalar suits the kernel");
    expect(chosen(a, b, 8, 1000) == INNER_LOOP, "elements apart are for the inner loop");
    expect(chosen(a, a + 4, 4, huge) == INNER_LOOP, "shifted should be in order");
    noting.kernel_takes_any_step = true;
    expect(chosen(a, b, 8, 1000) == CACHED, "this kernel takes any step");
    policy = production;
}

/* ---- outputs that have no pages yet ---- */

static _Atomic int chunks, chunks_on_pages;

static bool is_page_there(const char *at)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char is_there = 0;
    return mincore((void *)((uintptr_t)at / page * page), 1, &is_there) == 0 && (is_there & 1) != 0;
}

static void copy_on_pages(char *const data[], const ptrdiff_t step[], ptrdiff_t n)
{
    (void)step;
    chunks++;
    chunks_on_pages += is_page_there(data[1] + n / 2 * 4);
    memcpy(data[1], data[0], (size_t)n * 4);
}

static const struct kernel copy_kernel = {"copy", 'i', 4, copy_on_pages, copy_on_pages, NULL};
static struct elementwise copy_loop = {
    .policy = &policy,
    .kernel = &copy_kernel,
    .inputs = 1,
    .operands = 2,
    .item_size = {4, 4},
};

static char *new_memory(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static bool populates(void)
{
    char *memory = new_memory(LARGE_PAGE_BYTES);
    pages_populate(memory, memory + LARGE_PAGE_BYTES);
    const bool is_there = is_page_there(memory + LARGE_PAGE_BYTES / 2);
    munmap(memory, LARGE_PAGE_BYTES);
    return is_there;
}

static void check_new_output(const int32_t *in, size_t skew, ptrdiff_t n, int threads)
{
    char *memory = new_memory(NEW_BYTES);
    char *out = memory + skew;
    threads_set_for_this_thread(threads);
    chunks = chunks_on_pages = 0;
    const struct elementwise_plan plan = {
        .loop = &copy_loop,
        .kernel = copy_on_pages,
        .output_is_new = true,
        .data = (char *[]){(char *)in, out},
        .step = (ptrdiff_t[]){4, 4},
        .n = n,
    };
    elementwise_run(&plan);
    expect(memcmp(out, in, (size_t)n * 4) == 0, "%td new elements, skew %zu: wrong values", n,
           skew);
    const char *end = out + n * 4;
    bool is_clean = true;
    for (const char *at = memory; at < out; at++) {
        is_clean = is_clean && *at == 0;
    }
    for (const char *at = end; at < end + 64; at++) {
        is_clean = is_clean && *at == 0;
    }
    expect(is_clean, "%td new elements, skew %zu: written beyond", n, skew);
    /* The first and the last chunk may be smaller than a page. */
    expect(!populates() || chunks_on_pages >= chunks - 2, "%d of %d chunks on pages that existed",
           chunks_on_pages, chunks);
    munmap(memory, NEW_BYTES);
}

static void check_new_outputs(void)
{
    static const ptrdiff_t sizes[] = {(16 << 20) / 4, (16 << 20) / 4 + 77, (31 << 20) / 4 - 5};
    static const size_t skews[] = {0, 16, 4096 + 16, LARGE_PAGE_BYTES / 2};
    int32_t *in = (int32_t *)new_memory(NEW_BYTES);
    for (ptrdiff_t k = 0; k < NEW_BYTES / 4; k++) {
        in[k] = (int32_t)random_bits();
    }
    elementwise_initialize(&copy_loop);
    policy = awaiting;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            check_new_output(in, skews[k], sizes[i], 1 + (i + k) % THREADS);
        }
    }
    munmap(in, NEW_BYTES);
    threads_set_for_this_thread(0);
    policy = production;
}

static void check_pages(void)
{
    char *memory = new_memory(LARGE_PAGE_BYTES);
    memory[5000] = 7;
    pages_populate(memory + 100, memory + LARGE_PAGE_BYTES - 100);
    expect(memory[5000] == 7, "what is there changed");
    pages_populate(memory, memory);
    pages_populate(memory + 1, memory + 2);
    munmap(memory, LARGE_PAGE_BYTES);
}

int main(void)
{
    alarm(MOST_SECONDS); /* a hang is a failure, not a wait */
    threads_initialize(0, "");
    check_cold_calls();
    check_loops();
    check_kernels();
    check_pages();
    check_new_outputs();
    return expect_result("elementwise");
}
