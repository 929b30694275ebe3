// Route 3: C++ around the same API: destructors release, exceptions return, templates are dtypes.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstring>

namespace
{

struct PythonError {
}; // thrown where an exception of Python has been set

class View
{
  public:
    View(PyObject *object, int flags)
    {
        if (PyObject_GetBuffer(object, &view, flags | PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
            throw PythonError();
        }
        if (view.ndim != 1) {
            PyErr_Format(PyExc_TypeError, "add(): %d dimensions, not 1", view.ndim);
            PyBuffer_Release(&view); // no destructor runs for what was not constructed
            throw PythonError();
        }
    }
    ~View()
    {
        PyBuffer_Release(&view);
    }
    View(const View &) = delete;
    View &operator=(const View &) = delete;

    bool has_format(const char *format) const
    {
        return std::strcmp(view.format, format) == 0;
    }
    Py_ssize_t size() const
    {
        return view.shape[0];
    }
    template <typename T> T &at(Py_ssize_t i) const
    {
        return *reinterpret_cast<T *>(static_cast<char *>(view.buf) + i * view.strides[0]);
    }

  private:
    Py_buffer view;
};

class WithoutGil
{
  public:
    WithoutGil() : state(PyEval_SaveThread())
    {
    }
    ~WithoutGil()
    {
        PyEval_RestoreThread(state);
    }
    WithoutGil(const WithoutGil &) = delete;
    WithoutGil &operator=(const WithoutGil &) = delete;

  private:
    PyThreadState *state;
};

template <typename T> void add_views(const View &a, const View &b, const View &out)
{
    const WithoutGil without_gil;
    for (Py_ssize_t i = 0; i < out.size(); i++) {
        out.at<T>(i) = a.at<T>(i) + b.at<T>(i);
    }
}

void add(PyObject *const *objects)
{
    const View a(objects[0], 0), b(objects[1], 0), out(objects[2], PyBUF_WRITABLE);
    const auto all_have = [&](const char *format) {
        return a.has_format(format) && b.has_format(format) && out.has_format(format);
    };
    if (a.size() != out.size() || b.size() != out.size()) {
        PyErr_SetString(PyExc_ValueError, "add(): lengths are not equal");
        throw PythonError();
    }
    if (all_have("d")) {
        add_views<double>(a, b, out);
    } else if (all_have("f")) {
        add_views<float>(a, b, out);
    } else {
        PyErr_SetString(PyExc_TypeError, "add(): formats are not all 'd' or all 'f'");
        throw PythonError();
    }
}

// No exception of C++ may pass through Python, which is C.
extern "C" PyObject *by_cpp_add(PyObject *, PyObject *const *objects, Py_ssize_t n)
{
    if (n != 3) {
        return PyErr_Format(PyExc_TypeError, "add() takes 3 arguments (%zd given)", n);
    }
    try {
        add(objects);
    } catch (const PythonError &) {
        return nullptr;
    }
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"add", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(by_cpp_add)), METH_FASTCALL,
     "add(a, b, out, /): out[i] = a[i] + b[i]."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "by_cpp", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr,
};

} // namespace

PyMODINIT_FUNC PyInit_by_cpp(void)
{
    return PyModuleDef_Init(&definition);
}
