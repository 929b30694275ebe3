/* Which instruction sets this processor has, and the best kernel among theirs. */
#include "kernels.h"

#include "vector.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* isas.h is written by Meson from its table of ISAs, the one place that lists them. */
#define ISA(name, supported) extern const struct kernels kernels_##name;
#include "isas.h"
#undef ISA

#define SUPPORTS(feature) __builtin_cpu_supports(feature)

#if defined(__x86_64__)
/* __builtin_cpu_supports does not know this one in clang 14. */
static bool supports_f16c(void)
{
    unsigned eax, ebx, ecx = 0, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

/* In ascending order; the first is the baseline, which every processor has. */
static const struct kernels *const isas[] = {
#define ISA(name, supported) &kernels_##name,
#include "isas.h"
#undef ISA
};

enum { ISA_COUNT = sizeof isas / sizeof isas[0] };

static bool supported[ISA_COUNT];
static int selected_count; /* isas[0 .. selected_count) may be used; 0 until detected */

static void detect(void)
{
    if (selected_count != 0) {
        return;
    }
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    const bool found[] = {
#define ISA(name, supported) supported,
#include "isas.h"
#undef ISA
    };
    memcpy(supported, found, sizeof supported);
    selected_count = ISA_COUNT;
}

int kernels_restrict(const char *isa)
{
    detect();
    if (isa == NULL) {
        selected_count = ISA_COUNT;
        return 0;
    }
    for (int i = 0; i < ISA_COUNT; i++) {
        if (strcmp(isas[i]->isa, isa) == 0) {
            selected_count = i + 1;
            return 0;
        }
    }
    return -1;
}

const struct kernel *kernels_find(const char *op, char kind, size_t item_size)
{
    detect();
    const struct kernel *best = NULL;
    for (int i = 0; i < selected_count; i++) {
        if (!supported[i]) {
            continue;
        }
        for (const struct kernel *const *row = isas[i]->rows; *row != NULL; row++) {
            for (const struct kernel *kernel = *row; kernel->op != NULL; kernel++) {
                if (kernel->kind == kind && kernel->item_size == item_size &&
                    strcmp(kernel->op, op) == 0) {
                    best = kernel;
                }
            }
        }
    }
    return best;
}

convert_elements *conversion_find(char kind, size_t item_size, char to_kind, size_t to_size)
{
    detect();
    convert_elements *best = NULL;
    for (int i = 0; i < selected_count; i++) {
        for (const struct element_conversion *row = isas[i]->conversions;
             supported[i] && row->convert != NULL; row++) {
            if (row->kind == kind && row->item_size == item_size && row->to_kind == to_kind &&
                row->to_size == to_size) {
                best = row->convert;
            }
        }
    }
    return best;
}

const struct reduction_kernel *reduction_kernel_find(const char *op, char kind, size_t item_size)
{
    detect();
    const struct reduction_kernel *best = NULL;
    for (int i = 0; i < selected_count; i++) {
        for (const struct reduction_kernel *const *row = isas[i]->reductions;
             supported[i] && *row != NULL; row++) {
            if ((*row)->kind == kind && (*row)->item_size == item_size &&
                strcmp((*row)->op, op) == 0) {
                best = *row;
            }
        }
    }
    return best;
}

void kernels_fence(void)
{
    stream_fence();
}

const char *kernels_isa(int index)
{
    return index < ISA_COUNT ? isas[index]->isa : NULL;
}

const struct kernels *kernels_of_isa(const char *isa)
{
    detect();
    for (int i = 0; i < ISA_COUNT; i++) {
        if (supported[i] && strcmp(isas[i]->isa, isa) == 0) {
            return isas[i];
        }
    }
    return NULL;
}

bool kernels_isa_is_selected(int index)
{
    detect();
    return index < selected_count && supported[index];
}

const char *kernels_selected_isa(void)
{
    detect();
    int i = selected_count - 1;
    while (!supported[i]) {
        i--;
    }
    return isas[i]->isa;
}
