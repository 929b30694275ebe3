/* Wrappers around the functions of NumPy's default memory handler, for all threads: another handler would
 * have to be set in every context. Four pointers cannot be replaced at once, nor can a block be told who is
 * to free it: so the wrappers are put in place once and stay, and every block finds its way back. */
#include "memory_handler.h"

#include "memory/kept_blocks.h"
#include "numpy_private.h"
#include "options.h"

#include <string.h>

static PyDataMemAllocator
    numpys; /* the functions that were there before; malloc is NULL: not replaced */

static bool is_cached(void)
{
    struct options_scope scope = {.entered = false};
    if (private_holds_gil()) {
        options_enter_loop(&scope);
    }
    const bool cached = options_in_effect().memory == MEMORY_CACHED;
    options_leave(&scope);
    return cached;
}

static void *numpys_malloc(void *context, size_t bytes)
{
    void *data = numpys.malloc(context, bytes);
    return data != NULL || kept_release() == 0 ? data : numpys.malloc(context, bytes);
}

static void *allocate(void *context, size_t bytes)
{
    void *data = NULL;
    if (bytes >= KEPT_FROM_BYTES) {
        if (is_cached()) {
            data = kept_allocate(bytes);
        } else {
            kept_release_unused();
        }
    }
    return data != NULL ? data : numpys_malloc(context, bytes);
}

static void *allocate_zeros(void *context, size_t count, size_t size)
{
    size_t bytes;
    void *data = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes) && bytes >= KEPT_FROM_BYTES && is_cached()) {
        data = kept_allocate_zeros(bytes);
    }
    if (data == NULL) {
        data = numpys.calloc(context, count, size);
    }
    return data != NULL || kept_release() == 0 ? data : numpys.calloc(context, count, size);
}

/* Whether it was one of ours. Blocks are kept as long as there may be somebody to ask for them. */
static bool free_ours(void *data)
{
    return kept_may_be_block(data) &&
           kept_free(data, options_in_blocks() || options_in_effect().memory == MEMORY_CACHED);
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
    if (bytes >= KEPT_FROM_BYTES) {
        return kept_resize(data, bytes);
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

static PyObject *cached_memory_problem(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
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
    return PyUnicode_FromString("");
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
    const struct kept_bytes bytes = kept_bytes();
    return Py_BuildValue("NN", PyLong_FromSize_t(bytes.kept), PyLong_FromSize_t(bytes.limit));
}

static PyMethodDef functions[] = {
    {"cached_memory_problem", cached_memory_problem, METH_NOARGS,
     "Why memory='cached' cannot be used, '' if it can: then it is prepared."},
    {"release_memory", release_memory, METH_NOARGS,
     "Gives back memory that is kept for arrays to come. Returns its bytes."},
    {"kept_memory", kept_memory, METH_NOARGS, "Bytes: (kept, kept at most)."},
    {NULL, NULL, 0, NULL},
};

int memory_handler_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
