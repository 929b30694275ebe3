/* Reads the arguments of reduce and accumulate. Raises nothing: wrong arguments are left to NumPy,
 * which does. */
#include "reduction_arguments.h"

#include "dtypes.h"
#include "numpy_private.h"

#include <string.h>

enum { AXIS, DTYPE, OUT, KEEPDIMS, INITIAL, WHERE, OPTIONS };
_Static_assert((int)OUT + 1 == ARGUMENTS_OF_ACCUMULATE && (int)OPTIONS == ARGUMENTS_OF_REDUCE,
               "their order");

static PyObject *no_value, *option_names[OPTIONS];

int reduction_arguments_initialize(void)
{
    static const char *const names[OPTIONS] = {"axis",     "dtype",   "out",
                                               "keepdims", "initial", "where"};
    no_value = private_no_value();
    bool complete = true;
    for (int i = 0; i < OPTIONS && complete; i++) {
        option_names[i] = PyUnicode_InternFromString(names[i]);
        complete = option_names[i] != NULL;
    }
    return complete ? 0 : -1;
}

static bool read_keywords(PyObject *options[], int known, PyObject *const *values,
                          PyObject *keywords)
{
    const Py_ssize_t count = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        int k = 0;
        while (k < known && option_names[k] != PyTuple_GET_ITEM(keywords, i)) {
            k++;
        }
        if (k == known || options[k] != NULL) {
            return false;
        }
        options[k] = values[i];
    }
    return true;
}

static bool mark_axis(struct reduction_arguments *arguments, PyObject *number)
{
    if (!PyLong_CheckExact(number)) {
        return false;
    }
    int overflows;
    long axis = PyLong_AsLongAndOverflow(number, &overflows);
    axis = axis < 0 ? axis + arguments->ndim : axis;
    if (overflows != 0 || axis < 0 || axis >= arguments->ndim || arguments->reduced[axis]) {
        return false;
    }
    arguments->reduced[axis] = true;
    return true;
}

static bool mark_axes(struct reduction_arguments *arguments, PyObject *axis)
{
    arguments->ndim = PyArray_NDIM(arguments->array);
    memset(arguments->reduced, axis == Py_None, (size_t)arguments->ndim);
    if (arguments->ndim == 0) {
        return false;
    }
    if (axis == NULL) {
        arguments->reduced[0] = true;
        return true;
    }
    if (axis == Py_None) {
        return true;
    }
    if (!PyTuple_CheckExact(axis)) {
        return mark_axis(arguments, axis);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(axis); i++) {
        if (!mark_axis(arguments, PyTuple_GET_ITEM(axis, i))) {
            return false;
        }
    }
    return PyTuple_GET_SIZE(axis) > 0;
}

static PyObject *null_if_none(PyObject *object)
{
    return object != Py_None ? object : NULL;
}

bool reduction_arguments_read(struct reduction_arguments *arguments,
                              enum reduction_arguments_known known, PyObject *const *args,
                              Py_ssize_t count, PyObject *keywords)
{
    PyObject *options[OPTIONS] = {NULL};
    if (count < 1 || count > 1 + (Py_ssize_t)known || !PyArray_CheckExact(args[0])) {
        return false;
    }
    memcpy(options, args + 1, (size_t)(count - 1) * sizeof *options);
    if (!read_keywords(options, (int)known, args + count, keywords) ||
        (options[KEEPDIMS] != NULL && !PyBool_Check(options[KEEPDIMS]))) {
        return false;
    }
    PyObject *out = options[OUT];
    const bool is_tuple = out != NULL && PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1;
    arguments->array = (PyArrayObject *)args[0];
    arguments->dtype = null_if_none(options[DTYPE]);
    arguments->out = null_if_none(is_tuple ? PyTuple_GET_ITEM(out, 0) : out);
    arguments->keepdims = options[KEEPDIMS] == Py_True;
    arguments->initial = options[INITIAL] != no_value ? options[INITIAL] : NULL;
    arguments->where = options[WHERE] != Py_True ? options[WHERE] : NULL;
    return mark_axes(arguments, options[AXIS]);
}

int reduction_arguments_type(const struct reduction_arguments *arguments, int usual)
{
    PyArray_Descr *descr;
    if (arguments->dtype == NULL) {
        return usual;
    }
    if (PyArray_DescrConverter(arguments->dtype, &descr) != NPY_SUCCEED) {
        PyErr_Clear();
        return -1;
    }
    const int type = descr->type_num;
    const bool is_usable = type >= 0 && type < DTYPES && PyArray_ISNBO(descr->byteorder) &&
                           PyDataType_METADATA(descr) == NULL;
    Py_DECREF(descr);
    return is_usable ? type : -1;
}

int reduction_arguments_axis(const struct reduction_arguments *arguments)
{
    int single = -1, axes = 0;
    for (int axis = 0; axis < arguments->ndim; axis++) {
        if (arguments->reduced[axis]) {
            single = axis;
            axes++;
        }
    }
    return axes == 1 ? single : -1;
}
