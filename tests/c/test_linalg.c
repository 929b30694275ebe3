/* Every kernel for stacks of small matrices of one instruction set against long double.
 * Usage: test_linalg [--quick] [ISA]; without an ISA all that this processor has. --quick tries fewer
 * layouts, for emulators and sanitizers. */
#include "small_results.h"

#include "expect.h"
#include "kernels/kernels.h"
#include "kernels/linalg/linalg_kernels.h"
#include "upper_halves.h"

#include <string.h>
#include <sys/mman.h>

enum {
    MOST_OPERANDS = 4,
    MATRICES = LINALG_MOST_AT_ONCE,
    FEW_MATRICES = 3 * KINDS, /* of each kind one, as check_alone() needs */
    MOST_OF_LARGE_ONES = 20,
    MOST_ITEMS = 3 * (MOST_ORDER + 2) * (MOST_ORDER + 2) * (MATRICES + 1),
    ROOM_BYTES = 16 * MOST_ITEMS + 1024,
    PAGE_BYTES = 65536, /* no machine's pages are larger */
    GUARD = 0x5A,
    MARGIN = 512, /* bytes beside an operand that are looked at */
};

/* How a stack of matrices lies in memory; gaps count items. */
struct spacing {
    const char *name;
    bool by_columns, stack_innermost, reversed;
    int gap, row_gap, stack_gap;
    int shift;     /* bytes */
    bool repeated; /* inputs: the first matrix stands for all */
};

static const struct spacing spacings[] = {
    {.name = "contiguous"},
    {.name = "columns first", .by_columns = true},
    {.name = "part of larger matrices", .row_gap = 2, .stack_gap = 5},
    {.name = "every other", .gap = 1, .stack_gap = 3},
    {.name = "reversed", .reversed = true},
    {.name = "matrices innermost", .stack_innermost = true},
    {.name = "unaligned", .shift = 1, .stack_gap = 1},
    {.name = "repeated", .repeated = true},
};

enum { SPACINGS = sizeof spacings / sizeof spacings[0] };

enum { WORKSPACE_BYTES = 2 << 20, LINE_BYTES = 64 };

/* The workspace ends where its room does. */
static char *workspace_room, *workspace;

struct layout {
    struct linalg_operand operand;
    size_t bytes;
};

static struct layout layout_of(const struct spacing *spacing, const struct shape *shape,
                               ptrdiff_t count, char *room)
{
    const ptrdiff_t item = (ptrdiff_t)shape->item_size;
    const bool by_columns = spacing->by_columns, innermost = spacing->stack_innermost;
    const ptrdiff_t inner_count = by_columns ? shape->rows : shape->columns;
    const ptrdiff_t outer_count = by_columns ? shape->columns : shape->rows;
    const ptrdiff_t first = item * (1 + spacing->gap);
    const ptrdiff_t inner = innermost ? first * count : first;
    const ptrdiff_t outer = inner * inner_count + spacing->row_gap * item;
    const ptrdiff_t stack = innermost ? first : outer * outer_count + spacing->stack_gap * item;
    struct layout made = {{room + spacing->shift, stack, outer, inner}, 0};
    const ptrdiff_t last =
        (inner_count - 1) * inner + (outer_count - 1) * outer + (count - 1) * stack;
    made.bytes = (size_t)(last + item + spacing->shift);
    if (by_columns) {
        made.operand.row_step = inner;
        made.operand.column_step = outer;
    }
    if (spacing->reversed) {
        made.operand.data += last;
        made.operand.step = -made.operand.step;
        made.operand.row_step = -made.operand.row_step;
        made.operand.column_step = -made.operand.column_step;
    }
    return made;
}

/* Copies a contiguous matrix to or from its place. */
static void place(const struct linalg_operand *at, const struct shape *shape, ptrdiff_t index,
                  char *matrix, bool back)
{
    for (ptrdiff_t i = 0; i < shape->rows; i++) {
        for (ptrdiff_t j = 0; j < shape->columns; j++) {
            char *there = at->data + index * at->step + i * at->row_step + j * at->column_step;
            char *here = matrix + (i * shape->columns + j) * (ptrdiff_t)shape->item_size;
            memcpy(back ? here : there, back ? there : here, shape->item_size);
        }
    }
}

/* The matrices of a test, contiguous, with what a kernel makes of each of them alone. */
static struct {
    char *operands[MOST_OPERANDS];
    char *before; /* the first operand, before it is computed in place */
    bool left[MATRICES];
} master;

static char *rooms[MOST_OPERANDS], *actual[MOST_OPERANDS];

/* Memory with nothing around it. */
static char *isolated(size_t bytes)
{
    const size_t whole = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    char *base =
        mmap(NULL, whole + 2 * (size_t)PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + PAGE_BYTES, whole, PROT_READ | PROT_WRITE) != 0) {
        perror("mmap");
        exit(EXIT_FAILURE);
    }
    return base + PAGE_BYTES;
}

static const size_t room_bytes = (ROOM_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

static size_t matrix_bytes(const struct shape *shape)
{
    return (size_t)(shape->rows * shape->columns) * shape->item_size;
}

static void run_alone(const struct problem *problem, ptrdiff_t matrices)
{
    for (ptrdiff_t m = 0; m < matrices; m++) {
        struct linalg_stack stack = {1, problem->n, problem->columns, {{0}}, workspace};
        for (int i = 0; i < problem->operands; i++) {
            const struct shape *shape = &problem->shapes[i];
            const ptrdiff_t item = (ptrdiff_t)shape->item_size;
            stack.operand[i] = (struct linalg_operand){
                master.operands[i] + m * (ptrdiff_t)matrix_bytes(shape),
                0,
                shape->columns * item,
                item,
            };
        }
        const uint64_t left = problem->row->kernel(&stack);
        expect_clean_upper_halves(problem->name);
        expect(left <= 1, "%s: bits of matrices that are not there", problem->name);
        master.left[m] = left != 0;
    }
}

/* Of large matrices one of each kind: exact arithmetic takes long, and more so in an emulator. */
static void check_alone(const struct problem *problem, bool quick)
{
    const bool is_small = problem->n <= (quick ? MOST_QUICK_ORDER : MOST_SMALL_ORDER);
    for (ptrdiff_t m = 0; m < (is_small ? MATRICES : FEW_MATRICES);
         m += is_small && !quick ? 1 : 3) {
        char *operands[MOST_OPERANDS];
        for (int i = 0; i < problem->operands; i++) {
            operands[i] = master.operands[i] + m * (ptrdiff_t)matrix_bytes(&problem->shapes[i]);
        }
        check_result(problem, m, master.before + m * (ptrdiff_t)matrix_bytes(&problem->shapes[0]),
                     operands, master.left[m]);
    }
}

/* Runs `count` of the matrices from the `first` on, in another layout: the same bits, and nothing else is
 * written. `at_end`: the room ends with the operand. */
static void check_layout(const struct problem *problem, const struct spacing *in,
                         const struct spacing *out, ptrdiff_t first, ptrdiff_t count, bool at_end)
{
    struct linalg_stack stack = {count, problem->n, problem->columns, {{0}}, workspace};
    struct layout layouts[MOST_OPERANDS] = {{.bytes = 0}};
    size_t starts[MOST_OPERANDS] = {0}, sizes[MOST_OPERANDS] = {0};
    for (int i = 0; i < problem->operands; i++) {
        const struct shape *shape = &problem->shapes[i];
        const bool is_input = i < problem->inputs;
        const struct spacing *spacing = is_input ? in : out;
        struct layout *layout = &layouts[i];
        *layout = layout_of(spacing, shape, count, actual[i]);
        starts[i] = at_end ? room_bytes - layout->bytes - MARGIN : 0;
        sizes[i] = layout->bytes + MARGIN;
        layout->operand.data += at_end ? starts[i] + MARGIN : 0;
        memset(actual[i] + starts[i], GUARD, sizes[i]);
        char *source = i == 0 ? master.before : master.operands[i];
        for (ptrdiff_t m = 0; m < count && is_input; m++) {
            place(&layout->operand, shape, m, source + (first + m) * (ptrdiff_t)matrix_bytes(shape),
                  false);
        }
        if (is_input && spacing->repeated) {
            layout->operand.step = 0;
        }
        memcpy(rooms[i] + starts[i], actual[i] + starts[i], sizes[i]);
        stack.operand[i] = layout->operand;
    }
    const uint64_t left = problem->row->kernel(&stack);
    for (ptrdiff_t m = 0; m < count; m++) {
        const ptrdiff_t source = in->repeated ? first : first + m;
        expect((left >> m & 1) == (master.left[source] ? 1 : 0),
               "%s: %s to %s: matrix %td is left or not by its place", problem->name, in->name,
               out->name, m);
        for (int i = problem->in_place ? 0 : problem->inputs; i < problem->operands; i++) {
            const struct shape *shape = &problem->shapes[i];
            char *wanted = master.operands[i] + source * (ptrdiff_t)matrix_bytes(shape);
            struct linalg_operand there = layouts[i].operand;
            if (master.left[source] && i >= problem->inputs) {
                place(&there, shape, m, wanted, true);
            }
            there.data += rooms[i] - actual[i];
            place(&there, shape, m, wanted, false);
        }
    }
    expect(count == 64 || left >> count == 0, "%s: bits past the last matrix", problem->name);
    for (int i = 0; i < problem->operands; i++) {
        expect(memcmp(actual[i] + starts[i], rooms[i] + starts[i], sizes[i]) == 0,
               "%s, n %td, %td columns, %td matrices: %s to %s: operand %d", problem->name,
               problem->n, problem->columns, count, in->name, out->name, i);
    }
}

static void check_problem(const struct problem *problem, bool quick)
{
    const bool is_large = problem->n > MOST_SMALL_ORDER, is_quick = quick || is_large;
    const ptrdiff_t matrices = quick && is_large ? FEW_MATRICES : MATRICES;
    for (int i = 0; i < problem->inputs; i++) {
        for (ptrdiff_t m = 0; m < matrices; m++) {
            fill_input(problem, i, m,
                       master.operands[i] + m * (ptrdiff_t)matrix_bytes(&problem->shapes[i]));
        }
    }
    for (ptrdiff_t m = 0; m < matrices && is_qr(problem) && !problem->in_place; m++) {
        fill_taus(problem, master.operands[0] + m * (ptrdiff_t)matrix_bytes(&problem->shapes[0]),
                  master.operands[1] + m * (ptrdiff_t)matrix_bytes(&problem->shapes[1]));
    }
    memcpy(master.before, master.operands[0], (size_t)matrices * matrix_bytes(&problem->shapes[0]));
    run_alone(problem, matrices);
    check_alone(problem, quick);
    for (int in = 0; in < SPACINGS; in++) {
        for (int out = 0; out < SPACINGS; out++) {
            if (spacings[out].repeated || (spacings[in].repeated && problem->in_place) ||
                (is_quick && in != out && in != SPACINGS - 1)) {
                continue;
            }
            const ptrdiff_t count =
                1 + (ptrdiff_t)random_below(is_quick ? MOST_OF_LARGE_ONES : MATRICES);
            const ptrdiff_t first = (ptrdiff_t)random_below((size_t)(matrices - count + 1));
            check_layout(problem, &spacings[in], &spacings[out], first, count,
                         random_below(2) != 0);
        }
    }
    check_layout(problem, &spacings[0], &spacings[0], 0, matrices, true);
}

static ptrdiff_t next_order(ptrdiff_t n, ptrdiff_t most, bool quick)
{
    const bool is_small = n < MOST_SMALL_ORDER;
    const ptrdiff_t step = n < (quick ? 5 : 9) ? 1 : (is_small ? 3 : 25) * (quick ? 3 : 1);
    return n < most && n + step > most ? most : n + step;
}

/* Right-hand sides of solve, or the other side of the matrices of qr, which have no more numbers than the
 * largest square ones. */
static ptrdiff_t other_size(const struct linalg_row *row, ptrdiff_t n)
{
    const ptrdiff_t most = row->most_n * row->most_n / n;
    if (strcmp(row->gufunc, "solve") == 0) {
        return 1 + (ptrdiff_t)random_below(MOST_SIDES);
    }
    return 1 + (ptrdiff_t)random_below((size_t)(most < row->most_n ? most : row->most_n));
}

/* Whether an earlier row has this kernel for another of NumPy's names. */
static bool is_other_name(const struct linalg_dtype *dtype, const struct linalg_row *row)
{
    const struct linalg_row *first = dtype->rows;
    while (first->kernel != row->kernel) {
        first++;
    }
    return first != row && first->most_n == row->most_n;
}

static void check_row(const struct linalg_dtype *dtype, const struct linalg_row *row, bool quick)
{
    const bool of_qr = strncmp(row->gufunc, "qr_", 3) == 0;
    const bool complete = strcmp(row->gufunc, "qr_complete") == 0;
    const ptrdiff_t most = is_other_name(dtype, row) ? 0 : row->most_n;
    for (ptrdiff_t n = 1; n <= most; n = next_order(n, most, quick)) {
        const int sizes = strcmp(row->gufunc, "solve") == 0 || of_qr ? 3 : 1;
        for (int size = 0; size < sizes; size++) {
            const ptrdiff_t other = of_qr && size == 0 ? n : other_size(row, n);
            const bool is_tall = size == 1 && of_qr && !complete;
            const struct problem problem = problem_of(dtype, row, is_tall ? other : n,
                                                      is_tall                 ? n
                                                      : complete && other > n ? n
                                                                              : other);
            const size_t bytes = row->workspace_bytes(problem.n);
            workspace = workspace_room + (WORKSPACE_BYTES - bytes) / LINE_BYTES * LINE_BYTES;
            expect(bytes <= WORKSPACE_BYTES, "%s, n %td: workspace of %zu bytes", problem.name,
                   problem.n, bytes);
            check_problem(&problem, quick);
        }
    }
    expect(linalg_kernel_find(row->gufunc, dtype->kind, dtype->item_size, row->most_n) == row,
           "%s is not found", row->gufunc);
    expect(linalg_kernel_find(row->gufunc, dtype->kind, dtype->item_size, 1000) == NULL,
           "%s is found for large matrices", row->gufunc);
}

int main(int argc, char *argv[])
{
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const char *only = argc > 1 + quick ? argv[1 + quick] : NULL;
    bool ran = false;
    for (int i = 0; i < MOST_OPERANDS; i++) {
        master.operands[i] = isolated(ROOM_BYTES);
        rooms[i] = isolated(ROOM_BYTES);
        actual[i] = isolated(ROOM_BYTES);
    }
    master.before = isolated(ROOM_BYTES);
    workspace_room = isolated(WORKSPACE_BYTES);
    for (int i = 0; kernels_isa(i) != NULL; i++) {
        const struct linalg_dtype *dtype;
        for (int d = 0; (dtype = linalg_dtype_of_isa(kernels_isa(i), d)) != NULL; d++) {
            if (only != NULL && strcmp(only, kernels_isa(i)) != 0) {
                continue;
            }
            ran = true;
            kernels_restrict(kernels_isa(i));
            for (const struct linalg_row *row = dtype->rows; row->gufunc != NULL; row++) {
                check_row(dtype, row, quick);
            }
            kernels_restrict(NULL);
        }
    }
    return ran ? expect_result("linalg") : SKIPPED;
}
