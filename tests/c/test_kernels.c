/* Every kernel of one instruction set against one-element C, written without the kernels' templates.
 * Usage: test_kernels [--time | --quick] [ISA]; without an ISA all that this processor has.
 * --quick compares a tenth, for emulators and sanitizers. */
#include "expect.h"
#include "half.h"
#include "kernels/kernels.h"
#include "upper_halves.h"

#include <fenv.h>
#include <math.h>
#include <string.h>
#include <time.h>

enum {
    LINE = 64,
    GUARD = 2 * LINE,
    SMALL_SIZES = 300,
    LARGEST = 9973,
    WIDEST_STEP = 3,
    ROOM_BYTES = GUARD + LINE + LARGEST * WIDEST_STEP * 8 + GUARD,
    TIMED_ELEMENTS = 4096,
};

/* Where the operands of a call lie. Steps count elements. */
struct layout {
    const char *name;
    int a_step, b_step, out_step;
    bool a_is_out, b_is_out;
};

static const struct layout layouts[] = {
    {"array+array", 1, 1, 1, false, false},
    {"array+scalar", 1, 0, 1, false, false},
    {"scalar+array", 0, 1, 1, false, false},
    {"scalar+scalar", 0, 0, 1, false, false},
    {"strided", 3, 2, 2, false, false},
    {"strided input", 2, 1, 1, false, false},
    {"strided output", 1, 1, 3, false, false},
    {"reversed", -1, -1, -1, false, false},
    {"reversed input", 1, -1, 1, false, false},
    {"reversed and strided", -2, 1, -3, false, false},
    {"in place on a", 1, 1, 1, true, false},
    {"in place on b", 1, 1, 1, false, true},
    {"in place on both", 1, 1, 1, true, true},
    {"in place on a, scalar", 1, 0, 1, true, false},
    {"in place on b, scalar", 0, 1, 1, false, true},
    {"strided in place on a", 2, 1, 2, true, false},
    {"reversed in place on b", -3, -1, -1, false, true},
};

enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* The inputs, what the kernel writes into, and what it should look like afterwards. */
static _Alignas(LINE) char room_a[ROOM_BYTES], room_b[ROOM_BYTES];
static _Alignas(LINE) char actual[ROOM_BYTES], expected[ROOM_BYTES];

static float special_float(void)
{
    static const float values[] = {0.0f,  -0.0f,  INFINITY, -INFINITY,    NAN,
                                   1.0f,  1e-45f, -3e-40f,  1.17549e-38f, 3.402823e38f,
                                   -1.0f, 3e38f,  -3.4e38f, 16777216.f};
    return values[random_below(sizeof values / sizeof values[0])];
}

static double special_double(void)
{
    static const double values[] = {0.0,  -0.0,    INFINITY,  -INFINITY,         NAN,
                                    1.0,  5e-324,  -1e-310,   2.3e-308,          1.7976e308,
                                    -1.0, 1.5e308, -1.79e308, 9007199254740992.0};
    return values[random_below(sizeof values / sizeof values[0])];
}

static uint16_t special_half(void)
{
    const size_t count = sizeof critical_halves / sizeof critical_halves[0];
    return critical_halves[random_below(count)][random_below(2)];
}

/* Some ordinary values, some extreme ones, some random bits. */
static void random_element(char *to, char kind, size_t size)
{
    const size_t choice = random_below(8);
    uint64_t bits = random_bits();
    if (kind == 'i' && choice < 2) {
        const uint64_t top = (uint64_t)1 << (8 * size - 1);
        const uint64_t extremes[] = {0, 1, top - 1, top, top + 1, UINT64_MAX};
        bits = extremes[bits % 6];
    } else if (kind == 'f' && size == sizeof(float) && choice < 7) {
        const float value = choice < 2 ? special_float() : (float)(int16_t)bits / 64;
        memcpy(&bits, &value, sizeof value);
    } else if (kind == 'f' && size == sizeof(double) && choice < 7) {
        const double value = choice < 2 ? special_double() : (double)(int32_t)bits / 4096;
        memcpy(&bits, &value, sizeof value);
    } else if (kind == 'f' && size == sizeof(uint16_t) && choice < 5) {
        bits = choice < 2 ? special_half() : half_of_float((float)(int16_t)bits / 64);
    }
    memcpy(to, &bits, size); /* the low bytes: both architectures are little-endian */
}

static void fill(char *room, size_t bytes, char kind, size_t size)
{
    for (size_t at = 0; at + size <= bytes; at += size) {
        random_element(room + at, kind, size);
    }
}

/* Not inlined: the compiler must neither vectorise nor fold what the kernels are compared with. */
#define VALUE(name, type, expression)                                                              \
    __attribute__((noinline)) static type name(type a, type b)                                     \
    {                                                                                              \
        return expression;                                                                         \
    }
VALUE(add_integers, uint64_t, a + b)
VALUE(add_floats, float, a + b)
VALUE(add_doubles, double, a + b)
VALUE(subtract_integers, uint64_t, a - b)
VALUE(subtract_floats, float, a - b)
VALUE(subtract_doubles, double, a - b)
VALUE(multiply_integers, uint64_t, a *b)
VALUE(multiply_floats, float, a *b)
VALUE(multiply_doubles, double, a *b)
VALUE(divide_floats, float, a / b)
VALUE(divide_doubles, double, a / b)

/* A row for each op: an element of its result. NULL: it has no kernels of that kind. */
static const struct reference {
    const char *op;
    uint64_t (*of_integers)(uint64_t a, uint64_t b); /* of all sizes: the low bytes count */
    float (*of_floats)(float a, float b);            /* of halves, too */
    double (*of_doubles)(double a, double b);
} references[] = {
    {"add", add_integers, add_floats, add_doubles},
    {"subtract", subtract_integers, subtract_floats, subtract_doubles},
    {"multiply", multiply_integers, multiply_floats, multiply_doubles},
    {"divide", NULL, divide_floats, divide_doubles},
};

static const struct reference *reference_of(const struct kernel *kernel)
{
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        if (strcmp(references[i].op, kernel->op) == 0) {
            return &references[i];
        }
    }
    return NULL;
}

static bool is_quotient(const struct kernel *kernel)
{
    return kernel->kind != 'f' && strcmp(kernel->op, "divide") == 0;
}

static bool has_reference(const struct kernel *kernel)
{
    const struct reference *reference = reference_of(kernel);
    return is_quotient(kernel) ||
           (reference != NULL &&
            (kernel->kind != 'f' ? reference->of_integers != NULL
                                 : reference->of_floats != NULL && reference->of_doubles != NULL));
}

static size_t result_size(const struct kernel *kernel)
{
    return is_quotient(kernel) ? sizeof(double) : kernel->item_size;
}

static double double_of_integer(const struct kernel *kernel, const char *element)
{
    uint64_t bits = 0;
    memcpy(&bits, element, kernel->item_size);
    if (kernel->kind == 'b') {
        return bits != 0;
    }
    const int unused = 64 - 8 * (int)kernel->item_size;
    return kernel->kind == 'u' ? (double)bits : (double)((int64_t)(bits << unused) >> unused);
}

static void reference_element(const struct kernel *kernel, const char *a, const char *b, char *out)
{
    if (is_quotient(kernel)) {
        const double z = divide_doubles(double_of_integer(kernel, a), double_of_integer(kernel, b));
        memcpy(out, &z, sizeof z);
    } else if (kernel->kind == 'i') {
        uint64_t x = 0, y = 0;
        memcpy(&x, a, kernel->item_size);
        memcpy(&y, b, kernel->item_size);
        const uint64_t z = reference_of(kernel)->of_integers(x, y);
        memcpy(out, &z, kernel->item_size);
    } else if (kernel->item_size == sizeof(uint16_t)) {
        uint16_t x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        const uint16_t z =
            half_of_float(reference_of(kernel)->of_floats(float_of_half(x), float_of_half(y)));
        memcpy(out, &z, sizeof z);
    } else if (kernel->item_size == sizeof(float)) {
        float x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        const float z = reference_of(kernel)->of_floats(x, y);
        memcpy(out, &z, sizeof z);
    } else {
        double x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        const double z = reference_of(kernel)->of_doubles(x, y);
        memcpy(out, &z, sizeof z);
    }
}

static bool is_nan(const char *element, size_t size)
{
    uint16_t half;
    float single;
    double twice;
    switch (size) {
    case sizeof half:
        memcpy(&half, element, sizeof half);
        return (half & ~HALF_SIGN) > HALF_INFINITY;
    case sizeof single:
        memcpy(&single, element, sizeof single);
        return isnan(single);
    default:
        memcpy(&twice, element, sizeof twice);
        return isnan(twice);
    }
}

/* Which NaN comes out of two is not defined: any will do. */
static void accept_nans(const struct kernel *kernel, const char *actual_out, char *expected_out,
                        ptrdiff_t step, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        const char *found = actual_out + k * step;
        char *wanted = expected_out + k * step;
        if (is_nan(found, result_size(kernel)) && is_nan(wanted, result_size(kernel))) {
            memcpy(wanted, found, result_size(kernel));
        }
    }
}

/* The first element of an operand that lies in a room from `offset` on. */
static char *first_of(char *room, size_t offset, ptrdiff_t step, ptrdiff_t n)
{
    return room + GUARD + offset - (step < 0 ? step * (n - 1) : 0);
}

struct place {
    size_t a, b, out; /* bytes past a cache line */
};

static void compare(const struct kernel *kernel, bool streaming, const struct layout *layout,
                    ptrdiff_t n, struct place place)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    const ptrdiff_t step[] = {size * (layout->a_is_out ? layout->out_step : layout->a_step),
                              size * (layout->b_is_out ? layout->out_step : layout->b_step),
                              (ptrdiff_t)result_size(kernel) * layout->out_step};
    const size_t used = 2 * (size_t)GUARD + LINE + (size_t)((step[2] < 0 ? -step[2] : step[2]) * n);
    char *out = first_of(actual, place.out, step[2], n);
    char *wanted = expected + (out - actual);
    char *a = layout->a_is_out ? out : first_of(room_a, place.a, step[0], n);
    char *b = layout->b_is_out ? out : first_of(room_b, place.b, step[1], n);
    /* Elements that the call reads from its output are inputs as well. */
    memcpy(actual, layout->b_is_out ? room_b : room_a, used);
    memcpy(expected, actual, used);

    feclearexcept(FE_ALL_EXCEPT);
    for (ptrdiff_t k = 0; k < n; k++) {
        reference_element(kernel, a + k * step[0], b + k * step[1], wanted + k * step[2]);
    }
    const int flags = fetestexcept(FE_ALL_EXCEPT);
    char *const data[] = {a, b, out};
    feclearexcept(FE_ALL_EXCEPT);
    (streaming ? kernel->streaming : kernel->cached)(data, step, n);
    expect_clean_upper_halves(kernel->op);
    const int raised = fetestexcept(FE_ALL_EXCEPT);

    const char *variant = streaming ? "streaming" : "cached";
    if ((kernel->kind == 'f' || is_quotient(kernel)) && memcmp(actual, expected, used) != 0) {
        accept_nans(kernel, out, wanted, step[2], n);
    }
    expect(memcmp(actual, expected, used) == 0,
           "%s %c%zu %s, %s, n %td, alignments %zu %zu %zu: wrong bytes", kernel->op, kernel->kind,
           kernel->item_size, variant, layout->name, n, place.a, place.b, place.out);
    expect(raised == flags, "%s %c%zu %s, %s, n %td: raises %#x, not %#x", kernel->op, kernel->kind,
           kernel->item_size, variant, layout->name, n, (unsigned)raised, (unsigned)flags);
}

static struct place random_place(size_t out, size_t size)
{
    const size_t places = LINE / size;
    return (struct place){random_below(places) * size, random_below(places) * size, out};
}

static void compare_all(const struct kernel *kernel, bool streaming, bool quick)
{
    static const ptrdiff_t large_sizes[] = {1000, 1023, 1024, 2049, 4096, 4103, LARGEST};
    const size_t size = kernel->item_size, result = result_size(kernel);
    /* At most 16 alignments per size, so that one-byte items do not take most of the time. */
    const size_t pitch = result > LINE / 16 ? result : LINE / 16;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        if (result != size && (layouts[layout].a_is_out || layouts[layout].b_is_out)) {
            continue;
        }
        for (ptrdiff_t n = 1; n <= SMALL_SIZES; n += quick ? 1 + (ptrdiff_t)random_below(19) : 1) {
            for (size_t out = (size_t)n % (pitch / result) * result; out < LINE; out += pitch) {
                compare(kernel, streaming, &layouts[layout], n, random_place(out, size));
            }
        }
        for (size_t i = 0; i < sizeof large_sizes / sizeof large_sizes[0]; i++) {
            const size_t out = random_below(LINE / result) * result;
            compare(kernel, streaming, &layouts[layout], large_sizes[i], random_place(out, size));
        }
    }
}

/* Each critical pair in each place of a vector, between operands that raise no flag. */
static void compare_critical_halves(const struct kernel *kernel, bool streaming)
{
    enum { ELEMENTS = 91 }; /* whole lines, a vector of any width, single elements */
    static uint16_t a[ELEMENTS], b[ELEMENTS];
    for (size_t lane = 0; lane < ELEMENTS; lane++) {
        a[lane] = b[lane] = 0x3c00; /* 1 */
    }
    for (size_t pair = 0; pair < sizeof critical_halves / sizeof critical_halves[0]; pair++) {
        for (size_t lane = 0; lane < ELEMENTS; lane++) {
            a[lane] = critical_halves[pair][0];
            b[lane] = critical_halves[pair][1];
            memcpy(room_a + GUARD, a, sizeof a);
            memcpy(room_b + GUARD, b, sizeof b);
            compare(kernel, streaming, &layouts[0], ELEMENTS, (struct place){0, 0, 0});
            a[lane] = b[lane] = 0x3c00;
        }
    }
}

static void compare_isa(const struct kernels *kernels, bool quick)
{
    for (const struct kernel *const *row = kernels->rows; *row != NULL; row++) {
        for (const struct kernel *kernel = *row; kernel->op != NULL; kernel++) {
            if (!has_reference(kernel)) {
                expect(false, "%s %c: not among the references of this test", kernel->op,
                       kernel->kind);
                continue;
            }
            fill(room_a, sizeof room_a, kernel->kind, kernel->item_size);
            fill(room_b, sizeof room_b, kernel->kind, kernel->item_size);
            const int variants = kernel->streaming != NULL ? 2 : 1;
            for (int streaming = 0; streaming < variants; streaming++) {
                compare_all(kernel, streaming, quick);
                if (kernel->kind == 'f' && kernel->item_size == sizeof(uint16_t)) {
                    compare_critical_halves(kernel, streaming);
                }
            }
        }
    }
}

/* ---- conversions ---- */

/* A real or imaginary part of a float of `bytes`, as a float32 and as a float64. */
struct part {
    float single;
    double value;
};

static struct part part_of_float(const char *from, size_t bytes)
{
    struct part part = {0, 0};
    uint16_t half;
    if (bytes == sizeof part.value) {
        memcpy(&part.value, from, sizeof part.value);
        part.single = (float)part.value;
    } else if (bytes == sizeof part.single) {
        memcpy(&part.single, from, sizeof part.single);
        part.value = part.single;
    } else { /* halves keep their bits: signaling NaNs, too */
        memcpy(&half, from, sizeof half);
        part.single = float_of_half(half);
        part.value = part.single;
        if ((half & 0x7c00) == 0x7c00) {
            const uint64_t bits =
                (uint64_t)(half & 0x8000) << 48 | 0x7ffULL << 52 | (uint64_t)(half & 0x3ff) << 42;
            memcpy(&part.value, &bits, sizeof part.value);
        }
    }
    return part;
}

static void store_part(struct part part, char *to, size_t bytes)
{
    if (bytes == sizeof(uint16_t)) { /* of an integer that needs no rounding */
        int exponent;
        const double fraction = frexp(fabs(part.value), &exponent);
        const unsigned normal =
            (unsigned)(exponent + 14) << 10 | ((unsigned)(fraction * 2048) & 0x3ff);
        const uint16_t half =
            (uint16_t)((signbit(part.value) ? 0x8000 : 0) | (part.value == 0 ? 0 : normal));
        memcpy(to, &half, bytes);
        return;
    }
    memcpy(to, bytes == sizeof part.single ? (const void *)&part.single : &part.value, bytes);
}

/* One element as C converts it; not inlined, as above. */
__attribute__((noinline)) static void convert_one(const struct element_conversion *conversion,
                                                  const char *from, char *to)
{
    const size_t bytes = conversion->item_size;
    const bool of_complex = conversion->kind == 'c', to_complex = conversion->to_kind == 'c';
    struct part real = {0, 0}, imaginary = {0, 0};
    uint64_t bits = 0;
    if (conversion->kind == 'f' || of_complex) {
        real = part_of_float(from, of_complex ? bytes / 2 : bytes);
    } else {
        memcpy(&bits, from, bytes);
        const int64_t extended = (int64_t)(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes);
        const bool is_signed = conversion->kind == 'i';
        bits = is_signed ? (uint64_t)extended : conversion->kind == 'b' ? bits != 0 : bits;
        real.single = is_signed ? (float)extended : (float)bits;
        real.value = is_signed ? (double)extended : (double)bits;
    }
    if (of_complex) {
        imaginary = part_of_float(from + bytes / 2, bytes / 2);
    }
    if (conversion->to_kind == 'b') {
        bits = conversion->kind == 'f' ? real.value != 0 : bits != 0;
    }
    if (conversion->to_kind == 'i' || conversion->to_kind == 'b') {
        memcpy(to, &bits, conversion->to_size);
        return;
    }
    const size_t part_bytes = conversion->to_size / (to_complex ? 2 : 1);
    store_part(real, to, part_bytes);
    if (to_complex) {
        store_part(imaginary, to + part_bytes, part_bytes);
    }
}

static void compare_conversion(const struct element_conversion *conversion, ptrdiff_t step,
                               ptrdiff_t n)
{
    const char *from = room_a + GUARD + (step < 0 ? -step * n : 0);
    memset(actual, 0x5a, sizeof actual);
    memset(expected, 0x5a, sizeof expected);
    for (ptrdiff_t i = 0; i < n; i++) {
        convert_one(conversion, from + i * step,
                    expected + GUARD + i * (ptrdiff_t)conversion->to_size);
    }
    conversion->convert(from, step, actual + GUARD, n);
    expect_clean_upper_halves("conversion");
    expect(memcmp(actual, expected, sizeof actual) == 0, "%c%zu to %c%zu, %td of step %td",
           conversion->kind, conversion->item_size, conversion->to_kind, conversion->to_size, n,
           step);
}

static void compare_conversions(const struct kernels *kernels)
{
    static const ptrdiff_t sizes[] = {1, 2, 7, 15, 16, 17, 33, 255, 256, 257, 1000};
    for (const struct element_conversion *row = kernels->conversions; row->convert != NULL; row++) {
        const ptrdiff_t size = (ptrdiff_t)row->item_size;
        const bool is_complex = row->kind == 'c';
        fill(room_a, sizeof room_a, row->kind == 'f' || is_complex ? 'f' : 'i',
             is_complex ? row->item_size / 2 : row->item_size);
        for (int step = -2; step <= 3; step++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                compare_conversion(row, step * size, sizes[i]);
            }
        }
    }
}

/* ---- kernels of mixed dtypes ---- */

static const struct element_conversion *find_conversion(const struct kernels *kernels,
                                                        convert_elements *convert)
{
    const struct element_conversion *row = kernels->conversions;
    while (row->convert != NULL && row->convert != convert) {
        row++;
    }
    return row->convert != NULL ? row : NULL;
}

/* An element as the kernel computes it. */
static void load_one(const struct element_conversion *conversion, size_t size, const char *from,
                     char *to)
{
    if (conversion != NULL) {
        convert_one(conversion, from, to);
    } else {
        memcpy(to, from, size);
    }
}

static void compare_mixed(const struct kernel *kernel, const struct mixed_kernel *mixed,
                          const struct element_conversion *const conversion[2], bool streaming,
                          const struct layout *layout, ptrdiff_t n)
{
    enum { REPORTED_BY_NUMPY = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW };
    const size_t size = kernel->item_size;
    const int steps[] = {layout->a_is_out ? layout->out_step : layout->a_step,
                         layout->b_is_out ? layout->out_step : layout->b_step};
    char *const rooms[] = {room_a, room_b};
    ptrdiff_t step[3];
    char *data[3];
    step[2] = (ptrdiff_t)size * layout->out_step;
    data[2] = first_of(actual, random_below(LINE / size) * size, step[2], n);
    char *wanted = expected + (data[2] - actual);
    const size_t used = 2 * (size_t)GUARD + LINE + size * WIDEST_STEP * (size_t)n;
    for (int in = 0; in < 2; in++) {
        const size_t stored = conversion[in] != NULL ? conversion[in]->item_size : size;
        step[in] = (ptrdiff_t)stored * steps[in];
        data[in] = (in == 0 ? layout->a_is_out : layout->b_is_out)
                       ? data[2]
                       : first_of(rooms[in], random_below(LINE / stored) * stored, step[in], n);
    }
    memcpy(actual, layout->b_is_out ? room_b : room_a, used);
    memcpy(expected, actual, used);
    feclearexcept(FE_ALL_EXCEPT);
    for (ptrdiff_t k = 0; k < n; k++) {
        char loaded[2][sizeof(double)];
        for (int in = 0; in < 2; in++) {
            load_one(conversion[in], size, data[in] + k * step[in], loaded[in]);
        }
        reference_element(kernel, loaded[0], loaded[1], wanted + k * step[2]);
    }
    const int flags = fetestexcept(REPORTED_BY_NUMPY);
    feclearexcept(FE_ALL_EXCEPT);
    (streaming ? mixed->streaming : mixed->cached)(data, step, n);
    expect_clean_upper_halves(kernel->op);
    const int raised = fetestexcept(REPORTED_BY_NUMPY);
    if (kernel->kind == 'f') {
        accept_nans(kernel, data[2], wanted, step[2], n);
    }
    const char kinds[] = {conversion[0] != NULL ? conversion[0]->kind : '-',
                          conversion[1] != NULL ? conversion[1]->kind : '-'};
    expect(memcmp(actual, expected, used) == 0,
           "%s %c%zu of %c and %c, steps %td and %td, %s%s, n %td: wrong bytes", kernel->op,
           kernel->kind, size, kinds[0], kinds[1], step[0], step[1], layout->name,
           streaming ? ", streaming" : "", n);
    expect(raised == flags, "%s %c%zu of %c and %c, n %td: raises %#x, not %#x", kernel->op,
           kernel->kind, size, kinds[0], kinds[1], n, (unsigned)raised, (unsigned)flags);
}

static void compare_mixed_layouts(const struct kernels *kernels, const struct kernel *kernel,
                                  const struct mixed_kernel *mixed, bool quick)
{
    const struct element_conversion *const conversion[] = {
        find_conversion(kernels, mixed->convert[0]), find_conversion(kernels, mixed->convert[1])};
    char *const rooms[] = {room_a, room_b};
    for (int in = 0; in < 2; in++) {
        const char kind = conversion[in] != NULL ? conversion[in]->kind : kernel->kind;
        expect(mixed->convert[in] == NULL || conversion[in] != NULL, "%s: no conversion",
               kernel->op);
        fill(rooms[in], ROOM_BYTES, kind == 'f' ? 'f' : 'i',
             conversion[in] != NULL ? conversion[in]->item_size : kernel->item_size);
    }
    for (int i = 0; i < LAYOUTS; i++) {
        if ((layouts[i].a_is_out && conversion[0] != NULL) ||
            (layouts[i].b_is_out && conversion[1] != NULL)) {
            continue;
        }
        for (ptrdiff_t n = 1; n < 1500; n += 1 + (ptrdiff_t)random_below(quick ? 400 : 40)) {
            compare_mixed(kernel, mixed, conversion, false, &layouts[i], n);
            if (mixed->streaming != NULL) {
                compare_mixed(kernel, mixed, conversion, true, &layouts[i], n);
            }
        }
    }
}

static void compare_mixed_kernels(const struct kernels *kernels, bool quick)
{
    for (const struct kernel *const *row = kernels->rows; *row != NULL; row++) {
        for (const struct kernel *kernel = *row; kernel->op != NULL; kernel++) {
            const struct mixed_kernel *mixed = kernel->mixed;
            for (; mixed != NULL && mixed->cached != NULL; mixed++) {
                compare_mixed_layouts(kernels, kernel, mixed, quick);
            }
        }
    }
}

/* A restriction hides the ISAs above it, and only them. */
static void check_selection(const struct kernels *kernels)
{
    expect(kernels_restrict("no such set") == -1, "an unknown ISA was accepted");
    expect(kernels_restrict(kernels->isa) == 0, "%s was refused", kernels->isa);
    expect(strcmp(kernels_selected_isa(), kernels->isa) == 0, "%s selected, not %s",
           kernels_selected_isa(), kernels->isa);
    for (const struct kernel *const *row = kernels->rows; *row != NULL; row++) {
        for (const struct kernel *kernel = *row; kernel->op != NULL; kernel++) {
            expect(kernels_find(kernel->op, kernel->kind, kernel->item_size) == kernel,
                   "%s %c%zu: not found among those of %s", kernel->op, kernel->kind,
                   kernel->item_size, kernels->isa);
        }
    }
    expect(kernels_find("no such op", 'f', 4) == NULL, "a kernel for an unknown op");
    expect(kernels_find("add", 'f', 3) == NULL, "a kernel for an unknown size");
    kernels_restrict(NULL);
}

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static double best_ns(elementwise_kernel *run, size_t size, bool scalar)
{
    char *const data[] = {room_a + GUARD, room_b + GUARD + 16, actual + GUARD + 32};
    const ptrdiff_t step[] = {(ptrdiff_t)size, scalar ? 0 : (ptrdiff_t)size, (ptrdiff_t)size};
    double best = INFINITY;
    for (int sample = 0; sample < 20; sample++) {
        const int64_t start = now_ns();
        for (int call = 0; call < 100; call++) {
            run(data, step, TIMED_ELEMENTS);
        }
        best = fmin(best, (double)(now_ns() - start) / 100);
    }
    return best;
}

static void time_isa(const struct kernels *kernels)
{
    printf("%s, ns per %d elements: cached, cached with a scalar, streaming\n", kernels->isa,
           TIMED_ELEMENTS);
    for (const struct kernel *const *row = kernels->rows; *row != NULL; row++) {
        for (const struct kernel *kernel = *row; kernel->op != NULL; kernel++) {
            const size_t size = kernel->item_size;
            memset(room_a, 1, sizeof room_a); /* no denormals: they would dominate */
            memset(room_b, 1, sizeof room_b);
            printf("%-9s %c%zu %8.0f %8.0f", kernel->op, kernel->kind, size,
                   best_ns(kernel->cached, size, false), best_ns(kernel->cached, size, true));
            if (kernel->streaming != NULL) {
                printf(" %8.0f", best_ns(kernel->streaming, size, false));
            }
            putchar('\n');
        }
    }
}

int main(int argc, char *argv[])
{
    const bool timed = argc > 1 && strcmp(argv[1], "--time") == 0;
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const int options = timed || quick;
    const char *only = argc > 1 + options ? argv[1 + options] : NULL;
    bool known = false, ran = false;
    for (int i = 0; kernels_isa(i) != NULL; i++) {
        if (only != NULL && strcmp(only, kernels_isa(i)) != 0) {
            continue;
        }
        known = true;
        const struct kernels *kernels = kernels_of_isa(kernels_isa(i));
        if (kernels == NULL) {
            printf("%s: this processor lacks it\n", kernels_isa(i));
            continue;
        }
        ran = true;
        if (timed) {
            time_isa(kernels);
            continue;
        }
        const long before = expectations;
        check_selection(kernels);
        compare_isa(kernels, quick);
        compare_conversions(kernels);
        compare_mixed_kernels(kernels, quick);
        printf("%s: %ld comparisons\n", kernels->isa, expectations - before);
    }
    if (!known) {
        fprintf(stderr, "%s: no such instruction set in this build\n", only);
        return EXIT_FAILURE;
    }
    if (!ran) {
        return SKIPPED;
    }
    return timed ? EXIT_SUCCESS : expect_result("kernels");
}
