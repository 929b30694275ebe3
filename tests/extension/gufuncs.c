/* Generalized ufuncs with all that their signatures may have: fixed, optional and computed
 * dimensions, several results; and with loops that raise exceptions and floating-point flags. */
#include "gufuncs.h"

#include <math.h>

/* Where elements are; steps in bytes. */
static double at(const char *data, npy_intp i, npy_intp step)
{
    return *(const double *)(data + i * step);
}

static void put(char *data, npy_intp i, npy_intp step, double value)
{
    *(double *)(data + i * step) = value;
}

/* ---- loops: dimensions are the number of items, then those of an item ---- */

static void float_sums(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)data;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        const char *x = args[0] + item * steps[0];
        float sum = 0;
        for (npy_intp i = 0; i < dimensions[1]; i++) {
            const float element = *(const float *)(x + i * steps[2]);
            sum += element * element;
        }
        *(float *)(args[1] + item * steps[1]) = sum;
    }
}

static void double_sums(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)data;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        const char *x = args[0] + item * steps[0];
        double sum = 0;
        for (npy_intp i = 0; i < dimensions[1]; i++) {
            sum += at(x, i, steps[2]) * at(x, i, steps[2]);
        }
        put(args[1], item, steps[1], sum);
    }
}

static void products(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)data;
    const npy_intp *of_a = steps + 3, *of_b = steps + 5, *of_c = steps + 7;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        const char *a = args[0] + item * steps[0], *b = args[1] + item * steps[1];
        char *c = args[2] + item * steps[2];
        for (npy_intp i = 0; i < dimensions[1]; i++) {
            for (npy_intp j = 0; j < dimensions[3]; j++) {
                double sum = 0;
                for (npy_intp k = 0; k < dimensions[2]; k++) {
                    sum += at(a + i * of_a[0], k, of_a[1]) * at(b + k * of_b[0], j, of_b[1]);
                }
                put(c + i * of_c[0], j, of_c[1], sum);
            }
        }
    }
}

static void crosses(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)data;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        const char *a = args[0] + item * steps[0], *b = args[1] + item * steps[1];
        double result[3];
        for (npy_intp i = 0; i < 3; i++) {
            const npy_intp j = (i + 1) % 3, k = (i + 2) % 3;
            result[i] =
                at(a, j, steps[3]) * at(b, k, steps[4]) - at(a, k, steps[3]) * at(b, j, steps[4]);
        }
        for (npy_intp i = 0; i < 3; i++) {
            put(args[2] + item * steps[2], i, steps[5], result[i]);
        }
    }
}

static void equalities(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)data;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        const char *a = args[0] + item * steps[0], *b = args[1] + item * steps[1];
        bool are_equal = true;
        for (npy_intp i = 0; i < dimensions[1]; i++) {
            are_equal = are_equal && at(a, i, steps[3]) == at(b, i, steps[4]);
        }
        *(npy_bool *)(args[2] + item * steps[2]) = are_equal;
    }
}

static void differences(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)data;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        const char *x = args[0] + item * steps[0];
        for (npy_intp i = 0; i < dimensions[2]; i++) {
            put(args[1] + item * steps[1], i, steps[3],
                at(x, i + 1, steps[2]) - at(x, i, steps[2]));
        }
    }
}

/* Two results: x / max(x), max(x). */
static void normalizations(char **args, const npy_intp *dimensions, const npy_intp *steps,
                           void *data)
{
    (void)data;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        const char *x = args[0] + item * steps[0];
        double largest = dimensions[1] > 0 ? at(x, 0, steps[3]) : 0;
        for (npy_intp i = 1; i < dimensions[1]; i++) {
            largest = fmax(largest, at(x, i, steps[3]));
        }
        for (npy_intp i = 0; i < dimensions[1]; i++) {
            put(args[1] + item * steps[1], i, steps[4], at(x, i, steps[3]) / largest);
        }
        put(args[2], item, steps[2], largest);
    }
}

/* Raises the flags of a division, and no exception. */
static void reciprocals(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)data;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        for (npy_intp i = 0; i < dimensions[1]; i++) {
            put(args[1] + item * steps[1], i, steps[3],
                1 / at(args[0] + item * steps[0], i, steps[2]));
        }
    }
}

/* Raises an exception that names the first negative number, and computes no further. */
static void roots(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    (void)data;
    for (npy_intp item = 0; item < dimensions[0]; item++) {
        for (npy_intp i = 0; i < dimensions[1]; i++) {
            const double x = at(args[0] + item * steps[0], i, steps[2]);
            if (x < 0) {
                const PyGILState_STATE gil = PyGILState_Ensure();
                PyErr_Format(PyExc_ValueError, "no root of -%ld", (long)-x);
                PyGILState_Release(gil);
                return;
            }
            put(args[1] + item * steps[1], i, steps[3], sqrt(x));
        }
    }
}

/* ---- dimensions that are computed, from NumPy 2.1 on ---- */

typedef int process_core_dims(PyUFuncObject *ufunc, npy_intp *dimensions);

static int process_differences(PyUFuncObject *ufunc, npy_intp *dimensions)
{
    (void)ufunc;
    if (dimensions[0] == 0) {
        PyErr_SetString(PyExc_ValueError, "differences of nothing");
        return -1;
    }
    if (dimensions[1] == -1) {
        dimensions[1] = dimensions[0] - 1;
    } else if (dimensions[1] != dimensions[0] - 1) {
        PyErr_Format(PyExc_ValueError, "%zd differences of %zd numbers", (Py_ssize_t)dimensions[1],
                     (Py_ssize_t)dimensions[0]);
        return -1;
    }
    return 0;
}

/* ---- the ufuncs ---- */

enum { MOST_LOOPS = 2 };

static struct gufunc {
    const char *name, *signature, *types;
    int inputs, outputs;
    PyUFuncGenericFunction loops[MOST_LOOPS];
    process_core_dims *process;
} gufuncs[] = {
    {"sum_of_squares", "(n)->()", "ffdd", 1, 1, {float_sums, double_sums}, NULL},
    {"product", "(m?,n),(n,p?)->(m?,p?)", "ddd", 2, 1, {products}, NULL},
    {"cross", "(3),(3)->(3)", "ddd", 2, 1, {crosses}, NULL},
    {"all_equal", "(n),(n)->()", "dd?", 2, 1, {equalities}, NULL},
    {"differences", "(n)->(m)", "dd", 1, 1, {differences}, process_differences},
    {"normalized", "(n)->(n),()", "ddd", 1, 2, {normalizations}, NULL},
    {"reciprocals", "(n)->(n)", "dd", 1, 1, {reciprocals}, NULL},
    {"roots", "(n)->(n)", "dd", 1, 1, {roots}, NULL},
};

static char types_of[sizeof gufuncs / sizeof *gufuncs][8];
static void *no_data[MOST_LOOPS];

static PyObject *make(struct gufunc *gufunc, char types[])
{
    const int operands = gufunc->inputs + gufunc->outputs;
    int loops = 0;
    for (; gufunc->types[loops * operands] != '\0'; loops++) {
        for (int i = loops * operands; i < (loops + 1) * operands; i++) {
            types[i] = gufunc->types[i] == 'f'   ? NPY_FLOAT
                       : gufunc->types[i] == 'd' ? NPY_DOUBLE
                                                 : NPY_BOOL;
        }
    }
    PyObject *made = PyUFunc_FromFuncAndDataAndSignature(
        gufunc->loops, no_data, types, loops, gufunc->inputs, gufunc->outputs, PyUFunc_None,
        gufunc->name, "A generalized ufunc of the tests.", 0, gufunc->signature);
    if (made != NULL && gufunc->process != NULL) {
        /* The field that NumPy 2.1 has added to the struct of 2.0. */
        *(process_core_dims **)((PyUFuncObject *)made + 1) = gufunc->process;
    }
    return made;
}

bool gufuncs_add(PyObject *module)
{
    for (size_t i = 0; i < sizeof gufuncs / sizeof *gufuncs; i++) {
        if (gufuncs[i].process != NULL && PyArray_GetNDArrayCFeatureVersion() < API_OF_NUMPY_2_1) {
            continue;
        }
        PyObject *made = make(&gufuncs[i], types_of[i]);
        if (made == NULL || PyModule_AddObjectRef(module, gufuncs[i].name, made) < 0) {
            Py_XDECREF(made);
            return false;
        }
        Py_DECREF(made);
    }
    return true;
}
