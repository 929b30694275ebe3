/* Dispatches a call of a generalized ufunc's loop: several threads call it, each for some of the items. */
#include "stack_loop.h"

#include "dtypes.h"
#include "elementwise_loop.h"
#include "errors.h"
#include "numpy_private.h"
#include "options.h"
#include "policy_in_use.h"

#include "kernels/linalg/linalg_kernels.h"
#include "kernels/sizes.h"
#include "memory/workspace.h"

#include <math.h>
#include <string.h>

static const struct inner_loop_hooks hooks = {failure_before_threads, failure_after_threads,
                                              failure_before_chunk, failure_after_chunk};

enum {
    KERNELS_AT_ONCE = 16, /* lanes of float32 in the widest vectors */
    ORDER_PER_MATRIX = 8, /* fewer matrices for their order fill too few lanes: LAPACK is faster */
};

/* Other packages may have other operations of the same names. */
static bool is_of_numpys_linalg(const PyUFuncObject *ufunc)
{
    PyObject *module = PyImport_ImportModule("numpy.linalg._umath_linalg");
    PyObject *own = module != NULL ? PyObject_GetAttrString(module, ufunc->name) : NULL;
    PyErr_Clear();
    Py_XDECREF(own);
    Py_XDECREF(module);
    return own == (const PyObject *)ufunc;
}

bool stack_loop_initialize(struct stack_loop *loop, const PyUFuncObject *ufunc, int row,
                           PyObject *serial_if)
{
    const char *types = ufunc->types + row * ufunc->nargs;
    if (ufunc->functions[row] == NULL || ufunc->nargs > STACK_MOST_OPERANDS ||
        ufunc->core_num_dim_ix >= STACK_MOST_DIMENSIONS ||
        !loop_is_parallel(types, ufunc->nin, ufunc->nargs)) {
        return false;
    }
    *loop = (struct stack_loop){
        .function = ufunc->functions[row],
        .function_data = ufunc->data != NULL ? ufunc->data[row] : NULL,
        .ufunc = ufunc,
        .kind = dtype_of(types[0]).kind,
        .serial_if = serial_if,
    };
    if (linalg_kernel_find(ufunc->name, loop->kind, dtype_of(types[0]).size, 1) != NULL &&
        is_of_numpys_linalg(ufunc)) {
        loop->linalg = ufunc->name;
        loop->in_place = strncmp(ufunc->name, "qr_r_raw", 8) == 0;
    }
    for (int op = 0; op < ufunc->nargs; op++) {
        loop->item_size[op] = (ptrdiff_t)dtype_of(types[op]).size;
    }
    return true;
}

/* One call, as NumPy describes it: the number of items and the core dimensions; the steps between items and,
 * for one operand after the other, those of its core dimensions. */
struct stack_call {
    const struct stack_loop *loop;
    char **args;
    const npy_intp *dimensions, *steps;
    const struct linalg_row *kernel; /* NULL: the loop computes all */
    struct failure failure;
};

/* What an operand has in each item. */
struct core {
    int axes;
    npy_intp n[NPY_MAXDIMS];
    const npy_intp *step;
};

static void core_of(const struct stack_call *call, int op, struct core *core)
{
    const PyUFuncObject *ufunc = call->loop->ufunc;
    const int first = ufunc->core_offsets[op];
    core->axes = ufunc->core_num_dims[op];
    core->step = call->steps + ufunc->nargs + first;
    for (int i = 0; i < core->axes; i++) {
        core->n[i] = call->dimensions[1 + ufunc->core_dim_ixs[first + i]];
    }
}

static ptrdiff_t elements_of_item(const struct stack_call *call)
{
    ptrdiff_t elements = 0;
    for (int op = 0; op < call->loop->ufunc->nargs; op++) {
        struct core core;
        core_of(call, op, &core);
        ptrdiff_t product = 1;
        for (int i = 0; i < core.axes; i++) {
            product *= core.n[i];
        }
        elements += product;
    }
    return elements;
}

/* Whether an output's items share no byte: each step, from the smallest on, goes beyond all that the smaller
 * ones reach. */
static bool items_are_apart(const struct stack_call *call, int op)
{
    struct core core;
    core_of(call, op, &core);
    npy_intp n[NPY_MAXDIMS + 1] = {call->dimensions[0]}, step[NPY_MAXDIMS + 1] = {call->steps[op]};
    ptrdiff_t reach = call->loop->item_size[op];
    for (int i = 0; i < core.axes; i++) {
        n[i + 1] = core.n[i];
        step[i + 1] = core.step[i];
        if (n[i + 1] == 0) {
            return true;
        }
    }
    for (int left = core.axes + 1; left > 0; left--) {
        int least = 0;
        for (int i = 1; i < left; i++) {
            least = magnitude(step[i]) < magnitude(step[least]) ? i : least;
        }
        if (n[least] > 1 && magnitude(step[least]) < reach) {
            return false;
        }
        reach += (n[least] - 1) * magnitude(step[least]);
        n[least] = n[left - 1];
        step[least] = step[left - 1];
    }
    return true;
}

/* NumPy has copied what inputs and outputs share, but for an input that is written, too. */
static bool outputs_are_apart(const struct stack_call *call)
{
    const PyUFuncObject *ufunc = call->loop->ufunc;
    for (int op = call->loop->in_place ? 0 : ufunc->nin; op < ufunc->nargs; op++) {
        if (!items_are_apart(call, op)) {
            return false;
        }
    }
    return true;
}

/* Loops may advance what they are given. */
static void call_function(const struct stack_call *call, ptrdiff_t first, ptrdiff_t count)
{
    const struct stack_loop *loop = call->loop;
    char *args[STACK_MOST_OPERANDS];
    npy_intp dimensions[STACK_MOST_DIMENSIONS];
    for (int op = 0; op < loop->ufunc->nargs; op++) {
        args[op] = call->args[op] + first * call->steps[op];
    }
    memcpy(dimensions, call->dimensions,
           sizeof *dimensions * (size_t)(1 + loop->ufunc->core_num_dim_ix));
    dimensions[0] = count;
    loop->function(args, dimensions, call->steps, loop->function_data);
}

/* ---- kernels for small matrices ---- */

/* Of long columns LAPACK computes numbers faster: so many rows count as one of a square matrix. */
enum { ROWS_OF_COLUMN = 3 };

/* The order of the square matrices that are as much work as those of a QR decomposition; 0 if no kernel
 * computes these. */
static ptrdiff_t order_of_qr(const struct stack_call *call)
{
    const struct stack_loop *loop = call->loop;
    const ptrdiff_t rows = call->dimensions[1], columns = call->dimensions[2];
    const bool complete = strcmp(loop->linalg, "qr_complete") == 0;
    if ((complete && rows < columns) ||
        (loop->ufunc->core_num_dim_ix > 2 && call->dimensions[3] != size_min(rows, columns))) {
        return 0;
    }
    const double numbers = (double)rows * (double)(complete ? rows : columns);
    return size_max((ptrdiff_t)ceil(sqrt(numbers)), rows / ROWS_OF_COLUMN);
}

static const struct linalg_row *find_kernel(const struct stack_call *call)
{
    const struct stack_loop *loop = call->loop;
    if (loop->linalg == NULL || (loop->in_place && !outputs_are_apart(call))) {
        return NULL;
    }
    /* All others are square, but for right-hand sides. */
    const npy_intp *n = call->dimensions + 1;
    const bool is_qr = strncmp(loop->linalg, "qr_", 3) == 0;
    const bool may_differ = is_qr || strcmp(loop->linalg, "solve") == 0;
    for (int i = 0; i < loop->ufunc->core_num_dim_ix; i++) {
        if (n[i] == 0 || (n[i] != n[0] && !may_differ)) {
            return NULL;
        }
    }
    const ptrdiff_t order = is_qr ? order_of_qr(call) : n[0];
    if (order == 0 || order / ORDER_PER_MATRIX > call->dimensions[0]) {
        return NULL;
    }
    return linalg_kernel_find(loop->linalg, loop->kind, (size_t)loop->item_size[0], order);
}

/* Flags that a kernel raises mean nothing. */
static uint64_t call_kernel(const struct stack_call *call, ptrdiff_t first, ptrdiff_t count,
                            char *workspace)
{
    const PyUFuncObject *ufunc = call->loop->ufunc;
    struct linalg_stack stack = {
        .count = count,
        .n = call->dimensions[1],
        .columns = ufunc->core_num_dim_ix > 1 ? call->dimensions[2] : 1,
        .workspace = workspace,
    };
    for (int op = 0; op < ufunc->nargs; op++) {
        struct core core;
        core_of(call, op, &core);
        stack.operand[op] = (struct linalg_operand){
            .data = call->args[op] + first * call->steps[op],
            .step = call->steps[op],
            .row_step = core.axes > 0 ? core.step[0] : 0,
            .column_step = core.axes > 1 ? core.step[1] : 0,
        };
    }
    const int before = errors_raised_by_kernel();
    const uint64_t left = call->kernel->kernel(&stack);
    const int raised = errors_raised_by_kernel() & ~before;
    if (raised != 0) {
        feclearexcept(raised);
    }
    return left;
}

/* NumPy's loop, and LAPACK in it, gets what kernels leave: for the same errors. */
static void call_kernels(const struct stack_call *call, ptrdiff_t first, ptrdiff_t count)
{
    const size_t bytes = call->kernel->workspace_bytes(call->dimensions[1]);
    const struct workspace workspace = workspace_take(bytes);
    if (workspace.data == NULL) {
        call_function(call, first, count);
        return;
    }
    for (ptrdiff_t i = 0; i < count; i += LINALG_MOST_AT_ONCE) {
        const ptrdiff_t taken = size_min(LINALG_MOST_AT_ONCE, count - i);
        const uint64_t left = call_kernel(call, first + i, taken, workspace.data);
        ptrdiff_t start = 0;
        while (left != 0 && start < taken) {
            ptrdiff_t end = start;
            while (end < taken && (left >> end & 1) != 0) {
                end++;
            }
            if (end > start) {
                call_function(call, first + i + start, end - start);
            }
            start = end + 1;
        }
    }
    workspace_give_back(workspace);
}

static bool run_items(void *context, ptrdiff_t first, ptrdiff_t count)
{
    struct stack_call *call = context;
    if (call->kernel != NULL) { /* no loop of NumPy's linear algebra raises exceptions */
        call_kernels(call, first, count);
        return true;
    }
    hooks.before_chunk(&call->failure);
    call_function(call, first, count);
    PyThreadState *state = PyGILState_GetThisThreadState();
    const bool has_failed = state != NULL && private_has_exception(state);
    hooks.after_chunk(&call->failure, first);
    return !has_failed;
}

static bool allows_threads(void *context)
{
    const struct stack_call *call = context;
    return loop_allows_threads(call->loop->serial_if);
}

static _Thread_local unsigned long long kernel_calls;

unsigned long long stack_loop_kernel_calls(void)
{
    return kernel_calls;
}

/* At once, in this thread. */
static void run_all(const struct stack_call *call)
{
    const struct stack_loop *loop = call->loop;
    if (call->kernel != NULL) {
        call_kernels(call, 0, call->dimensions[0]);
    } else {
        loop->function(call->args, call->dimensions, call->steps, loop->function_data);
    }
}

void stack_loop_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    struct stack_loop *loop = data;
    const ptrdiff_t count = dimensions[0];
    if (count <= 1) {
        loop->function(args, dimensions, steps, loop->function_data);
        return;
    }
    struct stack_call call = {.loop = loop, .args = args, .dimensions = dimensions, .steps = steps};
    const ptrdiff_t item_elements = size_max(elements_of_item(&call), 1);
    call.kernel = find_kernel(&call);
    kernel_calls += call.kernel != NULL;
    if (stack_is_short(&policy_in_use, &loop->speed, count * item_elements) ||
        !outputs_are_apart(&call)) {
        run_all(&call);
        return;
    }
    struct options_scope scope;
    options_enter_loop(&scope);
    const struct stack stack = {
        .policy = &policy_in_use,
        .speed = &loop->speed,
        .run = run_items,
        .context = &call,
        .hooks = &hooks,
        .hook_data = &call.failure,
        .allows_threads = loop->serial_if != NULL ? allows_threads : NULL,
        .count = count,
        .item_elements = item_elements,
        .at_once = call.kernel != NULL ? KERNELS_AT_ONCE : 1,
    };
    stack_run(&stack);
    options_leave(&scope);
}
