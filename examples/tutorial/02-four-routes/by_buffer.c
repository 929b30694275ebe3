/* Route 2: CPython's API and the buffer protocol, without any of NumPy's headers. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

#include "add.h"

/* Get one-dimensional contiguous memory of C doubles. Returns -1 with an exception. */
static int get_doubles(PyObject *object, int flags, Py_buffer *view)
{
    if (PyObject_GetBuffer(object, view, flags | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
        return -1; /* no buffer, not contiguous, or read-only: the exporter has said so */
    }
    if (view->ndim == 1 && view->format != NULL && strcmp(view->format, "d") == 0) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "add(): %d dimensions of format '%s', not 1 of 'd'", view->ndim,
                 view->format == NULL ? "B" : view->format);
    PyBuffer_Release(view);
    return -1;
}

static PyObject *by_buffer_add(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *objects[3], *result = NULL;
    if (!PyArg_ParseTuple(args, "OOO:add", &objects[0], &objects[1], &objects[2])) {
        return NULL;
    }
    Py_buffer views[3];
    int got = 0;
    while (got < 3 && get_doubles(objects[got], got == 2 ? PyBUF_WRITABLE : 0, &views[got]) == 0) {
        got++;
    }
    if (got < 3) {
        goto release;
    }
    if (views[0].len != views[2].len || views[1].len != views[2].len) {
        PyErr_SetString(PyExc_ValueError, "add(): lengths are not equal");
        goto release;
    }
    /* Nothing of Python is touched, and the views keep the memory where it is. */
    Py_BEGIN_ALLOW_THREADS;
    add(views[0].buf, views[1].buf, views[2].buf, (size_t)views[2].len / sizeof(double));
    Py_END_ALLOW_THREADS;
    result = Py_NewRef(Py_None);
release:
    while (got > 0) {
        PyBuffer_Release(&views[--got]);
    }
    return result;
}

static PyMethodDef methods[] = {
    {"add", by_buffer_add, METH_VARARGS, "add(a, b, out, /): out[i] = a[i] + b[i]."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "by_buffer",
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_by_buffer(void)
{
    return PyModuleDef_Init(&definition);
}
