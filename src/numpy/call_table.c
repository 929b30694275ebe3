/* Which dtypes a call may have, and what computes them. NumPy is asked, not guessed. */
#include "call_table.h"

#include <limits.h>
#include <string.h>

/* Whether NumPy itself would compute inputs of dtype `type` with the row of these types. */
static int is_numpys_choice(PyUFuncObject *ufunc, int type, const char types[])
{
    const int inputs = ufunc->nin;
    PyObject *dtypes = PyTuple_New(inputs + 1), *resolved = NULL;
    int is = -1;
    if (dtypes == NULL) {
        return -1;
    }
    for (int i = 0; i < inputs; i++) {
        PyTuple_SET_ITEM(dtypes, i, (PyObject *)PyArray_DescrFromType(type));
    }
    PyTuple_SET_ITEM(dtypes, inputs, Py_NewRef(Py_None));
    resolved = PyObject_CallMethod((PyObject *)ufunc, "resolve_dtypes", "(O)", dtypes);
    if (resolved == NULL) {
        PyErr_Clear();
        is = 0;
    } else {
        is = 1;
        for (int i = 0; i <= inputs; i++) {
            is = is && ((PyArray_Descr *)PyTuple_GET_ITEM(resolved, i))->type_num == types[i];
        }
    }
    Py_XDECREF(resolved);
    Py_DECREF(dtypes);
    return is;
}

/* ---- which inner loop ---- */

enum { NOT_ASKED = 0, NO_LOOP = -1 }; /* else one more than its row in the type table */

static PyObject *dtype_of_kind(int kind)
{
    switch (kind) {
    case INPUT_PYTHON_FLOAT:
        return Py_NewRef((PyObject *)&PyFloat_Type);
    case INPUT_PYTHON_INT:
        return Py_NewRef((PyObject *)&PyLong_Type);
    case INPUT_PYTHON_COMPLEX:
        return Py_NewRef((PyObject *)&PyComplex_Type);
    default:
        return (PyObject *)PyArray_DescrFromType(kind);
    }
}

/* A ufunc's resolve_dtypes() for inputs of these kinds, with the keywords that are not NULL; NULL if it
 * raises. */
static PyObject *resolve(const struct call_table *table, const int kinds[], PyObject *signature,
                         PyObject *casting)
{
    PyObject *dtypes = PyTuple_New(table->operands), *resolved = NULL;
    PyObject *method = PyObject_GetAttrString(table->ufunc, "resolve_dtypes");
    PyObject *args = dtypes != NULL ? PyTuple_Pack(1, dtypes) : NULL;
    PyObject *keywords = PyDict_New();
    if (method != NULL && args != NULL && keywords != NULL &&
        (signature == NULL || PyDict_SetItemString(keywords, "signature", signature) == 0) &&
        (casting == NULL || PyDict_SetItemString(keywords, "casting", casting) == 0)) {
        for (int i = 0; i < table->operands; i++) {
            PyTuple_SET_ITEM(dtypes, i,
                             i < table->inputs ? dtype_of_kind(kinds[i]) : Py_NewRef(Py_None));
        }
        resolved = PyObject_Call(method, args, keywords);
    }
    PyErr_Clear();
    Py_XDECREF(keywords);
    Py_XDECREF(args);
    Py_XDECREF(method);
    Py_XDECREF(dtypes);
    return resolved;
}

/* The row of the type table with these dtypes that may run on threads; NO_LOOP if there is none. */
static int find_loop(const struct call_table *table, PyObject *resolved)
{
    for (int row = 0; row < table->loops; row++) {
        const char *types = table->types + row * table->operands;
        bool fits = table->loop[row].engine.operands != 0;
        for (int i = 0; i < table->operands && fits; i++) {
            const PyArray_Descr *dtype = (PyArray_Descr *)PyTuple_GET_ITEM(resolved, i);
            fits = dtype->type_num == types[i] && dtype_is_number(types[i]);
        }
        if (fits) {
            return row;
        }
    }
    return NO_LOOP;
}

static int ask_numpy(const struct call_table *table, const int kinds[], PyObject *signature,
                     PyObject *casting)
{
    PyObject *resolved = resolve(table, kinds, signature, casting);
    const int row = resolved != NULL ? find_loop(table, resolved) : NO_LOOP;
    Py_XDECREF(resolved);
    return row;
}

/* `dtype=` is a signature that names the outputs. A new reference. */
static PyObject *signature_of_dtype(const struct call_table *table, PyObject *dtype)
{
    PyObject *signature = PyTuple_New(table->operands);
    for (int op = 0; op < table->operands && signature != NULL; op++) {
        PyTuple_SET_ITEM(signature, op, Py_NewRef(op < table->inputs ? Py_None : dtype));
    }
    return signature;
}

/* Asks NumPy, unless the question is the latest one, as it is in a program's loop: three bits for the rule, five
 * for the dtype, a byte for each kind, and one for the row, of which there is one more. */
static int loop_of_question(struct call_table *table, const int kinds[], PyObject *dtype,
                            PyObject *casting, NPY_CASTING rule)
{
    enum { NO_DTYPE = 31 };
    const bool is_kept =
        table->inputs <= 2 && table->loops < SCHAR_MAX && rule <= NPY_UNSAFE_CASTING;
    const int number = !is_kept ? -1 : dtype == NULL ? NO_DTYPE : dtype_asked_for(dtype);
    const uint32_t question = (uint32_t)rule << 29 | (uint32_t)number << 24 |
                              (uint32_t)kinds[0] << 16 |
                              (uint32_t)(table->inputs == 2 ? kinds[1] : 0) << 8;
    const uint32_t known = table->latest_question;
    if (number >= 0 && (known & ~0xffu) == question) {
        return (int)(known & 0xffu) - 1;
    }
    PyObject *signature = dtype != NULL ? signature_of_dtype(table, dtype) : NULL;
    const int row =
        dtype == NULL || signature != NULL ? ask_numpy(table, kinds, signature, casting) : NO_LOOP;
    Py_XDECREF(signature);
    if (number >= 0) {
        table->latest_question = question | (uint32_t)(row + 1);
    }
    return row;
}

int call_table_loop(struct call_table *table, const int kinds[], PyObject *dtype,
                    PyObject *signature, PyObject *casting, NPY_CASTING rule)
{
    if (dtype != NULL || (casting != NULL && signature == NULL)) {
        return loop_of_question(table, kinds, dtype, casting, rule);
    }
    if (signature != NULL || table->inputs > 2 || table->loops > SCHAR_MAX) {
        return ask_numpy(table, kinds, signature, casting);
    }
    _Atomic signed char *known = &table->known[kinds[0]][table->inputs == 2 ? kinds[1] : 0];
    if (*known == NOT_ASKED) {
        const int row = ask_numpy(table, kinds, NULL, NULL);
        *known = (signed char)(row == NO_LOOP ? NO_LOOP : row + 1);
    }
    return *known == NO_LOOP ? NO_LOOP : *known - 1;
}

/* ---- the table ---- */

/* Integers that NumPy casts to float64, where the kernel for those is ours. */
static int add_conversions(struct call_table *table, PyUFuncObject *ufunc)
{
    const struct call_row *doubles = &table->row[NPY_DOUBLE];
    if (table->is_product || doubles->input == NULL || doubles->loop->engine.kernel == NULL) {
        return 0;
    }
    char numpys[CALL_MOST_OPERANDS];
    memset(numpys, NPY_DOUBLE, sizeof numpys);
    for (int type = 0; type < CALL_TYPES; type++) {
        struct call_row *entry = &table->row[type];
        if (entry->input != NULL || !dtype_is_integer(type)) {
            continue;
        }
        const int choice = is_numpys_choice(ufunc, type, numpys);
        if (choice < 0) {
            return -1;
        }
        const struct dtype dtype = dtype_of(type);
        const struct kernel *kernel =
            choice == 1 ? kernels_find(table->name, dtype.kind, dtype.size) : NULL;
        if (kernel != NULL && table->converting == NULL) {
            table->converting = PyMem_Calloc(CALL_TYPES, sizeof *table->converting);
        }
        if (kernel == NULL || table->converting == NULL) {
            continue;
        }
        const char types[] = {(char)type, (char)type, NPY_DOUBLE};
        entry->loop = &table->converting[type];
        entry->converts = true;
        entry->input = PyArray_DescrFromType(type);
        entry->output = PyArray_DescrFromType(NPY_DOUBLE);
        loop_initialize(entry->loop, types, 2, 3, NULL, NULL, kernel, NULL);
    }
    return 0;
}

/* Comparisons have such loops, too: of integers of both signs. */
static int add_mixed_row(struct call_table *table, struct loop *loop, const char types[])
{
    if (!dtype_is_number(types[0]) || !dtype_is_number(types[1]) || !dtype_is_number(types[2])) {
        return 0;
    }
    if (table->mixed == NULL) {
        table->mixed = PyMem_Calloc((size_t)table->loops, sizeof *table->mixed);
    }
    if (table->mixed == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    table->mixed[table->mixed_rows++] = (struct call_row){
        .loop = loop,
        .input = PyArray_DescrFromType(types[0]),
        .second = PyArray_DescrFromType(types[1]),
        .output = PyArray_DescrFromType(types[2]),
    };
    return 0;
}

const struct call_row *call_table_row(const struct call_table *table, int loop)
{
    const struct loop *wanted = &table->loop[loop];
    const int type = table->types[loop * table->operands];
    const struct call_row *row =
        type < CALL_TYPES && table->row[type].loop == wanted ? &table->row[type] : NULL;
    for (int i = 0; i < table->mixed_rows && row == NULL; i++) {
        row = table->mixed[i].loop == wanted ? &table->mixed[i] : NULL;
    }
    return row;
}

int call_table_initialize(struct call_table *table, PyUFuncObject *ufunc, struct loop *loops)
{
    table->ufunc = (PyObject *)ufunc;
    table->name = ufunc->name;
    table->inputs = ufunc->nin;
    table->operands = ufunc->nargs;
    table->types = ufunc->types;
    table->loop = loops;
    table->loops = ufunc->core_enabled ? 0 : ufunc->ntypes;
    table->warns_of_third =
        PyArray_GetNDArrayCFeatureVersion() >= API_OF_NUMPY_2_4 &&
        (strcmp(ufunc->name, "maximum") == 0 || strcmp(ufunc->name, "minimum") == 0);
    table->is_product = ufunc->core_enabled && gufunc_is_named(ufunc->name, &table->gufunc);
    table->is_stack = ufunc->core_enabled && !table->is_product;
    if (ufunc->nout != 1 || ufunc->nin > CALL_MOST_INPUTS ||
        ufunc->core_enabled != table->is_product) {
        return 0;
    }
    for (int row = 0; row < ufunc->ntypes; row++) {
        const char *types = ufunc->types + row * ufunc->nargs;
        bool alike = dtype_is_number(types[0]);
        for (int i = 1; i < ufunc->nin; i++) {
            alike = alike && types[i] == types[0];
        }
        if (!table->is_product && loops[row].engine.operands == 0) {
            continue;
        }
        if (ufunc->nin == 2 && !alike && !table->is_product &&
            add_mixed_row(table, &loops[row], types) < 0) {
            return -1;
        }
        struct call_row *entry = &table->row[(int)types[0]];
        if (!alike || entry->input != NULL) {
            continue;
        }
        const int choice = is_numpys_choice(ufunc, types[0], types);
        if (choice < 0) {
            return -1;
        }
        if (choice == 1) {
            entry->loop = &loops[row];
            entry->function = ufunc->functions[row];
            entry->data = ufunc->data[row];
            entry->input = PyArray_DescrFromType(types[0]);
            entry->output = PyArray_DescrFromType(types[ufunc->nin]);
        }
    }
    return add_conversions(table, ufunc);
}

void call_table_release(struct call_table *table)
{
    for (int type = 0; type < CALL_TYPES; type++) {
        Py_XDECREF((PyObject *)table->row[type].input);
        Py_XDECREF((PyObject *)table->row[type].output);
    }
    for (int i = 0; i < table->mixed_rows; i++) {
        Py_XDECREF((PyObject *)table->mixed[i].input);
        Py_XDECREF((PyObject *)table->mixed[i].second);
        Py_XDECREF((PyObject *)table->mixed[i].output);
    }
    PyMem_Free(table->mixed);
    PyMem_Free(table->converting);
}
