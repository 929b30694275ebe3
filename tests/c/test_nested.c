/* Calls over operands in several dimensions, against plain loops; and the packing of their tiles. */
#include "engine/elementwise.h"
#include "engine/nested.h"
#include "expect.h"
#include "kernels/copy/find_bool.h"
#include "kernels/copy/stream_copy.h"
#include "kernels/copy/tile_pack.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_AXES = 4, MOST_ELEMENTS = 40000, REPETITIONS = 400, GUARD = 64 };

static struct policy policy;

static size_t item_size, stored_size; /* of the call under test, and where a converted input lies */

/* out = 3 a - b modulo 2^n, of any item size up to eight. */
static void subtract(char *const data[], const ptrdiff_t step[], ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        uint64_t a = 0, b = 0;
        memcpy(&a, data[0] + k * step[0], item_size);
        memcpy(&b, data[1] + k * step[1], item_size);
        const uint64_t out = 3 * a - b;
        memcpy(data[2] + k * step[2], &out, item_size);
    }
}

static void subtract_in_loop(char *data[], const ptrdiff_t *n, const ptrdiff_t step[], void *unused)
{
    (void)unused;
    subtract(data, step, *n);
}

/* Shorter items become longer ones, whose upper bytes are ones. */
static void widen(const char *from, ptrdiff_t step, void *to, ptrdiff_t n)
{
    memset(to, 0xff, (size_t)n * item_size);
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy((char *)to + i * (ptrdiff_t)item_size, from + i * step, stored_size);
    }
}

static _Atomic int widened_apart; /* where real kernels would compute one element after the other */

/* Kernels that convert inputs: the first one, the second one, both. */
static void subtract_widened(char *const data[], const ptrdiff_t step[], ptrdiff_t n,
                             const bool widens[2])
{
    for (int in = 0; in < 2; in++) {
        const size_t size = widens[in] ? stored_size : item_size;
        widened_apart += step[in] != (ptrdiff_t)size && (widens[in] || step[in] != 0);
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        uint64_t widened[2];
        char *one[3] = {data[0] + k * step[0], data[1] + k * step[1], data[2] + k * step[2]};
        for (int in = 0; in < 2; in++) {
            if (widens[in]) {
                widen(one[in], 0, &widened[in], 1);
                one[in] = (char *)&widened[in];
            }
        }
        subtract(one, step, 1);
    }
}

static void subtract_widened_first(char *const data[], const ptrdiff_t step[], ptrdiff_t n)
{
    subtract_widened(data, step, n, (const bool[]){true, false});
}

static void subtract_widened_second(char *const data[], const ptrdiff_t step[], ptrdiff_t n)
{
    subtract_widened(data, step, n, (const bool[]){false, true});
}

static void subtract_widened_both(char *const data[], const ptrdiff_t step[], ptrdiff_t n)
{
    subtract_widened(data, step, n, (const bool[]){true, true});
}

static const struct mixed_kernel mixed_kernels[] = {
    {{widen, widen}, subtract_widened_both, NULL},
    {{widen, NULL}, subtract_widened_first, NULL},
    {{NULL, widen}, subtract_widened_second, NULL},
    {{NULL, NULL}, NULL, NULL},
};

/* Steps of an operand whose axes lie in a random order, some of them repeated. Returns its bytes. */
static size_t random_steps(struct nested *nested, int operand, bool may_repeat)
{
    int order[MOST_AXES];
    for (int i = 0; i < nested->axes; i++) {
        order[i] = i;
        const int other = (int)random_below((size_t)i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    const size_t size = operand < 3 ? nested->stored_size[operand] : 1;
    size_t bytes = size;
    for (int i = 0; i < nested->axes; i++) {
        struct nested_axis *axis = &nested->axis[order[i]];
        if (may_repeat && random_below(5) == 0) {
            axis->step[operand] = 0;
            continue;
        }
        axis->step[operand] = (ptrdiff_t)bytes;
        bytes *= (size_t)axis->n;
        bytes += random_below(4) == 0 ? size * random_below(3) : 0;
    }
    return bytes;
}

static void walk(const struct nested *nested, char *out)
{
    ptrdiff_t at[MOST_AXES] = {0};
    for (;;) {
        char *data[4] = {nested->data[0], nested->data[1], out, nested->data[3]};
        for (int i = 0; i < nested->axes; i++) {
            for (int op = 0; op < 3 + nested->is_masked; op++) {
                data[op] += at[i] * nested->axis[i].step[op];
            }
        }
        const ptrdiff_t step[3] = {0, 0, 0};
        char converted[2][sizeof(uint64_t)];
        for (int in = 0; in < 2; in++) {
            if (nested->convert[in] != NULL) {
                widen(data[in], 0, converted[in], 1);
                data[in] = converted[in];
            }
        }
        if (!nested->is_masked || *data[3] != 0) {
            subtract(data, step, 1);
        }
        int i = nested->axes - 1;
        while (i >= 0 && ++at[i] == nested->axis[i].n) {
            at[i--] = 0;
        }
        if (i < 0) {
            return;
        }
    }
}

static char *filled(size_t bytes)
{
    char *memory = malloc(bytes + 2 * GUARD);
    for (size_t i = 0; memory != NULL && i < bytes + 2 * GUARD; i++) {
        memory[i] = (char)random_below(256);
    }
    return memory;
}

static void test_random_call(size_t size)
{
    item_size = size;
    stored_size = (size_t)1 << random_below(4);
    stored_size = stored_size < size ? stored_size : size;
    const struct kernel kernel = {
        .item_size = size,
        .cached = subtract,
        .mixed = random_below(3) == 0 ? NULL : &mixed_kernels[random_below(3)],
    };
    struct elementwise loop = {
        .policy = &policy,
        .function = subtract_in_loop,
        .kernel = &kernel,
        .kernel_takes_any_step = random_below(2) == 0,
        .inputs = 2,
        .operands = 3,
        .item_size = {size, size, size},
    };
    elementwise_initialize(&loop);
    struct nested nested = {.axes = 1 + (int)random_below(MOST_AXES),
                            .stored_size = {size, size, size, sizeof(bool)},
                            .is_masked = random_below(3) == 0};
    ptrdiff_t left = MOST_ELEMENTS;
    for (int i = 0; i < nested.axes; i++) {
        const ptrdiff_t most = random_below(3) == 0 ? left : left < 12 ? left : 12;
        nested.axis[i].n = 1 + (ptrdiff_t)random_below((size_t)most);
        left /= nested.axis[i].n;
    }
    const int operands = 3 + nested.is_masked;
    size_t bytes[4];
    char *memory[4];
    for (int op = 0; op < operands; op++) {
        if (op < 2 && random_below(3) == 0) {
            nested.convert[op] = widen;
            nested.stored_size[op] = stored_size;
        }
        bytes[op] = random_steps(&nested, op, op != 2);
        memory[op] = filled(bytes[op]);
        nested.data[op] = memory[op] + GUARD;
    }
    const size_t falses = nested.is_masked ? random_below(4) : 0;
    for (size_t i = 0; falses > 0 && i < bytes[3]; i++) {
        nested.data[3][i] = random_below(4) >= falses;
    }
    char *expected = malloc(bytes[2] + 2 * GUARD);
    memcpy(expected, memory[2], bytes[2] + 2 * GUARD);
    walk(&nested, expected + GUARD);
    widened_apart = 0;
    nested_run(&loop, &nested, random_below(2) == 0);
    expect(widened_apart == 0, "%d axes: %d rows to widen lie apart", nested.axes, widened_apart);
    expect(memcmp(expected, memory[2], bytes[2] + 2 * GUARD) == 0,
           "%d axes, items of %zu bytes, stored as %zu and %zu%s", nested.axes, size,
           nested.stored_size[0], nested.stored_size[1], nested.is_masked ? ", masked" : "");
    free(expected);
    for (int op = 0; op < operands; op++) {
        free(memory[op]);
    }
}

static void test_pack(size_t size)
{
    const ptrdiff_t rows = 1 + (ptrdiff_t)random_below(70),
                    columns = 1 + (ptrdiff_t)random_below(70);
    const bool across = random_below(2) == 0, repeated = random_below(4) == 0;
    const ptrdiff_t item = (ptrdiff_t)size, lead = (across ? rows : columns) + 3;
    const size_t bytes = size * (size_t)(lead * (across ? columns : rows));
    const ptrdiff_t to_row = item * (columns + (ptrdiff_t)(random_below(2) * random_below(9)));
    char *memory = filled(bytes), *packed = filled((size_t)(rows * to_row));
    char *before = malloc((size_t)(rows * to_row) + 2 * GUARD);
    memcpy(before, packed, (size_t)(rows * to_row) + 2 * GUARD);
    const struct tile tile = {memory + GUARD, rows, columns, across ? item : lead * item,
                              repeated ? 0
                              : across ? lead * item
                                       : item};
    tile_pack_rows(size, &tile, packed + GUARD, to_row);
    for (ptrdiff_t r = 0; r < rows; r++) {
        const ptrdiff_t end = GUARD + r * to_row + columns * item;
        expect(memcmp(packed + end, before + end, (size_t)(to_row - columns * item)) == 0,
               "what is behind row %td of %td by %td, items of %zu bytes", r, rows, columns, size);
        for (ptrdiff_t c = 0; c < columns; c++) {
            expect(memcmp(tile.data + r * tile.row_step + c * tile.column_step,
                          packed + GUARD + r * to_row + c * item, size) == 0,
                   "(%td, %td) of a packed tile of %td by %td, items of %zu bytes", r, c, rows,
                   columns, size);
        }
    }
    free(memory);
    free(packed);
    free(before);
}

/* What is counted decides how masks are applied, not what comes out. */
static void test_count_true(void)
{
    const ptrdiff_t n = (ptrdiff_t)random_below(600), step = 1 + (ptrdiff_t)random_below(2);
    const size_t falses = random_below(4);
    char *mask = filled((size_t)(n * step));
    struct true_bools expected = {0, 0};
    for (ptrdiff_t i = 0; i < n; i++) {
        char *one = mask + i * step;
        *one = random_below(4) >= falses;
        expected.count += *one;
        expected.runs += *one != 0 && (i == 0 || one[-step] == 0);
    }
    const struct true_bools found = count_true(mask, step, n);
    expect(found.count == expected.count && found.runs == expected.runs,
           "%td bools of step %td: %td true in %td runs, not %td in %td", n, step, found.count,
           found.runs, expected.count, expected.runs);
    free(mask);
}

static void test_copy(void)
{
    const size_t bytes = random_below(600), skew = random_below(64);
    char *from = filled(bytes + 64), *to = filled(bytes + 64), *expected = malloc(bytes + 64);
    memcpy(expected, to + GUARD, bytes + 64);
    memcpy(expected + skew, from + GUARD, bytes);
    copy_past_cache(to + GUARD + skew, from + GUARD, bytes);
    expect(memcmp(to + GUARD, expected, bytes + 64) == 0, "a copy of %zu bytes", bytes);
    free(from);
    free(to);
    free(expected);
}

static _Atomic int all_rows, rows_on_pages;

static bool is_page_there(const char *at)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char is_there = 0;
    return mincore((void *)((uintptr_t)at / page * page), 1, &is_there) == 0 && (is_there & 1) != 0;
}

static void subtract_on_pages(char *const data[], const ptrdiff_t step[], ptrdiff_t n)
{
    all_rows++;
    rows_on_pages += is_page_there(data[2] + n / 2 * step[2]);
    subtract(data, step, n);
}

static bool can_populate(void)
{
    enum { BYTES = 65536, POPULATE_WRITE = 23 };
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* An emulator may succeed, and do nothing. */
    const bool can = madvise(memory, BYTES, POPULATE_WRITE) == 0 && is_page_there(memory);
    munmap(memory, BYTES);
    return can;
}

/* Rows plus one row, into memory that has no pages yet, at any place within a large page. */
static void test_new_output(int threads)
{
    threads_set_for_process(threads);
    enum { ROWS = 2500, COLUMNS = 1001, SIZE = 8, BYTES = ROWS * COLUMNS * SIZE };
    item_size = SIZE;
    const struct kernel kernel = {.item_size = SIZE, .cached = subtract_on_pages};
    all_rows = rows_on_pages = 0;
    struct elementwise loop = {
        .policy = &policy,
        .function = subtract_in_loop,
        .kernel = &kernel,
        .inputs = 2,
        .operands = 3,
        .item_size = {SIZE, SIZE, SIZE},
    };
    elementwise_initialize(&loop);
    const size_t bytes = BYTES + (4 << 20), skew = 16 + 4096 * random_below(512);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *a = filled(BYTES), *b = filled(COLUMNS * SIZE);
    struct nested nested = {
        .stored_size = {SIZE, SIZE, SIZE, sizeof(bool)},
        .data = {a + GUARD, b + GUARD, memory + skew},
        .output_is_new = true,
        .axes = 2,
        .axis = {{ROWS, {COLUMNS * SIZE, 0, COLUMNS * SIZE}}, {COLUMNS, {SIZE, SIZE, SIZE}}},
    };
    const struct nested before = nested;
    char *expected = malloc(BYTES);
    walk(&before, expected);
    nested_run(&loop, &nested, false);
    expect(memcmp(expected, memory + skew, BYTES) == 0, "a new output, skew %zu", skew);
    /* The first page may be in use. Threads that share a large page may leave each other some. */
    expect(threads > 1 || !can_populate() || rows_on_pages >= all_rows - 1,
           "%d of %d rows on pages that existed", rows_on_pages, all_rows);
    size_t written = 0;
    for (size_t i = 0; i < bytes; i++) {
        written += (i < skew || i >= skew + BYTES) && memory[i] != 0;
    }
    expect(written == 0, "%zu bytes written beyond a new output", written);
    munmap(memory, bytes);
    free(a);
    free(b);
    free(expected);
}

int main(void)
{
    threads_initialize(0, "");
    threads_set_for_process(3);
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    for (int threaded = 0; threaded < 2; threaded++) {
        policy = (struct policy){threaded, threaded, threaded};
        for (int i = 0; i < REPETITIONS; i++) {
            test_random_call(sizes[i % 4]);
            test_pack(sizes[i % 5]);
            test_copy();
            test_count_true();
        }
    }
    for (int i = 0; i < 4; i++) {
        test_new_output(3);
    }
    expect(region_count() > REPETITIONS / 4, "%d threaded regions", (int)region_count());
    for (int i = 0; i < 4; i++) {
        test_new_output(1);
    }
    return expect_result("nested");
}
