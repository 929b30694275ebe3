/* Products of floats by cuBLAS, with IEEE results whatever the environment says. */
#include "cublas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cublas {
    bool environment_changes_results;
    __typeof__(&cublasCreate_v2) create;
    __typeof__(&cublasDestroy_v2) destroy;
    __typeof__(&cublasSetStream_v2) set_stream;
    __typeof__(&cublasSetMathMode) set_math_mode;
    __typeof__(&cublasGemmEx_64) gemm;
    __typeof__(&cublasGemmStridedBatchedEx_64) gemm_batched;
};

/* Variables that make cuBLAS compute with less than IEEE arithmetic in every program. Only its
 * pedantic modes ignore them; those are up to a third slower, so used only where one is set. */
static bool environment_changes_results(void)
{
    static const char *const names[] = {"CUBLAS_EMULATE_DOUBLE_PRECISION",
                                        "CUBLAS_EMULATE_SINGLE_PRECISION",
                                        "CUBLAS_EMULATION_STRATEGY", "NVIDIA_TF32_OVERRIDE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0' && strcmp(value, "0") != 0) {
            return true;
        }
    }
    return false;
}

static bool load_symbols(void *library, struct cublas *cublas)
{
    const struct {
        const char *name;
        void *to;
    } symbols[] = {
        {"cublasCreate_v2", &cublas->create},
        {"cublasDestroy_v2", &cublas->destroy},
        {"cublasSetStream_v2", &cublas->set_stream},
        {"cublasSetMathMode", &cublas->set_math_mode},
        {"cublasGemmEx_64", &cublas->gemm},
        {"cublasGemmStridedBatchedEx_64", &cublas->gemm_batched},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (symbol == NULL) {
            return false;
        }
        memcpy(symbols[i].to, &symbol, sizeof symbol);
    }
    return true;
}

/* The first that has all symbols; `flags` are dlopen()'s. */
static bool load_first(const char *const paths[], int flags, struct cublas *cublas, char *why,
                       size_t size)
{
    for (; *paths != NULL; paths++) {
        void *library = dlopen(*paths, flags | RTLD_NOW | RTLD_LOCAL);
        if (library != NULL && load_symbols(library, cublas)) {
            return true;
        }
        const char *problem = dlerror(); /* none where it only is not loaded */
        snprintf(why, size, "%s", problem != NULL ? problem : *paths);
    }
    return false;
}

const struct cublas *cublas_load(const char *const paths[], char *why, size_t size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct cublas loaded;
    static bool is_loaded;
    pthread_mutex_lock(&lock);
    snprintf(why, size, "no libcublas is known");
    if (!is_loaded) {
        /* One that the process has already, such as CuPy's, before a second copy of it. */
        is_loaded = load_first(paths, RTLD_NOLOAD, &loaded, why, size) ||
                    load_first(paths, 0, &loaded, why, size);
        loaded.environment_changes_results = environment_changes_results();
    }
    pthread_mutex_unlock(&lock);
    return is_loaded ? &loaded : NULL;
}

cublasStatus_t cublas_handle(const struct cublas *cublas, cudaStream_t stream,
                             cublasHandle_t *handle)
{
    cublasStatus_t status = cublas->create(handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        *handle = NULL;
        return status;
    }
    status = cublas->set_stream(*handle, stream);
    if (status == CUBLAS_STATUS_SUCCESS) {
        /* Else cuBLAS adds split-k partial sums in float16. */
        status = cublas->set_math_mode(
            *handle,
            (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    }
    return status;
}

void cublas_release(const struct cublas *cublas, cublasHandle_t handle)
{
    if (handle != NULL) {
        cublas->destroy(handle);
    }
}

static cudaDataType_t data_type(struct element_type type)
{
    if (type.kind == ELEMENT_COMPLEX) {
        return type.size == 8 ? CUDA_C_32F : CUDA_C_64F;
    }
    return type.size == 2 ? CUDA_R_16F : type.size == 4 ? CUDA_R_32F : CUDA_R_64F;
}

static bool computes_in_double(struct element_type type)
{
    return type.size == (type.kind == ELEMENT_COMPLEX ? 16u : 8u);
}

static cublasComputeType_t compute_type(const struct cublas *cublas, const struct gemm *gemm)
{
    const bool pedantic = cublas->environment_changes_results;
    if (computes_in_double(gemm->type)) {
        return pedantic ? CUBLAS_COMPUTE_64F_PEDANTIC : CUBLAS_COMPUTE_64F;
    }
    if (gemm->type.size == 2) {
        return CUBLAS_COMPUTE_32F; /* none of these variables concerns float16 */
    }
    switch (gemm->precision) {
    case PRECISION_TF32:
        return CUBLAS_COMPUTE_32F_FAST_TF32;
    case PRECISION_BF16:
        return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
        return pedantic ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
    }
}

/* cuBLAS stores by columns: what it computes is the transposed product. */
cublasStatus_t cublas_multiply(const struct cublas *cublas, cublasHandle_t handle,
                               const struct gemm *gemm, const struct slab *slab)
{
    static const float singles[] = {1, 0, 0, 0};
    static const double doubles[] = {1, 0, 0, 0};
    const bool wide = computes_in_double(gemm->type);
    const void *one = wide ? (const void *)doubles : singles;
    const void *zero = wide ? (const void *)(doubles + 2) : singles + 2;
    const void *beta = slab->adds ? one : zero;
    const cudaDataType_t type = data_type(gemm->type);
    const cublasComputeType_t compute = compute_type(cublas, gemm);
    const cublasOperation_t of_b = gemm->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_a = gemm->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int64_t m = gemm->m, n = gemm->n, k = slab->k, size = (int64_t)gemm->type.size;
    const int64_t lda = gemm->a.transposed ? m : gemm_a_row(gemm),
                  ldb = gemm->b.transposed ? gemm->k : n;
    const char *a = (const char *)gemm->a.at + slab->first * size * (gemm->a.transposed ? m : 1);
    const char *b = (const char *)gemm->b.at + slab->first * size * (gemm->b.transposed ? 1 : n);
    void *c = (void *)slab->c;
    if (gemm->batch == 1) {
        return cublas->gemm(handle, of_b, of_a, n, m, k, one, b, type, ldb, a, type, lda, beta, c,
                            type, n, compute, CUBLAS_GEMM_DEFAULT);
    }
    return cublas->gemm_batched(handle, of_b, of_a, n, m, k, one, b, type, ldb, gemm->b.batch_step,
                                a, type, lda, gemm->a.batch_step, beta, c, type, n, m * n,
                                gemm->batch, compute, CUBLAS_GEMM_DEFAULT);
}
