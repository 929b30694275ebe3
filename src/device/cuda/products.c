/* Products, by cuBLAS or the tiled kernel, in parts of k. The error of a sum grows with its length; so
 * does that of the sum of its parts with their number. */
#include "cuda_device.h"
#include "tiled.h"

/* How many products are summed by one kernel. With these the errors are no larger than OpenBLAS's, which
 * sums in blocks as well. One sum over all of k is up to nine times less exact, and a tenth faster
 * where the product takes longer than the operands' way. Halves are rounded to where a part ends. */
static ptrdiff_t longest_sum(const struct gemm *gemm)
{
    enum { SINGLE = 384, DOUBLE = 352, COMPLEX_SINGLE = 80, COMPLEX_DOUBLE = 64 };
    const size_t size = gemm->type.size;
    switch (gemm->type.kind) {
    case ELEMENT_FLOAT:
        return size == 2 ? gemm->k : size == 4 ? SINGLE : DOUBLE;
    case ELEMENT_COMPLEX:
        return size == 8 ? COMPLEX_SINGLE : COMPLEX_DOUBLE;
    default:
        return gemm->k; /* exact */
    }
}

static enum status multiply_slab(struct device *device, struct queue *queue,
                                 const struct gemm *gemm, const struct slab *slab)
{
    const struct cuda_device *cuda = (struct cuda_device *)device;
    if (gemm->kernel == GEMM_TILED || gemm->type.kind <= ELEMENT_INTEGER) {
        return cuda_translate(device,
                              tiled_multiply(gemm, slab, cuda->multiprocessors, queue->stream),
                              "starting a kernel");
    }
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (queue->handle == NULL) {
        status = cublas_handle(cuda->cublas, queue->stream, &queue->handle);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublas_multiply(cuda->cublas, queue->handle, gemm, slab);
    }
    return cuda_translate_cublas(device, status);
}

enum status cuda_multiply(struct device *device, struct queue *queue, const struct gemm *gemm)
{
    enum { SUMS_TOGETHER = 8 }; /* before they are added to c, if there is memory for them */
    const ptrdiff_t longest = longest_sum(gemm), k = gemm->k;
    const ptrdiff_t together = gemm->spare != 0 ? SUMS_TOGETHER * longest : k;
    enum status status = STATUS_OK;
    for (ptrdiff_t first = 0; first < k && status == STATUS_OK; first += longest) {
        const ptrdiff_t end = k - first < longest ? k : first + longest;
        const bool apart = first >= together;
        const struct slab slab = {first, end - first, apart ? gemm->spare : gemm->c,
                                  first % together != 0};
        status = multiply_slab(device, queue, gemm, &slab);
        if (status == STATUS_OK && apart && (end == k || end % together == 0)) {
            status = cuda_translate(device, tiled_add(gemm, queue->stream), "starting a kernel");
        }
    }
    return status;
}
