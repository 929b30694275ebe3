/* Which dtypes a call may have, and what computes them. NumPy is asked, not guessed. */
#include "call_table.h"

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

/* ---- inputs of several dtypes ---- */

enum { NOT_ASKED = 0, NO_ROW = -1 }; /* else one more than the type number */

static PyObject *dtype_of_kind(int kind)
{
    return kind == INPUT_PYTHON_FLOAT ? Py_NewRef((PyObject *)&PyFloat_Type)
           : kind == INPUT_PYTHON_INT ? Py_NewRef((PyObject *)&PyLong_Type)
                                      : (PyObject *)PyArray_DescrFromType(kind);
}

/* The type number that NumPy casts all inputs to; NO_ROW if it casts them to several, or raises. */
static int ask_numpy(const struct call_table *table, const int kinds[])
{
    PyObject *dtypes = PyTuple_New(table->inputs + 1), *resolved = NULL;
    int type = NO_ROW;
    if (dtypes != NULL) {
        for (int i = 0; i < table->inputs; i++) {
            PyTuple_SET_ITEM(dtypes, i, dtype_of_kind(kinds[i]));
        }
        PyTuple_SET_ITEM(dtypes, table->inputs, Py_NewRef(Py_None));
        resolved = PyObject_CallMethod(table->ufunc, "resolve_dtypes", "(O)", dtypes);
    }
    if (resolved != NULL) {
        type = ((PyArray_Descr *)PyTuple_GET_ITEM(resolved, 0))->type_num;
        for (int i = 1; i < table->inputs; i++) {
            if (((PyArray_Descr *)PyTuple_GET_ITEM(resolved, i))->type_num != type) {
                type = NO_ROW;
            }
        }
    }
    PyErr_Clear();
    Py_XDECREF(resolved);
    Py_XDECREF(dtypes);
    return type < CALL_TYPES ? type : NO_ROW;
}

const struct call_row *call_table_mixed(struct call_table *table, const int kinds[])
{
    if (table->mixed == NULL) {
        table->mixed = PyMem_Calloc(INPUT_KINDS, sizeof *table->mixed);
    }
    if (table->mixed == NULL || table->inputs > 2) {
        return NULL;
    }
    signed char *known = &table->mixed[kinds[0]][table->inputs == 2 ? kinds[1] : 0];
    if (*known == NOT_ASKED) {
        const int type = ask_numpy(table, kinds);
        const bool exists =
            type != NO_ROW && table->row[type].input != NULL && !table->row[type].converts;
        *known = (signed char)(exists ? type + 1 : NO_ROW);
    }
    return *known == NO_ROW ? NULL : &table->row[*known - 1];
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

int call_table_initialize(struct call_table *table, PyUFuncObject *ufunc, struct loop *loops)
{
    table->ufunc = (PyObject *)ufunc;
    table->name = ufunc->name;
    table->inputs = ufunc->nin;
    table->is_product = ufunc->core_enabled && gufunc_is_named(ufunc->name, &table->gufunc);
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
        struct call_row *entry = &table->row[(int)types[0]];
        if (!alike || entry->input != NULL ||
            (!table->is_product && loops[row].engine.operands == 0)) {
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
    PyMem_Free(table->converting);
    PyMem_Free(table->mixed);
}
