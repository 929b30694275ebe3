/* Wrappers around the functions of NumPy's default memory handler, for all threads: another handler would
 * have to be set in every context. Four pointers cannot be replaced at once, nor can a block be told who is
 * to free it: so the wrappers are put in place once and stay, and every block finds its way back. */
#include "memory_handler.h"

#include "device_memory.h"
#include "devices.h"
#include "memory/kept_blocks.h"
#include "numpy_private.h"
#include "options.h"

#include <string.h>

static PyDataMemAllocator
    numpys; /* the functions that were there before; malloc is NULL: not replaced */

static int memory_in_effect(void)
{
    struct options_scope scope = {.entered = false};
    if (private_holds_gil()) {
        options_enter_loop(&scope);
    }
    const int memory = options_in_effect().memory;
    options_leave(&scope);
    return memory;
}

/* What a block of so many bytes is to be made of; 0: it is NumPy's. */
static int kind_for(size_t bytes)
{
    if (bytes < KEPT_FROM_BYTES && (bytes < KEPT_DEVICE_FROM_BYTES || !device_memory_in_use)) {
        return 0;
    }
    switch (memory_in_effect()) {
    case MEMORY_CACHED:
        return bytes >= KEPT_FROM_BYTES ? KEPT_MAPPED : 0;
    case MEMORY_PINNED:
        return device_memory_is_there() ? KEPT_PINNED : 0;
    case MEMORY_MANAGED:
        return device_memory_is_there() ? KEPT_MANAGED : 0;
    default:
        return 0;
    }
}

static void *numpys_malloc(void *context, size_t bytes)
{
    void *data = numpys.malloc(context, bytes);
    return data != NULL || kept_release() == 0 ? data : numpys.malloc(context, bytes);
}

static void *numpys_calloc(void *context, size_t count, size_t size)
{
    void *data = numpys.calloc(context, count, size);
    return data != NULL || kept_release() == 0 ? data : numpys.calloc(context, count, size);
}

/* Whether NumPy's own memory does instead. Not where the device is asked for more than it has: NumPy's
 * MemoryError, which cannot say so, follows a warning that does. */
static bool may_be_numpys(int kind)
{
    char why[1024];
    if (kind == 0 || kind == KEPT_MAPPED) {
        return true;
    }
    const bool is_there = device_memory_is_there();
    device_memory_problem(why, sizeof why);
    if (why[0] != '\0' && private_holds_gil() && !PyErr_Occurred()) {
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "memory='%s': %s%s",
                         kind == KEPT_PINNED ? "pinned" : "managed", why,
                         is_there ? "" : "; arrays are in ordinary memory from now on");
        PyErr_Clear();
    }
    return !is_there;
}

static void *allocate(void *context, size_t bytes)
{
    const int kind = kind_for(bytes);
    void *data = NULL;
    if (kind != 0) {
        data = kept_allocate((enum kept_kind)kind, bytes);
    } else if (bytes >= KEPT_FROM_BYTES) {
        kept_release_unused();
    }
    return data != NULL || !may_be_numpys(kind) ? data : numpys_malloc(context, bytes);
}

static void *allocate_zeros(void *context, size_t count, size_t size)
{
    size_t bytes;
    const bool overflows = __builtin_mul_overflow(count, size, &bytes);
    const int kind = overflows ? 0 : kind_for(bytes);
    void *data = kind != 0 ? kept_allocate_zeros((enum kept_kind)kind, bytes) : NULL;
    return data != NULL || !may_be_numpys(kind) ? data : numpys_calloc(context, count, size);
}

/* Whether it was one of ours. Blocks are kept as long as there may be somebody to ask for them; those of a
 * device are worth more than that. */
static bool free_ours(void *data)
{
    if (!kept_may_be_block(data)) {
        return false;
    }
    const bool keeps = options_in_blocks() || options_in_effect().memory != MEMORY_SYSTEM ||
                       (device_memory_in_use && kept_device_kind(data) != 0);
    return kept_free(data, keeps);
}

static void deallocate(void *context, void *data, size_t bytes)
{
    if (!free_ours(data)) {
        if (bytes >= KEPT_FROM_BYTES) {
            kept_release_unused();
        }
        numpys.free(context, data, bytes);
    }
}

static void *reallocate(void *context, void *data, size_t bytes)
{
    const size_t before = kept_may_be_block(data) ? kept_size(data) : 0;
    if (before == 0) {
        void *moved = numpys.realloc(context, data, bytes);
        return moved != NULL || kept_release() == 0 ? moved : numpys.realloc(context, data, bytes);
    }
    const int kind = device_memory_in_use ? kept_device_kind(data) : 0;
    if (bytes >= (kind != 0 ? KEPT_DEVICE_FROM_BYTES : KEPT_FROM_BYTES)) {
        void *resized = kept_resize(data, bytes);
        if (resized == NULL) {
            may_be_numpys(kind);
        }
        return resized;
    }
    void *moved = numpys_malloc(context, bytes);
    if (moved != NULL) {
        memcpy(moved, data, bytes < before ? bytes : before);
        free_ours(data);
    }
    return moved;
}

static void replace_functions(PyDataMem_Handler *handler)
{
    numpys = handler->allocator;
    /* First those that take blocks of either kind, then those that make them. */
    handler->allocator.free = deallocate;
    handler->allocator.realloc = reallocate;
    atomic_thread_fence(memory_order_seq_cst);
    handler->allocator.malloc = allocate;
    handler->allocator.calloc = allocate_zeros;
}

/* ---- Python ---- */

/* "" becomes no problem; NULL: an exception. */
static PyObject *start_device_memory(enum host_memory kind)
{
    char why[REASON_BYTES];
    const bool is_there = device_memory_start(kind, why, sizeof why);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (is_there) {
        device_memory_in_use = true;
    }
    return PyUnicode_FromString(is_there ? "" : why);
}

static PyObject *memory_problem(PyObject *module, PyObject *args)
{
    (void)module;
    int memory;
    if (!PyArg_ParseTuple(args, "i:memory_problem", &memory)) {
        return NULL;
    }
    if (memory <= MEMORY_SYSTEM) {
        return PyUnicode_FromString("");
    }
    PyDataMem_Handler *handler = private_default_handler();
    if (handler == NULL) {
        return PyUnicode_FromString("the memory handler of this NumPy is not known to numc_ufuncs");
    }
    static gil_or_mutex lock;
    kept_use_huge_pages(private_uses_huge_pages());
    GIL_OR_LOCK(&lock);
    if (numpys.malloc == NULL) {
        replace_functions(handler);
    }
    GIL_OR_UNLOCK(&lock);
    return memory == MEMORY_CACHED
               ? PyUnicode_FromString("")
               : start_device_memory(memory == MEMORY_PINNED ? HOST_PINNED : HOST_MANAGED);
}

static PyObject *release_memory(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    size_t bytes;
    Py_BEGIN_ALLOW_THREADS;
    bytes = kept_release();
    Py_END_ALLOW_THREADS;
    return PyLong_FromSize_t(bytes);
}

static PyObject *kept_memory(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    size_t kept = 0;
    for (int kind = KEPT_MAPPED; kind < KEPT_KINDS; kind++) {
        kept += kept_bytes((enum kept_kind)kind).kept;
    }
    const size_t limit = kept_bytes(KEPT_MAPPED).limit;
    return Py_BuildValue("NN", PyLong_FromSize_t(kept), PyLong_FromSize_t(limit));
}

static PyObject *managed_in_use(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromSize_t(kept_bytes(KEPT_MANAGED).used);
}

/* Views may be of a part of a block, and of memory of others: both ends count. */
static PyObject *memory_of(PyObject *module, PyObject *args)
{
    (void)module;
    static const char *const names[] = {"ordinary", "pinned", "managed"};
    unsigned long long first, end;
    if (!PyArg_ParseTuple(args, "KK:memory_of", &first, &end)) {
        return NULL;
    }
    enum host_memory of_first = HOST_ORDINARY, of_last = HOST_ORDINARY;
    if (end > first) {
        of_first = device_memory_of((const void *)(uintptr_t)first);
        of_last = device_memory_of((const void *)(uintptr_t)(end - 1));
    }
    return PyUnicode_FromString(names[of_first == of_last ? of_first : HOST_ORDINARY]);
}

static PyObject *move_memory(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long first, end;
    int to_device;
    char why[REASON_BYTES] = "";
    if (!PyArg_ParseTuple(args, "KKp:move_memory", &first, &end, &to_device)) {
        return NULL;
    }
    enum status status;
    Py_BEGIN_ALLOW_THREADS;
    status = device_memory_move((const void *)(uintptr_t)first, (size_t)(end - first),
                                to_device != 0, why, sizeof why);
    Py_END_ALLOW_THREADS;
    return status == STATUS_OK
               ? Py_NewRef(Py_None)
               : PyErr_Format(PyExc_RuntimeError, "managed memory cannot be moved: %s", why);
}

static PyObject *finish_device(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    device_memory_finish();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *end_device_memory(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    device_memory_end();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"memory_problem", memory_problem, METH_VARARGS,
     "memory_problem(memory): why that option cannot be used, '' if it can: then it is prepared."},
    {"release_memory", release_memory, METH_NOARGS,
     "Gives back memory that is kept for arrays to come. Returns its bytes."},
    {"kept_memory", kept_memory, METH_NOARGS, "Bytes: (kept, kept at most)."},
    {"managed_in_use", managed_in_use, METH_NOARGS, "Bytes of managed memory that arrays have."},
    {"memory_of", memory_of, METH_VARARGS,
     "memory_of(first, end): where the bytes at these addresses live: 'ordinary', 'pinned' or "
     "'managed'."},
    {"move_memory", move_memory, METH_VARARGS,
     "move_memory(first, end, to_device): move the pages of managed memory, and wait for that."},
    {"finish_device", finish_device, METH_NOARGS,
     "Wait until nobody in this process computes on the first GPU."},
    {"end_device_memory", end_device_memory, METH_NOARGS,
     "Ask nothing more of the driver: the process ends."},
    {NULL, NULL, 0, NULL},
};

int memory_handler_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
