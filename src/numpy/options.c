#include "options.h"

#include "devices.h"
#include "threads/limit.h"

enum { MOST_THREADS = 65536 };

/* ---- the process ---- */

static struct {
    _Atomic int device, precision, kernel, memory;
} of_process = {OFFLOAD_AUTO, PRECISION_IEEE, GEMM_AUTO, MEMORY_SYSTEM};

/* ---- blocks ---- */

/* A `with config(...)` block. Contexts copied from its own may outlive it: once closed, it stands
 * for the block around it. */
struct block {
    PyObject_HEAD struct options options; /* with those of the blocks around it */
    PyObject *patched;                    /* a frozenset, or NULL */
    struct block *around;                 /* NULL: none */
    _Atomic bool open;
};

_Atomic bool options_name_device;
_Atomic int options_open_blocks;
static PyObject *variable; /* the innermost block of a context, or None */
static PyTypeObject *block_type;

static void close_block(struct block *block)
{
    if (atomic_exchange(&block->open, false)) {
        atomic_fetch_sub(&options_open_blocks, 1);
    }
}

static void deallocate(PyObject *object)
{
    struct block *block = (struct block *)object;
    PyTypeObject *type = Py_TYPE(object);
    close_block(block);
    Py_XDECREF((PyObject *)block->around);
    Py_XDECREF(block->patched);
    PyObject_Free(object);
    Py_DECREF((PyObject *)type);
}

int options_initialize(void)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, deallocate}, {0, NULL}};
    static PyType_Spec spec = {
        .name = "numc_ufuncs._core.Block",
        .basicsize = sizeof(struct block),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    block_type = (PyTypeObject *)PyType_FromSpec(&spec);
    variable = PyContextVar_New("numc_ufuncs.options", NULL);
    return block_type != NULL && variable != NULL ? 0 : -1;
}

/* The block that the variable holds, open or not; a borrowed reference, which the context keeps. */
static struct block *innermost(void)
{
    PyObject *value = NULL;
    if (PyContextVar_Get(variable, NULL, &value) < 0) {
        PyErr_Clear();
    }
    struct block *block = value != NULL && value != Py_None ? (struct block *)value : NULL;
    Py_XDECREF(value);
    return block;
}

static struct block *first_open(struct block *block)
{
    while (block != NULL && !block->open) {
        block = block->around;
    }
    return block;
}

static int set_variable(struct block *block)
{
    PyObject *token = PyContextVar_Set(variable, block != NULL ? (PyObject *)block : Py_None);
    Py_XDECREF(token);
    return token != NULL ? 0 : -1;
}

/* ---- what a call sees ---- */

static _Thread_local struct options shown;
static _Thread_local bool is_shown;

void options_show(struct options_scope *scope)
{
    scope->was_shown = is_shown;
    scope->before = shown;
    const struct block *block = first_open(innermost());
    shown = block != NULL ? block->options : (struct options){0};
    is_shown = true;
    threads_set_for_this_thread(shown.threads);
}

void options_restore(const struct options_scope *scope)
{
    is_shown = scope->was_shown;
    shown = scope->before;
    threads_set_for_this_thread(is_shown ? shown.threads : 0);
}

void options_enter_loop(struct options_scope *scope)
{
    scope->entered = options_in_blocks() && !is_shown;
    if (scope->entered) {
        const PyGILState_STATE gil = PyGILState_Ensure();
        options_show(scope);
        PyGILState_Release(gil);
    }
}

struct options options_in_effect(void)
{
    struct options options = {0};
    if (options_in_blocks() && is_shown) {
        options = shown;
    }
    options.device = options.device != 0 ? options.device : of_process.device;
    options.precision = options.precision != 0 ? options.precision : of_process.precision;
    options.kernel = options.kernel != 0 ? options.kernel : of_process.kernel;
    options.memory = options.memory != 0 ? options.memory : of_process.memory;
    return options;
}

bool options_patch(PyObject *what)
{
    const struct block *block = first_open(innermost());
    while (block != NULL && (block->patched == NULL || PySet_Contains(block->patched, what) != 1)) {
        block = first_open(block->around);
    }
    return block != NULL;
}

/* ---- Python ---- */

static bool is_within(int value, int most, const char *name)
{
    if (value > most) {
        PyErr_Format(PyExc_ValueError, "%s: %d is more than %d", name, value, most);
    }
    return value <= most;
}

static bool are_allowed(const struct options *options)
{
    return is_within(options->threads, MOST_THREADS, "threads") &&
           is_within(options->device, OFFLOAD_DEVICE + DEVICES - 1, "device") &&
           is_within(options->precision, PRECISION_BF16, "precision") &&
           is_within(options->kernel, GEMM_TILED, "gemm") &&
           is_within(options->memory, MEMORY_MANAGED, "memory");
}

static PyObject *set_process_options(PyObject *module, PyObject *args)
{
    (void)module;
    struct options options;
    if (!PyArg_ParseTuple(args, "iiiii:set_process_options", &options.threads, &options.device,
                          &options.precision, &options.kernel, &options.memory) ||
        !are_allowed(&options)) {
        return NULL;
    }
    if (options.threads >= 0) {
        threads_set_for_process(options.threads);
    }
    if (options.device >= 0) {
        of_process.device = options.device != 0 ? options.device : OFFLOAD_AUTO;
        options_name_device = of_process.device >= OFFLOAD_DEVICE;
    }
    if (options.precision >= 0) {
        of_process.precision = options.precision != 0 ? options.precision : PRECISION_IEEE;
    }
    if (options.kernel >= 0) {
        of_process.kernel = options.kernel != 0 ? options.kernel : GEMM_AUTO;
    }
    if (options.memory >= 0) {
        of_process.memory = options.memory != 0 ? options.memory : MEMORY_SYSTEM;
    }
    Py_RETURN_NONE;
}

static PyObject *open_block(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *blocks, *patched = NULL;
    struct options named;
    if (!PyArg_ParseTuple(args, "O!iiiii|O!:open_block", &PyList_Type, &blocks, &named.threads,
                          &named.device, &named.precision, &named.kernel, &named.memory,
                          &PyFrozenSet_Type, &patched) ||
        !are_allowed(&named)) {
        return NULL;
    }
    struct block *block = PyObject_New(struct block, block_type);
    if (block == NULL) {
        return NULL;
    }
    struct block *around = first_open(innermost());
    block->options = around != NULL ? around->options : (struct options){0};
    block->around = (struct block *)Py_XNewRef((PyObject *)around);
    block->patched = Py_XNewRef(patched);
    block->open = true;
    atomic_fetch_add(&options_open_blocks, 1);
    if (named.threads > 0) {
        block->options.threads = named.threads;
    }
    if (named.device > 0) {
        block->options.device = named.device;
    }
    if (named.precision > 0) {
        block->options.precision = named.precision;
    }
    if (named.kernel > 0) {
        block->options.kernel = named.kernel;
    }
    if (named.memory > 0) {
        block->options.memory = named.memory;
    }
    const bool failed = set_variable(block) < 0 || PyList_Append(blocks, (PyObject *)block) < 0;
    if (failed) {
        close_block(block);
    }
    Py_DECREF((PyObject *)block);
    return failed ? NULL : Py_NewRef(Py_None);
}

static Py_ssize_t index_of(PyObject *blocks, const struct block *block)
{
    Py_ssize_t i = PyList_GET_SIZE(blocks) - 1;
    while (i >= 0 && PyList_GET_ITEM(blocks, i) != (const PyObject *)block) {
        i--;
    }
    return i;
}

/* The block of the list that is to be closed, no longer in it. One config object may be in use by several
 * tasks: the block of this context is meant. It may also have been opened in another context (a generator's
 * first step): then that one's blocks stay. */
static struct block *take_block(PyObject *blocks, bool *is_of_context)
{
    struct block *block = innermost();
    while (block != NULL && !(block->open && index_of(blocks, block) >= 0)) {
        block = block->around;
    }
    *is_of_context = block != NULL;
    const Py_ssize_t at = block != NULL ? index_of(blocks, block) : PyList_GET_SIZE(blocks) - 1;
    if (at < 0) {
        PyErr_SetString(PyExc_RuntimeError, "config() was not entered");
        return NULL;
    }
    struct block *taken = (struct block *)Py_NewRef(PyList_GET_ITEM(blocks, at));
    if (PyList_SetSlice(blocks, at, at + 1, NULL) < 0) {
        Py_CLEAR(taken);
    }
    return taken;
}

static PyObject *close_one_block(PyObject *module, PyObject *args)
{
    (void)module;
    static gil_or_mutex lock; /* between the search in a list and the removal */
    PyObject *blocks;
    bool is_of_context;
    if (!PyArg_ParseTuple(args, "O!:close_block", &PyList_Type, &blocks)) {
        return NULL;
    }
    GIL_OR_LOCK(&lock);
    struct block *block = take_block(blocks, &is_of_context);
    GIL_OR_UNLOCK(&lock);
    if (block == NULL) {
        return NULL;
    }
    close_block(block);
    const bool failed = is_of_context && set_variable(first_open(block->around)) < 0;
    Py_DECREF((PyObject *)block);
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyObject *get_options(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct options_scope scope;
    options_enter(&scope);
    const struct thread_limit limit = threads_limit();
    const struct options options = options_in_effect();
    options_leave(&scope);
    return Py_BuildValue("isiiii", limit.threads, limit.reason, options.device, options.precision,
                         options.kernel, options.memory);
}

static PyObject *device_problem(PyObject *module, PyObject *args)
{
    (void)module;
    int option;
    if (!PyArg_ParseTuple(args, "i:device_problem", &option)) {
        return NULL;
    }
    const int number = option - OFFLOAD_DEVICE;
    if (number < 0 || number >= DEVICES) {
        return PyErr_Format(PyExc_ValueError, "%d is no device", option);
    }
    char why[512] = "";
    const bool is_usable = device_is_usable(number, why, sizeof why);
    return PyErr_Occurred() ? NULL : PyUnicode_FromString(is_usable ? "" : why);
}

static PyMethodDef functions[] = {
    {"set_process_options", set_process_options, METH_VARARGS,
     "set_process_options(threads, device, precision, gemm, memory): 0 returns to the default, a "
     "negative "
     "number leaves an option as it is."},
    {"open_block", open_block, METH_VARARGS,
     "open_block(blocks, threads, device, precision, gemm, memory, patched=None): options of the "
     "current "
     "context; 0 keeps what it has. What is in the frozenset `patched` is led to ours. Appends "
     "the block to the list."},
    {"close_block", close_one_block, METH_VARARGS,
     "close_block(blocks): close the innermost of them, and remove it from the list."},
    {"device_problem", device_problem, METH_VARARGS,
     "device_problem(device): why the device of that option cannot be used, '' if it can."},
    {"get_options", get_options, METH_NOARGS,
     "(threads, why so many, device, precision, gemm, memory) in effect."},
    {NULL, NULL, 0, NULL},
};

int options_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
