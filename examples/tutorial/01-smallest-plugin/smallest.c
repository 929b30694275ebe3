/* A module with two functions: hello(name) and fibonacci(n). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { LARGEST_N = 10000 }; /* the memo then takes about 5 MB */

/* Each module object, and so each interpreter, has its own. */
struct state {
    PyObject *memo; /* a list: memo[i] is the i-th Fibonacci number */
};

static PyObject *hello(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name = NULL; /* borrowed from args, if it is given */
    if (!PyArg_ParseTuple(args, "|U:hello", &name)) {
        return NULL; /* the exception is set */
    }
    return name == NULL ? PyUnicode_FromString("Hello, world!")
                        : PyUnicode_FromFormat("Hello, %U!", name);
}

/* Append the sum of the last two numbers. Returns -1 with an exception. */
static int extend(PyObject *memo)
{
    const Py_ssize_t n = PyList_GET_SIZE(memo);
    PyObject *next = PyNumber_Add(PyList_GET_ITEM(memo, n - 1), PyList_GET_ITEM(memo, n - 2));
    if (next == NULL) {
        return -1;
    }
    const int status = PyList_Append(memo, next); /* takes a reference of its own */
    Py_DECREF(next);
    return status;
}

static PyObject *fibonacci(PyObject *module, PyObject *argument)
{
    const Py_ssize_t n = PyNumber_AsSsize_t(argument, PyExc_ValueError);
    if (n == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (n < 0 || n > LARGEST_N) {
        return PyErr_Format(PyExc_ValueError, "fibonacci(): n is %zd, not 0 to %d", n, LARGEST_N);
    }
    PyObject *memo = ((struct state *)PyModule_GetState(module))->memo;
    while (PyList_GET_SIZE(memo) <= n) {
        if (extend(memo) < 0) {
            return NULL;
        }
    }
    return Py_NewRef(PyList_GET_ITEM(memo, n)); /* the list keeps its own reference */
}

static int exec_module(PyObject *module)
{
    struct state *state = PyModule_GetState(module);
    state->memo = Py_BuildValue("[ii]", 0, 1);
    return state->memo == NULL ? -1 : 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct state *state = PyModule_GetState(module);
    Py_VISIT(state->memo);
    return 0;
}

static int clear(PyObject *module)
{
    struct state *state = PyModule_GetState(module);
    Py_CLEAR(state->memo);
    return 0;
}

static void free_module(void *module)
{
    clear(module);
}

static PyMethodDef methods[] = {
    {"hello", hello, METH_VARARGS, "hello(name='world', /): a greeting."},
    {"fibonacci", fibonacci, METH_O, "fibonacci(n, /): the n-th Fibonacci number, n <= 10000."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)exec_module}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "smallest",
    .m_doc = "The smallest plugin.",
    .m_size = sizeof(struct state), /* zeroed before exec_module() */
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit_smallest(void)
{
    return PyModuleDef_Init(&definition);
}
