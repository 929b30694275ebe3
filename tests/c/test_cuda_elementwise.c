/* The CUDA device's element-wise kernels against plain C, to the bit and to the flag; `--time`: how
 * fast they are. The first mismatch of each type and op is printed. Exit status 77: no GPU. */
#include "fake_device.h"
#include "on_gpu.h"

#include <math.h>
#include <string.h>

static const char *const ops[] = {"add", "subtract", "multiply", "divide"};
static const char *const exceptions[] = {"invalid", "divide by zero", "overflow", "underflow"};
enum { OPS = 4, OUT = ELEMENTWISE_INPUTS };

static uint32_t *raised; /* pinned */

static bool exists(enum elementwise_op op, struct element_type type)
{
    return !(op == ELEMENTWISE_DIVIDE && type.kind <= ELEMENT_INTEGER) &&
           !(op == ELEMENTWISE_SUBTRACT && type.kind == ELEMENT_BOOL);
}

/* ---- elements ---- */

static size_t part_of(struct element_type type)
{
    return type.kind == ELEMENT_COMPLEX ? type.size / 2 : type.size;
}

static int mantissa_bits(size_t part)
{
    return part == 2 ? 10 : part == 4 ? 23 : 52;
}

/* Of a float: any bits, with exponents whose sums and differences are at the ends of the range, and
 * mantissas that are short or long runs of ones. */
static uint64_t random_float(size_t part)
{
    const int mantissa = mantissa_bits(part), exponents = (int)part * 8 - 1 - mantissa;
    const uint64_t most = ((uint64_t)1 << exponents) - 1, middle = most / 2;
    const uint64_t ones = ((uint64_t)1 << mantissa) - 1;
    uint64_t fraction = random_bits() & ones, exponent;
    switch (random_below(8)) {
    case 0:
        exponent = 0;
        break;
    case 1:
        exponent = random_below(4);
        break;
    case 2:
        exponent = most - random_below(4);
        break;
    case 3:
        exponent = middle / 2 + random_below((uint64_t)mantissa);
        break;
    case 4:
        exponent = random_below(most + 1);
        break;
    default:
        exponent = middle - 2 + random_below(5);
        break;
    }
    switch (random_below(4)) {
    case 0:
        fraction &= ~(ones >> random_below((uint64_t)mantissa));
        break;
    case 1:
        fraction |= ones >> random_below((uint64_t)mantissa);
        break;
    default:
        break;
    }
    return (random_below(2) << exponents | exponent) << mantissa | fraction;
}

static bool has_tame_values; /* numbers around 1, which raise nothing */

static uint64_t random_part(struct element_type type)
{
    const size_t part = part_of(type);
    if (type.kind <= ELEMENT_INTEGER) {
        return type.kind == ELEMENT_BOOL ? random_below(2) : random_bits();
    }
    if (!has_tame_values) {
        return random_float(part);
    }
    const int mantissa = mantissa_bits(part);
    const uint64_t exponent = ((uint64_t)1 << ((int)part * 8 - 2 - mantissa)) - 1;
    return exponent << mantissa | random_below((uint64_t)1 << mantissa);
}

static void fill(struct element_type type, char *data, size_t bytes)
{
    const size_t part = part_of(type);
    for (size_t at = 0; at + part <= bytes; at += part) {
        const uint64_t value = random_part(type);
        memcpy(data + at, &value, part);
    }
}

static bool is_nan(const char *at, size_t part)
{
    uint64_t bits = 0;
    memcpy(&bits, at, part);
    const uint64_t magnitude = bits & (((uint64_t)1 << (part * 8 - 1)) - 1);
    const uint64_t infinity =
        ((uint64_t)1 << (part * 8 - 1)) - ((uint64_t)1 << mantissa_bits(part));
    return magnitude > infinity;
}

/* To the bit, but for which of several NaNs is kept: C compilers exchange factors. */
static bool is_same(struct element_type type, const char *got, const char *expected,
                    const char *const in[])
{
    const size_t part = part_of(type);
    if (memcmp(got, expected, type.size) == 0) {
        return true;
    }
    bool same = type.kind >= ELEMENT_FLOAT;
    for (size_t at = 0; at < type.size && same; at += part) {
        const bool chooses =
            type.kind == ELEMENT_COMPLEX || (is_nan(in[0] + at, part) && is_nan(in[1] + at, part));
        same = memcmp(got + at, expected + at, part) == 0 ||
               (chooses && is_nan(got + at, part) && is_nan(expected + at, part));
    }
    return same;
}

static const char *hex(char text[40], const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)at[bytes - 1 - i]);
    }
    return text;
}

/* ---- one call ---- */

enum { DEVICE_MEMORY, PINNED_MEMORY, MANAGED_MEMORY, MEMORIES };
static const char *const memories[] = {"device", "pinned", "managed"};

/* Memory for an operand: what the host sees, and where the kernel finds it. */
struct block {
    char *host;
    device_address at;
};

static size_t room; /* bytes of each block */
static struct block blocks[MEMORIES][ELEMENTWISE_OPERANDS];
static char *expected;

static bool make_blocks(size_t bytes)
{
    room = bytes;
    expected = malloc(bytes);
    bool made = expected != NULL;
    for (int op = 0; op < ELEMENTWISE_OPERANDS && made; op++) {
        void *pinned = NULL, *twin = NULL, *managed = NULL;
        made = works(device->alloc_pinned(device, bytes, &pinned), "pinned memory") &&
               works(device->alloc_pinned(device, bytes, &twin), "pinned memory") &&
               works(device->alloc(device, stream, bytes, &blocks[DEVICE_MEMORY][op].at),
                     "device memory");
        if (made && device->no_managed == NULL) {
            made = works(device->alloc_managed(device, bytes, &managed), "managed memory");
        }
        blocks[DEVICE_MEMORY][op].host = twin;
        blocks[PINNED_MEMORY][op] = (struct block){pinned, device_address_of(pinned)};
        blocks[MANAGED_MEMORY][op] = (struct block){managed, device_address_of(managed)};
    }
    return made;
}

static void free_blocks(void)
{
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        device->release(device, stream, blocks[DEVICE_MEMORY][op].at);
        works(device->drain(device, stream), "draining");
        device->release_pinned(device, blocks[DEVICE_MEMORY][op].host);
        device->release_pinned(device, blocks[PINNED_MEMORY][op].host);
        device->release_managed(device, blocks[MANAGED_MEMORY][op].host);
    }
    free(expected);
}

static ptrdiff_t count(const struct elementwise_work *work)
{
    ptrdiff_t n = 1;
    for (int axis = 0; axis < work->axes; axis++) {
        n *= work->axis[axis].n;
    }
    return n;
}

static ptrdiff_t offset_of(const struct elementwise_work *work, int op, ptrdiff_t index)
{
    ptrdiff_t offset = 0;
    for (int axis = work->axes - 1; axis >= 0; axis--) {
        offset += index % work->axis[axis].n * work->axis[axis].step[op];
        index /= work->axis[axis].n;
    }
    return offset;
}

/* Prints the first element of a type and an op that differs. */
static void compare(int type, const struct elementwise_work *work, const char *what,
                    char *const in[ELEMENTWISE_INPUTS], const char *got, const char *right)
{
    static bool is_known[TYPES][OPS];
    const size_t size = work->type.size;
    char a[40], b[40], c[40], d[40];
    for (ptrdiff_t i = 0; i < count(work) && !is_known[type][work->op]; i++) {
        const ptrdiff_t at = offset_of(work, OUT, i);
        const char *of[ELEMENTWISE_INPUTS];
        for (int op = 0; op < ELEMENTWISE_INPUTS; op++) {
            of[op] = work->at[op] != 0 ? in[op] + offset_of(work, op, i)
                                       : (const char *)work->number[op];
        }
        if (!is_same(work->type, got + at, right + at, of)) {
            expect(false, "%s %s, %s, element %td of %td: %s, %s give %s instead of %s",
                   types[type].name, ops[work->op], what, i, count(work), hex(a, of[0], size),
                   hex(b, of[1], size), hex(c, got + at, size), hex(d, right + at, size));
            is_known[type][work->op] = true;
        }
    }
}

/* Of each block, as much as the operands have, and some bytes more. */
static size_t bytes_of(const struct elementwise_work *work,
                       const ptrdiff_t begin[ELEMENTWISE_OPERANDS])
{
    size_t most = 0;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        size_t end = (size_t)begin[op] + work->type.size;
        for (int i = 0; i < work->axes; i++) {
            const ptrdiff_t reach = (work->axis[i].n - 1) * work->axis[i].step[op];
            end += reach > 0 ? (size_t)reach : 0;
        }
        most = end > most ? end : most;
    }
    return most + 64 < room ? most + 64 : room;
}

/* Operands begin `begin` bytes within their blocks of `memory`. */
static void check(int type, struct elementwise_work work, int memory,
                  const ptrdiff_t begin[ELEMENTWISE_OPERANDS], bool in_place)
{
    struct block of[ELEMENTWISE_OPERANDS];
    char *data[ELEMENTWISE_OPERANDS];
    char what[100];
    uint32_t flags[RAISED_WORDS] = {0};
    const bool copies = memory == DEVICE_MEMORY;
    const size_t bytes = bytes_of(&work, begin);
    snprintf(what, sizeof what, "%s memory, %d axes, at %td %td %td%s%s", memories[memory],
             work.axes, begin[0], begin[1], begin[2], in_place ? ", in place" : "",
             work.fuses ? ", fused" : "");
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        of[op] = blocks[memory][in_place && op == OUT ? 0 : op];
        fill(work.type, of[op].host, bytes);
    }
    memset(raised, 0, sizeof flags);
    memcpy(expected, of[OUT].host, bytes);
    char *kept = malloc(bytes); /* the first input, which may be overwritten */
    memcpy(kept, of[0].host, bytes);
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        data[op] = (op == OUT ? expected : op == 0 ? kept : of[op].host) + begin[op];
        if (op == OUT || work.at[op] != 0) {
            work.at[op] = of[op].at + (device_address)begin[op];
        }
    }
    fake_compute(&work, data, flags);
    bool done = true;
    for (int op = 0; op < ELEMENTWISE_OPERANDS && copies; op++) {
        done = done && works(device->upload(device, stream, of[op].at, of[op].host, one_row(bytes)),
                             "copying an operand");
    }
    done = done && works(device->compute(device, stream, &work, raised), ops[work.op]);
    if (copies) {
        done = done &&
               works(device->download(device, stream, of[OUT].host, of[OUT].at, one_row(bytes)),
                     "copying the result");
    }
    if (done && works(device->drain(device, stream), ops[work.op])) {
        compare(type, &work, what, data, of[OUT].host + begin[OUT], data[OUT]);
        for (int i = 0; i < RAISED_WORDS; i++) {
            expect(raised[i] == flags[i], "%s %s, %s, %td elements: %s is %u instead of %u",
                   types[type].name, ops[work.op], what, count(&work), exceptions[i], raised[i],
                   flags[i]);
        }
    }
    free(kept);
}

/* ---- layouts ---- */

/* Operands that all lie alike, or one number for all: the fast path where `begin` is the same. */
static void check_line(int type, enum elementwise_op op, ptrdiff_t n)
{
    const ptrdiff_t size = (ptrdiff_t)types[type].type.size;
    struct elementwise_work work = {.op = op,
                                    .type = types[type].type,
                                    .fuses = random_below(2) == 0,
                                    .at = {1, 1, 1},
                                    .axes = 1};
    work.axis[0] = (struct elementwise_axis){n, {size, size, size}};
    const int single = (int)random_below(6); /* which operand is one element, and how */
    if (single < 2) {
        work.axis[0].step[single] = 0;
    } else if (single < 4) {
        work.at[single - 2] = 0;
        fill(work.type, (char *)work.number[single - 2], (size_t)size);
    }
    const ptrdiff_t part = (ptrdiff_t)part_of(work.type);
    const ptrdiff_t common = (ptrdiff_t)random_below(40) * part;
    ptrdiff_t begin[ELEMENTWISE_OPERANDS] = {common, common, common};
    if (random_below(3) == 0) {
        begin[random_below(3)] += part;
    }
    int memory = (int)random_below(device->no_managed == NULL ? MEMORIES : MANAGED_MEMORY);
    const bool in_place = random_below(4) == 0 && begin[0] == begin[OUT] && work.at[0] != 0 &&
                          work.axis[0].step[0] != 0;
    check(type, work, memory, begin, in_place);
}

/* Some axes of an output with gaps; inputs that are repeated, transposed, reversed. */
static void check_axes(int type, enum elementwise_op op)
{
    const ptrdiff_t size = (ptrdiff_t)types[type].type.size;
    struct elementwise_work work = {
        .op = op, .type = types[type].type, .at = {1, 1, 1}, .axes = 1 + (int)random_below(5)};
    ptrdiff_t begin[ELEMENTWISE_OPERANDS] = {0};
    for (int axis = 0; axis < work.axes; axis++) {
        work.axis[axis].n = 1 + (ptrdiff_t)random_below(7);
    }
    for (int of = 0; of < ELEMENTWISE_OPERANDS; of++) {
        const bool reversed_order = of != OUT && random_below(3) == 0;
        ptrdiff_t step = size * (1 + (ptrdiff_t)random_below(2));
        for (int i = 0; i < work.axes; i++) {
            struct elementwise_axis *axis = &work.axis[reversed_order ? i : work.axes - 1 - i];
            const bool repeats = of != OUT && random_below(4) == 0;
            const bool reversed = !repeats && random_below(4) == 0;
            axis->step[of] = repeats ? 0 : reversed ? -step : step;
            begin[of] += reversed ? (axis->n - 1) * step : 0;
            step *= axis->n;
        }
    }
    check(type, work, (int)random_below(device->no_managed == NULL ? MEMORIES : MANAGED_MEMORY),
          begin, false);
}

static void check_all(bool quick)
{
    static const ptrdiff_t lengths[] = {1, 2, 3, 15, 16, 17, 31, 33, 255, 257, 1000, 4099};
    const uint64_t count_of_lengths = sizeof lengths / sizeof lengths[0];
    if (!make_blocks((size_t)1 << 19)) {
        return;
    }
    for (int type = 0; type < TYPES; type++) {
        for (int op = 0; op < OPS; op++) {
            if (!exists((enum elementwise_op)op, types[type].type)) {
                continue;
            }
            for (int i = 0; i < (quick ? 3 : 40); i++) {
                has_tame_values = i % 4 == 0;
                check_line(type, (enum elementwise_op)op, lengths[random_below(count_of_lengths)]);
                check_axes(type, (enum elementwise_op)op);
            }
            has_tame_values = false;
            for (int i = 0; i < (quick ? 4 : 100); i++) {
                check_line(type, (enum elementwise_op)op, 1); /* the flags of each element */
            }
        }
    }
    free_blocks();
}

/* ---- time ---- */

static double shortest(const struct elementwise_work *work, int times)
{
    double best = INFINITY;
    for (int i = 0; i < times; i++) {
        const double before = now();
        works(device->compute(device, stream, work, raised), "computing");
        works(device->drain(device, stream), "draining");
        best = fmin(best, now() - before);
    }
    return best;
}

/* Numbers that raise nothing. */
static bool fill_on_device(struct element_type type, device_address at, ptrdiff_t n)
{
    const ptrdiff_t size = (ptrdiff_t)type.size;
    struct elementwise_work work = {
        .type = type, .at = {0, 0, at}, .axes = 1, .axis = {{n, {0, 0, size}}}};
    has_tame_values = true;
    fill(type, (char *)work.number, sizeof work.number);
    return works(device->compute(device, stream, &work, raised), "filling");
}

static void time_kernels(ptrdiff_t n)
{
    device_address memory;
    if (!works(device->alloc(device, stream, 3 * 16 * (size_t)n, &memory), "device memory")) {
        return;
    }
    for (int type = 0; type < TYPES; type++) {
        const ptrdiff_t size = (ptrdiff_t)types[type].type.size;
        for (int of = 0; of < ELEMENTWISE_OPERANDS; of++) {
            fill_on_device(types[type].type, memory + (device_address)(16 * n * of), n);
        }
        printf("%-10s %td, GB/s:", types[type].name, n);
        for (int op = 0; op < OPS; op++) {
            struct elementwise_work work = {.op = (enum elementwise_op)op,
                                            .type = types[type].type,
                                            .fuses = true,
                                            .axes = 1,
                                            .axis = {{n, {size, size, size}}}};
            for (int of = 0; of < ELEMENTWISE_OPERANDS; of++) {
                work.at[of] = memory + (device_address)(16 * n * of);
            }
            if (exists(work.op, work.type)) {
                printf(" %s %.0f", ops[op], 3e-9 * (double)(n * size) / shortest(&work, 7));
            }
        }
        struct elementwise_work work = {
            .type = types[type].type,
            .at = {memory, memory + 16 * (device_address)n, memory + 32 * (device_address)n},
            .axes = 2,
            .axis = {{n / 1000, {1000 * size, 0, 1000 * size}}, {1000, {size, size, size}}}};
        printf(" add a row %.0f\n", 2e-9 * (double)(n * size) / shortest(&work, 7));
    }
    struct elementwise_work small = {.type = {ELEMENT_FLOAT, 4},
                                     .at = {memory, memory, memory},
                                     .axes = 1,
                                     .axis = {{1000, {4, 4, 4}}}};
    printf("float32 add of 1000 elements: %.1f us\n", 1e6 * shortest(&small, 1000));
    device->release(device, stream, memory);
}

int main(int arguments, char **argument)
{
    const char *const no_blas[] = {NULL};
    const bool quick = arguments > 1 && strcmp(argument[1], "--quick") == 0;
    const bool timed = arguments > 1 && strcmp(argument[1], "--time") == 0;
    if (!open_gpu(no_blas)) {
        return SKIPPED;
    }
    const int before = device->enter(device);
    void *words = NULL;
    if (works(device->new_stream(device, &stream), "a stream") &&
        works(device->alloc_pinned(device, RAISED_WORDS * sizeof *raised, &words), "memory")) {
        raised = words;
        if (timed) {
            time_kernels(100000000);
        } else {
            check_all(quick);
        }
        device->release_pinned(device, words);
        device->release_stream(device, stream);
    }
    device->leave(device, before);
    return expect_result("cuda elementwise");
}
