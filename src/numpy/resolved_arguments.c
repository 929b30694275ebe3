/* Raises nothing: wrong arguments are left to NumPy, which does. */
#include "resolved_arguments.h"

#include "numpy_private.h"
#include "operands.h"

#include <string.h>

/* Of an input: that fit NumPy's buffer, mostly even if broadcast. */
enum { FEW_ELEMENTS = 64 };

enum { OUT, WHERE, DTYPE, SIGNATURE, CASTING, ORDER, SUBOK, KEYWORDS };
static PyObject *keyword_names[KEYWORDS];

int resolved_arguments_initialize(void)
{
    static const char *const names[KEYWORDS] = {"out",     "where", "dtype", "signature",
                                                "casting", "order", "subok"};
    for (int i = 0; i < KEYWORDS; i++) {
        keyword_names[i] = PyUnicode_InternFromString(names[i]);
        if (keyword_names[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

/* Elements of the inputs when broadcast, or more where even all combinations of theirs fit the buffer, or where NumPy
 * says that the shapes do not go together; 0 if there are no axes. */
static npy_intp size_of_inputs(const struct call_table *table, PyObject *const *args)
{
    PyArrayObject *array[MOST_OPERANDS];
    npy_intp combinations = 1, longest = 0;
    bool are_lines = true;
    for (int i = 0; i < table->inputs; i++) {
        array[i] = PyArray_CheckExact(args[i]) ? (PyArrayObject *)args[i] : NULL;
        if (array[i] != NULL && PyArray_NDIM(array[i]) > 0) {
            const npy_intp size = array_size(array[i]);
            const bool fits = size <= NPY_BUFSIZE && combinations <= NPY_BUFSIZE;
            combinations = fits ? combinations * size : NPY_BUFSIZE + 1;
            longest = Py_MAX(longest, size);
            are_lines = are_lines && PyArray_NDIM(array[i]) == 1;
        }
    }
    return longest == 0                  ? 0
           : combinations <= NPY_BUFSIZE ? combinations
           : are_lines                   ? longest
                                         : operands_size(array, table->inputs);
}

static bool has_own_bytes(PyArray_Descr *dtype)
{
    return dtype_is_number(dtype->type_num) && PyDataType_METADATA(dtype) == NULL;
}

/* What an input is; -1: something unusual. */
static int kind_of(PyObject *input)
{
    if (PyArray_CheckExact(input)) {
        PyArray_Descr *dtype = PyArray_DESCR((PyArrayObject *)input);
        return has_own_bytes(dtype) ? dtype->type_num : -1;
    }
    if (PyFloat_CheckExact(input)) {
        return INPUT_PYTHON_FLOAT;
    }
    if (PyLong_CheckExact(input)) {
        return INPUT_PYTHON_INT;
    }
    if (PyComplex_CheckExact(input)) {
        return INPUT_PYTHON_COMPLEX;
    }
    if (PyBool_Check(input)) {
        return NPY_BOOL;
    }
    if (!PyArray_IsScalar(input, Generic) || !PyArray_CheckAnyScalarExact(input)) {
        return -1;
    }
    PyArray_Descr *dtype = PyArray_DescrFromScalar(input);
    const int type = dtype != NULL && has_own_bytes(dtype) ? dtype->type_num : -1;
    Py_XDECREF(dtype);
    PyErr_Clear();
    return type;
}

static bool read_output(struct resolved_arguments *arguments, int operand, PyObject *object)
{
    if (object == Py_None) {
        return true;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    arguments->out[operand] = array;
    return PyArray_CheckExact(object) && has_own_bytes(PyArray_DESCR(array)) &&
           private_is_writable(array) && !PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEBACKIFCOPY);
}

static bool read_outputs(struct resolved_arguments *arguments, PyObject *const *args,
                         Py_ssize_t positional, PyObject *out)
{
    const struct call_table *table = arguments->table;
    const int outputs = table->operands - table->inputs;
    if (positional > table->operands ||
        (positional > table->inputs && (out != NULL || table->warns_of_third))) {
        return false;
    }
    for (int op = table->inputs; op < table->operands; op++) {
        PyObject *given = op < positional ? args[op] : Py_None;
        if (out != NULL && PyTuple_CheckExact(out)) {
            if (PyTuple_GET_SIZE(out) != outputs) {
                return false;
            }
            given = PyTuple_GET_ITEM(out, op - table->inputs);
        } else if (out != NULL && outputs == 1) {
            given = out;
        } else if (out != NULL) {
            return false;
        }
        arguments->out[op] = NULL;
        if (!read_output(arguments, op, given)) {
            return false;
        }
    }
    return true;
}

/* NumPy says what is wrong with other masks, or warns where no output is given. */
static bool read_mask(struct resolved_arguments *arguments, PyObject *where)
{
    arguments->mask = (PyArrayObject *)where;
    if (arguments->mask == NULL) {
        return true;
    }
    bool all_given = true;
    for (int op = arguments->table->inputs; op < arguments->table->operands; op++) {
        all_given = all_given && arguments->out[op] != NULL;
    }
    return all_given && PyArray_CheckExact(where) && PyArray_TYPE(arguments->mask) == NPY_BOOL;
}

/* Values by name; NULL: not given, or the default. False if there are others. */
static bool list_keywords(PyObject *const *values, PyObject *keywords, PyObject *value[])
{
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    memset(value, 0, KEYWORDS * sizeof *value);
    for (Py_ssize_t i = 0; i < named; i++) {
        int k = 0;
        while (k < KEYWORDS && keyword_names[k] != PyTuple_GET_ITEM(keywords, i)) {
            k++;
        }
        if (k == KEYWORDS) {
            return false;
        }
        const bool is_default = values[i] == Py_None || (k == WHERE && values[i] == Py_True) ||
                                (k == OUT && operands_asks_for_new(values[i]));
        value[k] = is_default ? NULL : values[i];
    }
    return true;
}

static bool read_keywords(struct resolved_arguments *arguments, PyObject *const *args,
                          Py_ssize_t positional, PyObject *keywords)
{
    PyObject *value[KEYWORDS];
    if (!list_keywords(args + positional, keywords, value) ||
        (value[DTYPE] != NULL && value[SIGNATURE] != NULL)) {
        return false;
    }
    arguments->dtype = value[DTYPE];
    arguments->signature = value[SIGNATURE];
    arguments->casting = value[CASTING];
    arguments->casting_rule = NPY_SAME_KIND_CASTING;
    arguments->order = NPY_KEEPORDER;
    return (value[ORDER] == NULL ||
            PyArray_OrderConverter(value[ORDER], &arguments->order) == NPY_SUCCEED) &&
           (value[CASTING] == NULL ||
            PyArray_CastingConverter(value[CASTING], &arguments->casting_rule) == NPY_SUCCEED) &&
           /* NumPy's resolve_dtypes() crashes where a Python number must not be cast at all. */
           arguments->casting_rule >= NPY_SAFE_CASTING &&
           read_outputs(arguments, args, positional, value[OUT]) &&
           read_mask(arguments, value[WHERE]);
}

/* Of short calls, NumPy reads others: none of them is worth it. */
static bool are_usual_keywords(PyObject *const *values, PyObject *keywords, PyObject **dtype)
{
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    bool are = true;
    *dtype = NULL;
    for (Py_ssize_t i = 0; i < named && are; i++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, i);
        if (name == keyword_names[DTYPE] && values[i] != Py_None) {
            *dtype = values[i];
        }
        are = name == keyword_names[DTYPE] || name == keyword_names[OUT];
    }
    return are;
}

bool resolved_arguments_read_inputs(struct resolved_arguments *arguments,
                                    const struct call_table *table, PyObject *const *args,
                                    Py_ssize_t positional, PyObject *keywords)
{
    arguments->fits_buffer = false;
    if (table->loops == 0 || table->operands > MOST_OPERANDS) {
        return false;
    }
    const bool are_usual_of_few =
        are_usual_keywords(args + positional, keywords, &arguments->dtype);
    if (!are_usual_of_few && operands_largest(args, table->inputs) <= FEW_ELEMENTS) {
        arguments->fits_buffer = true;
        return false;
    }
    const npy_intp n = size_of_inputs(table, args);
    arguments->table = table;
    arguments->input = args;
    arguments->fits_buffer = n <= NPY_BUFSIZE || n <= private_buffer_size();
    bool are_usual = n > 0 && (!arguments->fits_buffer || are_usual_of_few);
    for (int i = 0; i < table->inputs && are_usual; i++) {
        arguments->kind[i] = kind_of(args[i]);
        are_usual = arguments->kind[i] >= 0;
    }
    return are_usual;
}

bool resolved_arguments_read_others(struct resolved_arguments *arguments, PyObject *const *args,
                                    size_t count, PyObject *keywords)
{
    const bool are_read = read_keywords(arguments, args, PyVectorcall_NARGS(count), keywords);
    PyErr_Clear();
    return are_read;
}
