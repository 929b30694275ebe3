/* Calls whose inner loop NumPy has to be asked for: with operands of several dtypes, keywords, several outputs. Two
 * inputs and an output are converted by the kernel or piece by piece, if there are the conversions; else threads get
 * ranges of NumPy's iterator, which casts in buffers. */
#include "resolved_call.h"

#include "elementwise_call.h"
#include "elementwise_ranges.h"
#include "numpy_private.h"
#include "operands.h"
#include "resolved_arguments.h"

#include "engine/elementwise_cutoffs.h"
#include "engine/nested.h"
#include "engine/tiling.h"
#include "kernels/sizes.h"

/* ---- the inner loop ---- */

static bool is_of_dtype(int type, int wanted)
{
    const struct dtype a = dtype_of(type), b = dtype_of(wanted);
    return a.kind == b.kind && a.size == b.size;
}

static bool can_cast(int from, PyArray_Descr *to, NPY_CASTING casting)
{
    PyArray_Descr *descr = PyArray_DescrFromType(from);
    const bool can = PyArray_CanCastTypeTo(descr, to, casting);
    Py_DECREF(descr);
    return can;
}

/* Floats outside the range of integers become what NumPy's instructions make of them, which depends on where a
 * buffer ends. */
static bool is_undefined(int from, int to)
{
    return !dtype_is_integer(from) && dtype_is_integer(to) && to != NPY_BOOL;
}

/* NaNs of 32 bits; without a branch, so that the loop becomes one of vectors where `step` is a constant. */
static inline bool has_signaling(const char *data, npy_intp step, npy_intp n)
{
    enum { WITHOUT_SIGN = 0x7fffffff, FIRST = 0x7f800001, QUIET = 0x7fc00000 };
    unsigned any = 0;
    for (npy_intp i = 0; i < n; i++) {
        const uint32_t bits = *(const uint32_t *)(data + i * step) & WITHOUT_SIGN;
        any |= bits - FIRST < QUIET - FIRST;
    }
    return any != 0;
}

static size_t size_of_part(struct dtype dtype)
{
    return dtype.kind == 'c' ? dtype.size / 2 : dtype.size;
}

/* Of floats, in the time that is gained: where a loop of NumPy's computes them, and of those that lie apart. */
enum { MOST_LOOKED_AT = 2048, MOST_LOOKED_AT_APART = 512 };

/* Whether a cast raises flags that NumPy reports as those of a cast, since it comes before the loop: arrays of up to
 * one axis that fit its buffer are cast as a whole. Only floats that become longer ones do, by signaling NaNs; those
 * of half precision are converted without flags. In short calls it takes too long to look at many floats one by one. */
static bool is_raised_by_cast(PyArrayObject *array, int to, bool fits_buffer)
{
    const int type = PyArray_TYPE(array);
    const struct dtype from = dtype_of(type);
    const npy_intp n = array_size(array);
    if ((from.kind != 'f' && from.kind != 'c') || type == NPY_HALF || PyArray_NDIM(array) > 1 ||
        size_of_part(from) == size_of_part(dtype_of(to)) ||
        (!fits_buffer && n > private_buffer_size())) {
        return false;
    }
    const npy_intp size = sizeof(npy_float), parts = PyArray_ITEMSIZE(array) / size;
    if (size_of_part(from) != sizeof(npy_float) || !array_is_plain(array)) {
        return true; /* for all we know */
    }
    const char *data = PyArray_DATA(array);
    if (PyArray_IS_C_CONTIGUOUS(array)) {
        return has_signaling(data, sizeof(npy_float), n * parts);
    }
    const npy_intp step = PyArray_STRIDE(array, 0);
    return (fits_buffer && n > MOST_LOOKED_AT_APART) || has_signaling(data, step, n) ||
           (parts > 1 && has_signaling(data + size, step, n));
}

/* Whether a cast of whole operands raises no flags. */
static bool is_quiet_cast(int kind, int type)
{
    return PyArray_CanCastSafely(kind, type) || (dtype_is_integer(kind) && type == NPY_BOOL);
}

/* Casts that may raise flags: of whole operands NumPy does so in other words; and some of its loops clear what
 * casts of outputs have raised. */
static bool casts_are_usual(const struct resolved_arguments *arguments, int loop)
{
    const struct call_table *table = arguments->table;
    const char *types = table->types + loop * table->operands;
    for (int i = 0; i < table->inputs; i++) {
        PyObject *input = arguments->input[i];
        const bool usual = arguments->kind[i] >= CALL_TYPES ||
                           is_quiet_cast(arguments->kind[i], types[i]) ||
                           (PyArray_CheckExact(input) &&
                            array_size((PyArrayObject *)input) > private_buffer_size());
        if (!usual ||
            (arguments->kind[i] < CALL_TYPES && is_undefined(arguments->kind[i], types[i])) ||
            (PyArray_CheckExact(input) &&
             is_raised_by_cast((PyArrayObject *)input, types[i], arguments->fits_buffer))) {
            return false;
        }
    }
    for (int op = table->inputs; op < table->operands; op++) {
        PyArrayObject *out = arguments->out[op];
        if (out == NULL || is_of_dtype(types[op], PyArray_TYPE(out))) {
            continue;
        }
        /* Integers raise nothing where they fit. With a mask, NumPy casts what the output holds, too. */
        const bool has_kernel = table->loop[loop].engine.kernel != NULL;
        if (arguments->mask != NULL || is_undefined(types[op], PyArray_TYPE(out)) ||
            !(has_kernel || dtype_is_integer(types[op])) ||
            !can_cast(types[op], PyArray_DESCR(out),
                      has_kernel ? arguments->casting_rule : NPY_SAFE_CASTING)) {
            return false;
        }
    }
    return true;
}

/* The row of the type table; -1 if NumPy is to find it, or says what is wrong. */
static int find_loop(const struct resolved_arguments *arguments)
{
    const struct call_table *table = arguments->table;
    const int loop =
        call_table_loop((struct call_table *)table, arguments->kind, arguments->dtype,
                        arguments->signature, arguments->casting, arguments->casting_rule);
    PyErr_Clear();
    return loop >= 0 && casts_are_usual(arguments, loop) ? loop : -1;
}

/* Smaller integers are the same bytes of signed and unsigned ones. Found once for each pair of dtypes: looking
 * for it takes as long as some hundred elements. */
static convert_elements *conversion(int from, int to)
{
    static struct {
        convert_elements *_Atomic convert;
        _Atomic bool is_known;
    } found[CALL_TYPES][CALL_TYPES];
    if (!found[from][to].is_known) {
        const struct dtype source = dtype_of(from), target = dtype_of(to);
        const char kind = target.size < source.size ? dtype_modular_kind(from) : source.kind;
        found[from][to].convert =
            conversion_find(kind, source.size, dtype_modular_kind(to), target.size);
        found[from][to].is_known = true;
    }
    return found[from][to].convert;
}

/* ---- short calls ---- */

/* What calls that fit NumPy's buffer, which it casts as a whole, gain here, by the kinds of their inputs: */
enum few {
    FEW_UNKNOWN,
    FEW_GAIN_NOTHING,
    FEW_GAIN_IN_LINE,  /* by NumPy's loop, which is to be handed whole operands */
    FEW_GAIN_FORWARD,  /* as array_goes_forward() says */
    FEW_GAIN_ANYWHERE, /* by a loop whose results are exact */
    FEW_GAIN_BY_KERNEL,
    FEW_MASK = 7,
    FEW_FIRST_IS_CAST = 8, /* a flag; that of the second input is twice as large */
};

static int find_few(struct call_table *table, const int kinds[], PyObject *dtype)
{
    if (table->inputs > PIECES_MOST_INPUTS || table->operands != table->inputs + 1) {
        return FEW_GAIN_NOTHING;
    }
    const int loop = call_table_loop(table, kinds, dtype, NULL, NULL, NPY_SAME_KIND_CASTING);
    PyErr_Clear();
    if (loop < 0) {
        return FEW_GAIN_NOTHING;
    }
    const char *types = table->types + loop * table->operands;
    const struct elementwise *engine = &table->loop[loop].engine;
    bool suits = call_table_row(table, loop) != NULL;
    int casts = 0;
    for (int i = 0; i < table->inputs && suits; i++) {
        const bool is_cast = kinds[i] < CALL_TYPES && !is_of_dtype(kinds[i], types[i]);
        suits = !is_cast ||
                (is_quiet_cast(kinds[i], types[i]) && conversion(kinds[i], types[i]) != NULL);
        casts |= is_cast ? FEW_FIRST_IS_CAST << i : 0;
    }
    return !suits                               ? FEW_GAIN_NOTHING
           : engine->kernel != NULL             ? FEW_GAIN_BY_KERNEL
           : engine->same_bits == SAME_FORWARD  ? FEW_GAIN_FORWARD | casts
           : engine->same_bits == SAME_ANYWHERE ? FEW_GAIN_ANYWHERE | casts
                                                : FEW_GAIN_IN_LINE | casts;
}

/* Whether an array is short, and repeats no element: NumPy casts it as a whole, to one line, whatever its layout. Beside
 * another operand that is contiguous, that line is as long if its axes are `in_order`. */
static bool is_cast_whole(PyArrayObject *array, bool in_order)
{
    bool is_cast = PyArray_NDIM(array) <= TILE_AXES && array_size(array) <= WHOLE_ELEMENTS;
    npy_intp last = 0;
    for (int i = PyArray_NDIM(array) - 1; i >= 0 && is_cast; i--) {
        const npy_intp step = magnitude(PyArray_STRIDE(array, i));
        if (PyArray_DIM(array, i) != 1) {
            is_cast = step != 0 && !(in_order && step < last);
            last = step;
        }
    }
    return is_cast;
}

/* Whether few elements lie along one line. */
static bool is_line_of_few(PyArrayObject *array)
{
    npy_intp step;
    return array_size(array) <= WHOLE_ELEMENTS && array_is_one_line(array, &step);
}

/* Kept for each pair of kinds, and of calls with `dtype=` for the latest. */
static int few_of(const struct resolved_arguments *arguments)
{
    struct call_table *table = (struct call_table *)arguments->table;
    const int *kinds = arguments->kind, second = table->inputs == 2 ? kinds[1] : 0;
    if (arguments->dtype == NULL) {
        _Atomic unsigned char *known = &table->few[kinds[0]][second];
        if (*known == FEW_UNKNOWN) {
            *known = (unsigned char)find_few(table, kinds, NULL);
        }
        return *known;
    }
    enum { FEW_BITS = 0xff };
    const int number = dtype_asked_for(arguments->dtype);
    if (number < 0) {
        return FEW_GAIN_NOTHING;
    }
    const uint32_t question =
        (uint32_t)number << 24 | (uint32_t)kinds[0] << 16 | (uint32_t)second << 8;
    uint32_t known = table->latest_few;
    if ((known & ~(uint32_t)FEW_BITS) != question || (known & FEW_BITS) == FEW_UNKNOWN) {
        known = question | (uint32_t)find_few(table, kinds, arguments->dtype);
        table->latest_few = known;
    }
    return (int)(known & FEW_BITS);
}

/* Whether a short call takes less time here than in NumPy. Nothing is looked for in it before. An output that
 * `is_given` is mostly contiguous. */
static bool suits_few(const struct resolved_arguments *arguments, bool is_given)
{
    const struct call_table *table = arguments->table;
    const int *kinds = arguments->kind;
    const int gain = few_of(arguments), casts = gain & ~FEW_MASK, few = gain & FEW_MASK;
    const bool is_in_line = few == FEW_GAIN_IN_LINE;
    bool suits = few != FEW_GAIN_NOTHING;
    PyArrayObject *shape = NULL;
    bool in_order = is_given;
    for (int i = 0; i < table->inputs && is_in_line; i++) {
        in_order = in_order || (PyArray_CheckExact(arguments->input[i]) &&
                                (casts & FEW_FIRST_IS_CAST << i) == 0);
    }
    for (int i = 0; i < table->inputs && suits && few != FEW_GAIN_BY_KERNEL; i++) {
        PyArrayObject *array = (PyArrayObject *)arguments->input[i];
        if (!PyArray_CheckExact(array) || PyArray_NDIM(array) == 0) {
            continue;
        }
        const bool is_cast = (casts & FEW_FIRST_IS_CAST << i) != 0;
        const bool is_float = kinds[i] == NPY_FLOAT || kinds[i] == NPY_CFLOAT;
        shape = shape != NULL ? shape : array;
        if (few == FEW_GAIN_FORWARD) {
            suits =
                PyArray_SAMESHAPE(array, shape) &&
                (array_goes_forward(array, is_cast, table->inputs == 1) || is_line_of_few(array));
        } else if (is_in_line) {
            const bool is_line = PyArray_NDIM(array) == 1 && PyArray_STRIDE(array, 0) > 0;
            suits = PyArray_SAMESHAPE(array, shape) &&
                    (PyArray_IS_C_CONTIGUOUS(array) ||
                     (is_cast ? is_line || is_cast_whole(array, in_order) : is_line_of_few(array)));
        }
        suits = suits && !(is_cast && is_float && array_size(array) > MOST_LOOKED_AT);
    }
    return suits;
}

/* ---- in pieces ---- */

static bool read_input(const struct resolved_arguments *arguments, struct ufunc_call *call, int i)
{
    PyObject *input = arguments->input[i];
    const int kind = arguments->kind[i], type = call_row_input(call->row, i)->type_num;
    const bool is_array = PyArray_CheckExact(input) && PyArray_NDIM((PyArrayObject *)input) > 0;
    call->convert[i] = NULL;
    call->array[i] = is_array ? (PyArrayObject *)input : NULL;
    if (kind >= CALL_TYPES) {
        return scalar_convert_number(input, type, &call->scalar[i]);
    }
    if (PyArray_CheckExact(input) && !array_is_plain((PyArrayObject *)input)) {
        return false;
    }
    if (is_of_dtype(kind, type)) {
        if (!is_array) {
            scalar_read(input, &call->scalar[i]);
        }
        return true;
    }
    convert_elements *convert = conversion(kind, type);
    if (convert != NULL && !is_array) {
        return scalar_convert(input, convert, &call->scalar[i]);
    }
    call->convert[i] = convert;
    return convert != NULL;
}

static bool read_converted_output(const struct resolved_arguments *arguments,
                                  struct ufunc_call *call)
{
    const int inputs = call->table->inputs;
    PyArrayObject *out = arguments->out[inputs];
    call->array[inputs] = out;
    call->convert[inputs] = NULL;
    if (out == NULL || is_of_dtype(PyArray_TYPE(out), call->row->output->type_num)) {
        return out == NULL || array_is_plain(out);
    }
    call->convert[inputs] = conversion(call->row->output->type_num, PyArray_TYPE(out));
    return call->convert[inputs] != NULL && array_is_plain(out) && call->mask == NULL;
}

static bool is_repeated(PyArrayObject *array)
{
    const bool is_one = array_size(array) == 1;
    bool is = PyArray_NDIM(array) > 0;
    for (int i = 0; i < PyArray_NDIM(array) && is; i++) {
        is = is_one ? PyArray_STRIDE(array, i) == 0 : array_step(array, i) == 0;
    }
    return is;
}

/* Whether a loop of NumPy's for which a repeated second input is a case of its own gets one that is: not if NumPy casts the
 * repeated elements to an array of as many. */
static bool casts_repeated(const struct ufunc_call *call)
{
    PyArrayObject *second = call->table->inputs > 1 ? call->array[1] : NULL;
    return call->row->loop->keeps_second && second != NULL && call->convert[1] != NULL &&
           is_repeated(second);
}

/* Whether the call can be computed in pieces; completes `call`. */
static bool fits_pieces(const struct resolved_arguments *arguments, int loop,
                        struct ufunc_call *call)
{
    const struct call_table *table = arguments->table;
    const struct call_row *row = call_table_row(table, loop);
    if (table->inputs > PIECES_MOST_INPUTS || table->operands - table->inputs != 1 || row == NULL) {
        return false;
    }
    *call = (struct ufunc_call){
        .table = table,
        .row = row,
        .mask = arguments->mask,
        .order = arguments->order,
    };
    bool converts = false;
    for (int i = 0; i < table->inputs; i++) {
        if (!read_input(arguments, call, i)) {
            return false;
        }
        converts = converts || call->convert[i] != NULL;
    }
    const bool fits = read_converted_output(arguments, call) && !casts_repeated(call);
    /* Else it is a call like any other, after all. */
    call->is_resolved =
        converts || call->convert[table->inputs] != NULL || call->order != NPY_KEEPORDER;
    return fits;
}

/* ---- in ranges of NumPy's iterator ---- */

/* NumPy warns of casts from complex numbers to others. */
static bool loses_imaginary_part(int from, int to)
{
    return dtype_of(from).kind == 'c' && dtype_of(to).kind != 'c';
}

/* A 0-d array for an input that is none, a new reference; NULL if only NumPy knows how. */
static PyArrayObject *array_of_scalar(PyObject *input, int kind, PyArray_Descr *dtype)
{
    union element element;
    if (kind < CALL_TYPES) {
        return (PyArrayObject *)PyArray_FromAny(input, NULL, 0, 0, 0, NULL);
    }
    if (!scalar_convert_number(input, dtype->type_num, &element)) {
        return NULL;
    }
    Py_INCREF(dtype);
    PyArrayObject *array =
        (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, dtype, 0, NULL, NULL, NULL, 0, NULL);
    if (array != NULL) {
        memcpy(PyArray_DATA(array), element.bytes, (size_t)PyArray_ITEMSIZE(array));
    }
    return array;
}

static bool list_operand(const struct resolved_arguments *arguments,
                         struct iterator_operands *operands, int op)
{
    const struct call_table *table = arguments->table;
    const int type = operands->dtype[op]->type_num;
    if (op >= table->inputs) {
        PyArrayObject *out = arguments->out[op];
        operands->array[op] = (PyArrayObject *)Py_XNewRef((PyObject *)out);
        return out == NULL || !loses_imaginary_part(type, PyArray_TYPE(out));
    }
    const int kind = arguments->kind[op];
    PyObject *input = arguments->input[op];
    operands->array[op] = PyArray_CheckExact(input)
                              ? (PyArrayObject *)Py_NewRef(input)
                              : array_of_scalar(input, kind, operands->dtype[op]);
    return operands->array[op] != NULL && !(kind < CALL_TYPES && loses_imaginary_part(kind, type));
}

/* Of all operands that come before it, and of the mask; contiguous, as for elementwise_call(). */
static bool outputs_are_independent(const struct iterator_operands *operands)
{
    for (int op = operands->inputs; op < operands->operands; op++) {
        PyArrayObject *out = operands->array[op];
        if (out != NULL &&
            !((PyArray_IS_C_CONTIGUOUS(out) || PyArray_IS_F_CONTIGUOUS(out)) &&
              operands_output_is_independent(operands->array, operands->inputs, operands->mask, out,
                                             true) &&
              operands_output_is_independent(operands->array + operands->inputs,
                                             op - operands->inputs, NULL, out, false))) {
            return false;
        }
    }
    return true;
}

/* Elements of all operands when broadcast. */
static npy_intp size_of(const struct resolved_arguments *arguments)
{
    PyArrayObject *array[MOST_OPERANDS];
    for (int op = 0; op < arguments->table->operands; op++) {
        PyObject *input = op < arguments->table->inputs ? arguments->input[op] : NULL;
        array[op] = input == NULL               ? arguments->out[op]
                    : PyArray_CheckExact(input) ? (PyArrayObject *)input
                                                : NULL;
    }
    return operands_size(array, arguments->table->operands);
}

static bool run_ranges(const struct resolved_arguments *arguments, int loop, PyObject **result)
{
    const struct call_table *table = arguments->table;
    struct ranged_call ranged = {
        .name = table->name,
        .engine = &table->loop[loop].engine,
        .operands.inputs = table->inputs,
        .operands.operands = table->operands,
        .operands.mask = arguments->mask,
        .operands.order = arguments->order,
        .n = size_of(arguments),
    };
    ranged.threads = ranges_threads(ranged.engine, ranged.n);
    if (PyErr_Occurred()) {
        *result = NULL; /* a signal handler raised while it was asked */
        return true;
    }
    if (ranged.threads == 1) {
        return false;
    }
    struct iterator_operands *operands = &ranged.operands;
    bool listed = true;
    for (int op = 0; op < table->operands; op++) {
        operands->dtype[op] = PyArray_DescrFromType(table->types[loop * table->operands + op]);
        listed = listed && list_operand(arguments, operands, op);
    }
    PyErr_Clear();
    const bool done = listed && outputs_are_independent(operands) && ranges_run(&ranged, result);
    for (int op = 0; op < table->operands; op++) {
        Py_XDECREF(operands->array[op]);
        Py_DECREF(operands->dtype[op]);
    }
    return done;
}

bool resolved_call(const struct call_table *table, PyObject *const *args, size_t count,
                   PyObject *keywords, PyObject **result, bool *is_short)
{
    struct resolved_arguments arguments;
    struct ufunc_call call;
    const Py_ssize_t positional = PyVectorcall_NARGS(count);
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    *is_short = false;
    if (positional < table->inputs) {
        return false;
    }
    const bool are_read =
        resolved_arguments_read_inputs(&arguments, table, args, positional, keywords);
    *is_short = arguments.fits_buffer;
    if (!are_read) {
        return false;
    }
    const bool is_given = positional > table->inputs || named > (arguments.dtype != NULL);
    if ((arguments.fits_buffer && !suits_few(&arguments, is_given)) ||
        !resolved_arguments_read_others(&arguments, args, count, keywords)) {
        return false;
    }
    const int loop = find_loop(&arguments);
    if (loop < 0 || (arguments.mask != NULL && table->loop[loop].engine.zeros_tie)) {
        return false;
    }
    if (fits_pieces(&arguments, loop, &call) && elementwise_call(&call, result)) {
        return true;
    }
    const bool done = !arguments.fits_buffer && run_ranges(&arguments, loop, result);
    elementwise_calls.ranged += done;
    return done;
}
