/* Counts are kept in a hash table, one entry for each line of a program, ufunc, dtypes and way. It lives while
 * a profile is open. */
#include "profile.h"

#include "call_record.h"
#include "dtypes.h"
#include "stack_loop.h"

#include "threads/clock.h"
#include "threads/region.h"

#include <frameobject.h> /* PyFrame_GetBack, before Python 3.11 */
#include <string.h>

enum { LEAST_ENTRIES = 256, OPERANDS = 3, LARGE_ELEMENTS = 8192 };

_Atomic int profiles_open;

struct entry {
    struct profile_key {
        PyObject *ufunc, *code; /* where the line is; NULL: nowhere in Python */
        const char *method, *way, *reason;
        int instruction;
        signed char type[OPERANDS]; /* of the first operands; -1: no array */
    } key;
    unsigned long long calls, elements;
    int64_t ns;
};

static gil_or_mutex lock; /* of all that is static here */

static struct table {
    struct entry *entry; /* free ones have no ufunc */
    size_t size, used;
} table;

/* ---- the line ---- */

/* Code of NumPy and of this package is not the program's. */
static PyObject *library_folders; /* a tuple of str, which str.startswith takes */
static PyObject *startswith;

static bool is_library(PyCodeObject *code)
{
    enum { KNOWN = 1024 };
    static struct {
        PyCodeObject *code; /* only compared: another one at the same address has another name */
        PyObject *filename;
        bool is_library;
    } known[KNOWN];
    const size_t slot = ((uintptr_t)code >> 5) % KNOWN;
    if (known[slot].code != code || known[slot].filename != code->co_filename) {
        PyObject *answer =
            library_folders != NULL
                ? PyObject_CallMethodOneArg(code->co_filename, startswith, library_folders)
                : NULL;
        known[slot].code = code;
        known[slot].filename = code->co_filename;
        known[slot].is_library = answer == Py_True;
        Py_XDECREF(answer);
        PyErr_Clear();
    }
    return known[slot].is_library;
}

static void find_line(struct profile_key *key)
{
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF((PyObject *)frame);
    PyCodeObject *code = frame != NULL ? PyFrame_GetCode(frame) : NULL;
    while (code != NULL && is_library(code)) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF((PyObject *)code);
        Py_DECREF((PyObject *)frame);
        frame = back;
        code = frame != NULL ? PyFrame_GetCode(frame) : NULL;
    }
    key->code = (PyObject *)code;
#if PY_VERSION_HEX >= 0x030B0000
    key->instruction = frame != NULL ? PyFrame_GetLasti(frame) : -1;
#else
    key->instruction = frame != NULL ? PyFrame_GetLineNumber(frame) : -1;
#endif
    Py_XDECREF((PyObject *)code); /* the frame keeps it */
    Py_XDECREF((PyObject *)frame);
}

/* ---- the table ---- */

static size_t hash_of(const struct profile_key *key)
{
    const size_t parts[] = {(size_t)key->ufunc,
                            (size_t)key->code,
                            (size_t)key->method,
                            (size_t)key->way,
                            (size_t)key->reason,
                            (size_t)key->instruction,
                            (unsigned char)key->type[0] | (size_t)(unsigned char)key->type[1] << 8};
    size_t hash = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * (size_t)0x9E3779B97F4A7C15u;
    }
    return hash ^ hash >> 32;
}

static struct entry *place_of(struct entry *entries, size_t size, const struct profile_key *key)
{
    size_t i = hash_of(key) & (size - 1);
    while (entries[i].key.ufunc != NULL && memcmp(&entries[i].key, key, sizeof *key) != 0) {
        i = (i + 1) & (size - 1);
    }
    return &entries[i];
}

static bool grow(void)
{
    const size_t size = table.size > 0 ? 2 * table.size : LEAST_ENTRIES;
    struct entry *entries = PyMem_Calloc(size, sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < table.size; i++) {
        if (table.entry[i].key.ufunc != NULL) {
            *place_of(entries, size, &table.entry[i].key) = table.entry[i];
        }
    }
    PyMem_Free(table.entry);
    table.entry = entries;
    table.size = size;
    return true;
}

/* NULL if there is no memory. */
static struct entry *find_entry(const struct profile_key *key)
{
    if (2 * table.used >= table.size && !grow()) {
        return NULL;
    }
    struct entry *entry = place_of(table.entry, table.size, key);
    if (entry->key.ufunc == NULL) {
        entry->key = *key;
        Py_INCREF(key->ufunc);
        Py_XINCREF(key->code);
        table.used++;
    }
    return entry;
}

static void clear(void)
{
    GIL_OR_LOCK(&lock);
    const struct table cleared = table;
    table = (struct table){NULL, 0, 0};
    GIL_OR_UNLOCK(&lock);
    for (size_t i = 0; i < cleared.size; i++) {
        Py_XDECREF(cleared.entry[i].key.ufunc);
        Py_XDECREF(cleared.entry[i].key.code);
    }
    PyMem_Free(cleared.entry);
}

/* ---- a call ---- */

void profile_begin(struct profile_sample *sample)
{
    sample->regions = region_count();
    sample->offloads = call_record_offloads();
    sample->kernel_calls = stack_loop_kernel_calls();
    sample->start_ns = clock_ns();
}

/* Why NumPy computed it: what a reader can do something about. */
static const char *reason_of(const char *method, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords, npy_intp elements)
{
    int arrays = 0;
    count = method != NULL && count > 1 ? 1 : count; /* the others are options */
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyArray_CheckExact(args[i])) {
            const int type = PyArray_TYPE((PyArrayObject *)args[i]);
            arrays++;
            if (type == NPY_OBJECT) {
                return "objects";
            }
            if (!dtype_is_number(type)) {
                return "no numbers";
            }
        } else if (!PyArray_CheckAnyScalar(args[i]) && !PyFloat_CheckExact(args[i]) &&
                   !PyLong_CheckExact(args[i]) && !PyComplex_CheckExact(args[i]) &&
                   args[i] != Py_None) {
            return PyArray_Check(args[i]) ? "subclass" : "no array";
        }
    }
    return arrays == 0                 ? "scalars"
           : elements < LARGE_ELEMENTS ? "small"
           : keywords != NULL          ? "keywords"
                                       : "no gain";
}

void profile_end(const struct profile_sample *sample, PyObject *ufunc, const char *method,
                 bool by_ours, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                 PyObject *result)
{
    if (!profile_is_on()) {
        return; /* the call is only checked, or ended the profile */
    }
    const int64_t ns = clock_ns() - sample->start_ns;
    struct profile_key key;
    memset(&key, 0, sizeof key); /* padding, too: keys are compared as bytes */
    key.ufunc = ufunc;
    key.method = method;
    npy_intp elements =
        result != NULL && PyArray_Check(result) ? PyArray_SIZE((PyArrayObject *)result) : 1;
    for (Py_ssize_t i = 0; i < OPERANDS; i++) {
        const bool is_array = i < count && PyArray_Check(args[i]);
        key.type[i] = is_array ? (signed char)PyArray_TYPE((PyArrayObject *)args[i]) : -1;
        if (is_array && PyArray_SIZE((PyArrayObject *)args[i]) > elements) {
            elements = PyArray_SIZE((PyArrayObject *)args[i]);
        }
    }
    const bool is_offload = call_record_offloads() != sample->offloads;
    const bool is_parallel = region_count() != sample->regions;
    by_ours = by_ours || stack_loop_kernel_calls() != sample->kernel_calls;
    key.way = is_offload ? "GPU" : is_parallel ? "threads" : by_ours ? "one thread" : "NumPy";
    if (!is_offload && !is_parallel && !by_ours) {
        key.reason = reason_of(method, args, count, keywords, elements);
    }
    PyObject *type, *value, *traceback; /* the call's own exception */
    PyErr_Fetch(&type, &value, &traceback);
    GIL_OR_LOCK(&lock);
    find_line(&key);
    struct entry *entry = find_entry(&key);
    if (entry != NULL) {
        entry->calls++;
        entry->elements += (unsigned long long)elements;
        entry->ns += ns;
    }
    GIL_OR_UNLOCK(&lock);
    PyErr_Restore(type, value, traceback);
}

/* ---- Python ---- */

static PyObject *dtypes_of(const struct profile_key *key)
{
    PyObject *names = PyList_New(0);
    for (int i = 0; i < OPERANDS && names != NULL; i++) {
        PyArray_Descr *dtype = key->type[i] >= 0 ? PyArray_DescrFromType(key->type[i]) : NULL;
        if (dtype != NULL && PyList_Append(names, (PyObject *)dtype) < 0) {
            Py_CLEAR(names);
        }
        Py_XDECREF((PyObject *)dtype);
    }
    PyErr_Clear();
    return names;
}

static PyObject *row_of(const struct entry *entry)
{
    const struct profile_key *key = &entry->key;
    return Py_BuildValue("{sO sz sN ss sz sO si sK sK sd}", "ufunc", key->ufunc, "method",
                         key->method, "dtypes", dtypes_of(key), "way", key->way, "reason",
                         key->reason, "code", key->code != NULL ? key->code : Py_None,
                         "instruction", key->instruction, "calls", entry->calls, "elements",
                         entry->elements, "seconds", (double)entry->ns * 1e-9);
}

static PyObject *profile_rows(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *rows = PyList_New(0);
    GIL_OR_LOCK(&lock);
    for (size_t i = 0; i < table.size && rows != NULL; i++) {
        PyObject *row = table.entry[i].key.ufunc != NULL ? row_of(&table.entry[i]) : NULL;
        if (PyErr_Occurred() || (row != NULL && PyList_Append(rows, row) < 0)) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    GIL_OR_UNLOCK(&lock);
    return rows;
}

static PyObject *profile_open(PyObject *module, PyObject *folders)
{
    (void)module;
    GIL_OR_LOCK(&lock);
    if (startswith == NULL) {
        startswith = PyUnicode_InternFromString("startswith");
    }
    PyObject *before = library_folders;
    library_folders = Py_NewRef(folders);
    GIL_OR_UNLOCK(&lock);
    Py_XDECREF(before);
    atomic_fetch_add(&profiles_open, 1);
    Py_RETURN_NONE;
}

static PyObject *profile_close(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (atomic_fetch_sub(&profiles_open, 1) == 1) {
        clear();
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"profile_open", profile_open, METH_O,
     "profile_open(folders): count calls; lines of code in the folders are not the program's."},
    {"profile_rows", profile_rows, METH_NOARGS, "What has been counted, a dict for each entry."},
    {"profile_close", profile_close, METH_NOARGS, "The opposite of profile_open."},
    {NULL, NULL, 0, NULL},
};

int profile_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
