#include "numpy_private.h"

#include "environment.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

bool private_known[PRIVATE_PARTS];

/* NumPy's NPY_ARRAY_WARN_ON_WRITE, which np.broadcast_arrays sets. Every output is aligned: where
 * the flag is unknown, this one leaves all of them to NumPy. */
enum { WARN_ON_WRITE = INT_MIN, ANY_OUTPUT = NPY_ARRAY_ALIGNED };
int private_warn_on_write = ANY_OUTPUT;

/* ---- ufuncs ---- */

static void no_loop(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)args, (void)dimensions, (void)steps, (void)data;
}

vectorcallfunc private_numpy_vectorcall;

/* Whether the fields of a new ufunc are where the headers say. */
static bool ufunc_is_known(void)
{
    static PyUFuncGenericFunction functions[] = {no_loop};
    static void *data[] = {NULL};
    static const char types[] = {NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE}, name[] = "probe";
    if (PyUFunc_Type.tp_basicsize <
            (Py_ssize_t)(offsetof(PyUFuncObject, _loops) + sizeof(PyObject *)) ||
        PyUFunc_Type.tp_vectorcall_offset != (Py_ssize_t)offsetof(PyUFuncObject, vectorcall)) {
        return false;
    }
    PyUFuncObject *probe = (PyUFuncObject *)PyUFunc_FromFuncAndData(functions, data, types, 1, 2, 1,
                                                                    PyUFunc_One, name, "", 0);
    const bool known = probe != NULL && probe->nin == 2 && probe->nout == 1 && probe->nargs == 3 &&
                       probe->identity == PyUFunc_One && probe->functions == functions &&
                       probe->data == data && probe->ntypes == 1 && probe->name == name &&
                       probe->types == types && probe->obj == NULL && probe->userloops == NULL &&
                       probe->core_enabled == 0 && probe->vectorcall != NULL;
    private_numpy_vectorcall = known ? probe->vectorcall : NULL;
    Py_XDECREF((PyObject *)probe);
    return known;
}

bool private_is_free(const PyUFuncObject *ufunc)
{
    return private_known[PRIVATE_UFUNC] && ufunc->obj == NULL &&
           ufunc->vectorcall == private_numpy_vectorcall;
}

void private_take_over(PyUFuncObject *ufunc, PyObject *owner, vectorcallfunc call)
{
    ufunc->obj = owner; /* which other threads may need as soon as the call is there */
    __atomic_store_n(&ufunc->vectorcall, call, __ATOMIC_RELEASE);
}

void private_copy_core_dimensions(PyUFuncObject *ufunc, const PyUFuncObject *original)
{
    /* It follows the last field that headers for NumPy 2.0 know. */
    const size_t offset = offsetof(PyUFuncObject, _loops) + sizeof(PyObject *);
    if (PyArray_GetNDArrayCFeatureVersion() >= API_OF_NUMPY_2_1 &&
        PyUFunc_Type.tp_basicsize >= (Py_ssize_t)(offset + sizeof(void *))) {
        memcpy((char *)ufunc + offset, (const char *)original + offset, sizeof(void *));
    }
}

/* Pairs of DTypes and a loop, in a list until NumPy 2.4. */
static bool loops_are_known(PyObject *numpy)
{
    PyObject *add = PyObject_GetAttrString(numpy, "add");
    bool known = false;
    if (add != NULL && Py_IS_TYPE(add, &PyUFunc_Type) && private_known[PRIVATE_UFUNC]) {
        PyObject *loops = ((PyUFuncObject *)add)->_loops;
        known = PyDict_CheckExact(loops);
        if (PyList_CheckExact(loops) && PyList_GET_SIZE(loops) > 0) {
            PyObject *pair = PyList_GET_ITEM(loops, 0);
            known = PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2;
        }
    }
    Py_XDECREF(add);
    return known;
}

static int append_unknown_loops(PyObject *own, PyObject *theirs)
{
    const Py_ssize_t count = PyList_GET_SIZE(own);
    PyObject *all = PyList_AsTuple(theirs); /* NumPy may append to the list meanwhile */
    int known = all != NULL ? 0 : -1;
    for (Py_ssize_t i = 0; known >= 0 && i < PyTuple_GET_SIZE(all); i++) {
        PyObject *pair = PyTuple_GET_ITEM(all, i);
        known = 0;
        for (Py_ssize_t k = 0; k < count && known == 0; k++) {
            PyObject *own_dtypes = PyTuple_GET_ITEM(PyList_GET_ITEM(own, k), 0);
            known = PyObject_RichCompareBool(own_dtypes, PyTuple_GET_ITEM(pair, 0), Py_EQ);
        }
        if (known == 0) {
            known = PyList_Append(own, pair);
        }
    }
    Py_XDECREF(all);
    return Py_MIN(known, 0);
}

static int adopt_loops(PyUFuncObject *ufunc, PyUFuncObject *original)
{
    /* Where the loops of dtypes are that C code registered by number. They may come at any time, and
     * without one a call would not fail but compute with other dtypes: so both share the dict. */
    if (original->userloops == NULL) {
        original->userloops = PyDict_New();
    }
    if (ufunc->userloops == NULL) {
        ufunc->userloops = Py_XNewRef(original->userloops);
    }
    if (ufunc->userloops == NULL) {
        return -1;
    }
    if (!private_known[PRIVATE_LOOPS]) {
        return 0;
    }
    return PyDict_CheckExact(original->_loops)
               ? PyDict_Merge(ufunc->_loops, original->_loops, 0)
               : append_unknown_loops(ufunc->_loops, original->_loops);
}

int private_adopt_loops(PyUFuncObject *ufunc, PyUFuncObject *original)
{
    static gil_or_mutex lock; /* a loop that is there twice would be ambiguous */
    GIL_OR_LOCK(&lock);
    const int status = adopt_loops(ufunc, original);
    GIL_OR_UNLOCK(&lock);
    return status;
}

PyObject *private_loops(const PyUFuncObject *ufunc)
{
    return Py_NewRef(private_known[PRIVATE_LOOPS] ? ufunc->_loops : Py_None);
}

const Py_ssize_t *private_loops_count(PyObject *loops)
{
    static const Py_ssize_t unknown;
    return PyDict_CheckExact(loops)   ? &((PyDictObject *)loops)->ma_used
           : PyList_CheckExact(loops) ? &((PyVarObject *)loops)->ob_size
                                      : &unknown;
}

static PyMethodDef *definition_of(PyObject *callable, int flags)
{
    PyMethodDef *definition = NULL;
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
        definition = ((PyMethodDescrObject *)callable)->d_method;
    } else if (PyCFunction_CheckExact(callable)) {
        definition = ((PyCFunctionObject *)callable)->m_ml;
    }
    return definition != NULL && definition->ml_flags == flags ? definition : NULL;
}

bool private_replace(PyObject *callable, int flags, PyCFunction replacement, PyCFunction *before)
{
    PyMethodDef *definition = definition_of(callable, flags);
    if (definition != NULL) {
        *before =
            definition->ml_meth; /* which other threads may need as soon as the other is there */
        __atomic_store_n(&definition->ml_meth, replacement, __ATOMIC_RELEASE);
    }
    return definition != NULL;
}

PyCFunction private_method(const char *name, int flags, const char **doc)
{
    PyObject *method = PyObject_GetAttrString((PyObject *)&PyUFunc_Type, name);
    const PyMethodDef *definition = method != NULL ? definition_of(method, flags) : NULL;
    PyErr_Clear();
    Py_XDECREF(method); /* its type keeps it */
    if (definition != NULL) {
        *doc = definition->ml_doc;
    }
    return definition != NULL ? definition->ml_meth : NULL;
}

static bool methods_are_known(void)
{
    const int fastcall = METH_FASTCALL | METH_KEYWORDS;
    const char *doc;
    return private_method("at", METH_VARARGS, &doc) != NULL &&
           private_method("reduce", fastcall, &doc) != NULL &&
           private_method("accumulate", fastcall, &doc) != NULL &&
           private_method("reduceat", fastcall, &doc) != NULL;
}

/* ---- arrays ---- */

static bool warn_on_write_is_known(void)
{
    npy_intp n = 1;
    PyArrayObject *array = (PyArrayObject *)PyArray_SimpleNew(1, &n, NPY_DOUBLE);
    PyObject *flags = array != NULL ? PyObject_GetAttrString((PyObject *)array, "flags") : NULL;
    const bool known = flags != NULL && (PyArray_FLAGS(array) & WARN_ON_WRITE) == 0 &&
                       PyObject_SetAttrString(flags, "_warn_on_write", Py_True) == 0 &&
                       (PyArray_FLAGS(array) & WARN_ON_WRITE) != 0;
    Py_XDECREF(flags);
    Py_XDECREF((PyObject *)array);
    return known;
}

PyObject *private_no_value(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *no_value = numpy != NULL ? PyObject_GetAttrString(numpy, "_NoValue") : NULL;
    Py_XDECREF(numpy);
    PyErr_Clear();
    return no_value;
}

/* ---- memory ---- */

static PyDataMem_Handler *default_handler;

/* The handler of a context in which nobody has set one. */
static bool find_default_handler(void)
{
    PyObject *context = PyContext_New(), *capsule = NULL;
    if (context != NULL && PyContext_Enter(context) == 0) {
        capsule = PyDataMem_GetHandler();
        PyContext_Exit(context);
    }
    Py_XDECREF(context);
    PyDataMem_Handler *handler =
        capsule != NULL ? PyCapsule_GetPointer(capsule, "mem_handler") : NULL;
    Py_XDECREF(capsule); /* NumPy keeps it */
    if (handler != NULL && handler->version == 1 &&
        strcmp(handler->name, "default_allocator") == 0 && handler->allocator.malloc != NULL &&
        handler->allocator.calloc != NULL && handler->allocator.realloc != NULL &&
        handler->allocator.free != NULL) {
        default_handler = handler;
    }
    return default_handler != NULL;
}

PyDataMem_Handler *private_default_handler(void)
{
    return private_known[PRIVATE_HANDLER] ? default_handler : NULL;
}

bool private_uses_huge_pages(void)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    PyObject *answer =
        module != NULL ? PyObject_CallMethod(module, "_get_madvise_hugepage", NULL) : NULL;
    const bool uses = answer != Py_False;
    Py_XDECREF(answer);
    Py_XDECREF(module);
    PyErr_Clear();
    return uses;
}

/* ---- threads ---- */

static bool state_has_exception(const PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030C0000
    return state->current_exception != NULL;
#else
    return state->curexc_type != NULL;
#endif
}

static bool exception_is_known(void)
{
    PyErr_SetNone(PyExc_RuntimeError);
    const bool seen = state_has_exception(PyThreadState_Get());
    PyErr_Clear();
    return seen && !state_has_exception(PyThreadState_Get());
}

bool private_has_exception(PyThreadState *own)
{
    if (private_known[PRIVATE_EXCEPTION]) {
        return state_has_exception(own);
    }
    PyEval_RestoreThread(own);
    const bool has = PyErr_Occurred() != NULL;
    PyEval_SaveThread();
    return has;
}

bool private_is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

bool private_holds_gil(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState *current = PyThreadState_GetUnchecked();
#else
    PyThreadState *current = _PyThreadState_UncheckedGet();
#endif
    return current != NULL && current == PyGILState_GetThisThreadState();
}

/* ---- the check ---- */

static int warn_of_unknown_parts(PyObject *numpy)
{
    static const char *const names[PRIVATE_PARTS] = {
        [PRIVATE_UFUNC] = "fields of ufuncs",    [PRIVATE_LOOPS] = "ufunc._loops",
        [PRIVATE_METHODS] = "methods of ufuncs", [PRIVATE_WARN_ON_WRITE] = "flags of arrays",
        [PRIVATE_HANDLER] = "memory handler",    [PRIVATE_EXCEPTION] = "exceptions of threads",
    };
    char list[256] = "";
    for (int part = 0; part < PRIVATE_PARTS; part++) {
        if (!private_known[part]) {
            const size_t length = strlen(list);
            snprintf(list + length, sizeof list - length, "%s%s", length > 0 ? ", " : "",
                     names[part]);
        }
    }
    PyObject *version = *list != '\0' ? PyObject_GetAttrString(numpy, "__version__") : NULL;
    PyErr_Clear();
    const int status =
        *list == '\0'
            ? 0
            : environment_warn("NumPy %S is not known to numc_ufuncs in every part that it "
                               "relies on (%s): some calls are left to NumPy",
                               version != NULL ? version : Py_None, list);
    Py_XDECREF(version);
    return status;
}

/* ---- the iterator ---- */

/* The variable behind np.errstate and np.setbufsize, NULL if this NumPy has none, and its default value. */
static PyObject *settings, *default_settings, *getbufsize;

static int find_settings(PyObject *numpy)
{
    getbufsize = PyObject_GetAttrString(numpy, "getbufsize");
    PyObject *umath = getbufsize != NULL ? PyImport_ImportModule("numpy._core.umath") : NULL;
    settings = umath != NULL ? PyObject_GetAttrString(umath, "_extobj_contextvar") : NULL;
    Py_XDECREF(umath);
    if (settings == NULL || !PyContextVar_CheckExact(settings)) {
        Py_CLEAR(settings);
        PyErr_Clear();
        return getbufsize != NULL ? 0 : -1;
    }
    PyObject *context = PyContext_New(); /* an empty one, where it has its default */
    if (context != NULL && PyContext_Enter(context) == 0) {
        PyContextVar_Get(settings, NULL, &default_settings);
        PyContext_Exit(context);
    }
    Py_XDECREF(context);
    return PyErr_Occurred() ? -1 : 0;
}

npy_intp private_buffer_size(void)
{
    /* Settings never change: who changes one makes new ones. Python is slow to tell their size. */
    static gil_or_mutex lock; /* of these two: */
    static PyObject *last;
    static npy_intp size_of_last;
    PyObject *current = NULL;
    if (settings != NULL && PyContextVar_Get(settings, NULL, &current) == 0 &&
        current == default_settings) {
        Py_XDECREF(current);
        return NPY_BUFSIZE;
    }
    GIL_OR_LOCK(&lock);
    npy_intp size = current != NULL && current == last ? size_of_last : 0;
    GIL_OR_UNLOCK(&lock);
    if (size == 0) {
        PyObject *number = PyObject_CallNoArgs(getbufsize);
        size = number != NULL ? PyLong_AsSsize_t(number) : -1;
        size = size > 0 ? size : NPY_BUFSIZE;
        Py_XDECREF(number);
        PyErr_Clear();
        GIL_OR_LOCK(&lock);
        PyObject *before = last;
        last = Py_XNewRef(current);
        size_of_last = size;
        GIL_OR_UNLOCK(&lock);
        Py_XDECREF(before);
    }
    Py_XDECREF(current);
    return size;
}

int private_initialize(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL) {
        return -1;
    }
    private_known[PRIVATE_UFUNC] = ufunc_is_known();
    private_known[PRIVATE_LOOPS] = loops_are_known(numpy);
    private_known[PRIVATE_METHODS] = methods_are_known();
    private_known[PRIVATE_WARN_ON_WRITE] = warn_on_write_is_known();
    private_known[PRIVATE_HANDLER] = find_default_handler();
    private_known[PRIVATE_EXCEPTION] = exception_is_known();
    private_warn_on_write = private_known[PRIVATE_WARN_ON_WRITE] ? WARN_ON_WRITE : ANY_OUTPUT;
    PyErr_Clear(); /* exceptions of the checks: all that counts is that one failed */
    const int status = find_settings(numpy) < 0 ? -1 : warn_of_unknown_parts(numpy);
    Py_DECREF(numpy);
    return status;
}
