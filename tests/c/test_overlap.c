/* The order guard against a model that looks at every byte. */
#include "engine/overlap.h"
#include "expect.h"

enum { ARENA = 1024, MOST_ELEMENTS = 12, CALLS = 300000 };

struct call {
    int inputs, operands;
    char *data[4];
    ptrdiff_t step[4];
    size_t item_size[4];
    ptrdiff_t n;
};

static char arena[ARENA];

static bool share_a_byte(const char *a, size_t a_size, const char *b, size_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

/* Whether element k of an output must be computed before or after some other element. */
static bool depends(const struct call *call, int out, int other)
{
    for (ptrdiff_t k = 0; k < call->n; k++) {
        const char *written = call->data[out] + k * call->step[out];
        for (ptrdiff_t j = 0; j < call->n; j++) {
            const char *touched = call->data[other] + j * call->step[other];
            if (!share_a_byte(written, call->item_size[out], touched, call->item_size[other])) {
                continue;
            }
            if (j != k || written != touched) {
                return true;
            }
        }
    }
    return false;
}

static bool order_matters(const struct call *call)
{
    for (int out = call->inputs; out < call->operands; out++) {
        for (int other = 0; other < call->operands; other++) {
            if (depends(call, out, other)) {
                return true;
            }
        }
    }
    return false;
}

static bool commute(const struct call *call)
{
    return elements_commute(call->inputs, call->operands, call->data, call->step, call->item_size,
                            call->n);
}

static struct call random_call(void)
{
    static const size_t sizes[] = {1, 2, 4, 8, 16};
    struct call call = {.inputs = (int)random_below(3) + 1};
    call.operands = call.inputs + (int)random_below(call.inputs < 3 ? 2 : 1) + 1;
    call.n = (ptrdiff_t)random_below(MOST_ELEMENTS) + 1;
    const bool mixed = random_below(3) == 0;
    for (int i = 0; i < call.operands; i++) {
        call.item_size[i] = i == 0 || mixed ? sizes[random_below(5)] : call.item_size[0];
        /* Equal steps, and operands that begin close to each other, are the interesting half. */
        const ptrdiff_t item = (ptrdiff_t)call.item_size[i];
        const ptrdiff_t step = random_below(4) == 0 ? (ptrdiff_t)random_below(65) - 32
                                                    : item * ((ptrdiff_t)random_below(9) - 4);
        const bool as_first = i > 0 && random_below(2) == 0;
        call.step[i] = as_first ? call.step[0] : step;
        const ptrdiff_t apart = (ptrdiff_t)random_below(97) - 48;
        call.data[i] = arena + ARENA / 2 + (random_below(3) == 0 ? apart / item * item : apart);
        if (as_first && random_below(3) == 0) {
            call.data[i] = call.data[0];
        }
    }
    return call;
}

static void print_call(const struct call *call)
{
    for (int i = 0; i < call->operands; i++) {
        fprintf(stderr, "  %s at %td step %td size %zu\n", i < call->inputs ? "in " : "out",
                call->data[i] - arena, call->step[i], call->item_size[i]);
    }
    fprintf(stderr, "  n %td\n", call->n);
}

static void check_random_calls(void)
{
    long independent = 0, found = 0;
    for (int i = 0; i < CALLS; i++) {
        const struct call call = random_call();
        const bool ordered = order_matters(&call);
        const bool claimed = commute(&call);
        independent += !ordered;
        found += claimed && !ordered;
        expect(!(claimed && ordered), "elements_commute is wrong to say true:");
        if (claimed && ordered && failures <= MOST_REPORTS) {
            print_call(&call);
        }
    }
    printf("of %d calls %ld were independent, %ld of them found\n", CALLS, independent, found);
    expect(independent > CALLS / 20 && independent < CALLS, "the calls are all of one kind");
    expect(found > independent / 2, "elements_commute says true too rarely");
}

/* Operands a, b and out of one item size. */
static void check_useful(const char *what, bool commutes, size_t size, const ptrdiff_t offset[3],
                         const ptrdiff_t step[3], ptrdiff_t n)
{
    struct call call = {.inputs = 2, .operands = 3, .n = n};
    for (int i = 0; i < 3; i++) {
        call.data[i] = arena + offset[i];
        call.step[i] = step[i];
        call.item_size[i] = size;
    }
    expect(commute(&call) == commutes, "%s: elements_commute must say %s", what,
           commutes ? "true" : "false");
    expect(order_matters(&call) == !commutes, "%s: the model disagrees", what);
}

static void check_useful_calls(void)
{
    typedef const ptrdiff_t three[3];
    check_useful("disjoint", true, 8, (three){0, 128, 256}, (three){8, 8, 8}, 16);
    check_useful("disjoint, adjacent", true, 8, (three){0, 80, 160}, (three){8, 8, 8}, 10);
    check_useful("disjoint, reversed", true, 8, (three){72, 152, 232}, (three){-8, -8, -8}, 10);
    check_useful("disjoint, scalar", true, 8, (three){0, 80, 160}, (three){8, 0, 8}, 10);
    check_useful("one array twice", true, 8, (three){0, 0, 160}, (three){8, 8, 8}, 10);
    check_useful("in place on a", true, 8, (three){0, 80, 0}, (three){8, 8, 8}, 10);
    check_useful("in place on b", true, 8, (three){0, 80, 80}, (three){8, 8, 8}, 10);
    check_useful("in place on both", true, 8, (three){0, 0, 0}, (three){8, 8, 8}, 10);
    check_useful("in place, strided", true, 4, (three){0, 200, 0}, (three){12, 4, 12}, 10);
    check_useful("in place, reversed", true, 4, (three){100, 200, 100}, (three){-4, 4, -4}, 10);
    check_useful("imaginary from real", true, 8, (three){0, 400, 8}, (three){16, 8, 16}, 10);
    check_useful("real from imaginary", true, 8, (three){8, 400, 0}, (three){16, 8, 16}, 10);
    check_useful("real and imaginary, reversed", true, 8, (three){152, 400, 144},
                 (three){-16, 8, -16}, 10);
    check_useful("odd columns from even ones, shifted", true, 4, (three){0, 400, 20},
                 (three){8, 4, 8}, 10);
    check_useful("shifted by one", false, 8, (three){0, 200, 8}, (three){8, 8, 8}, 10);
    check_useful("shifted back by one", false, 8, (three){8, 200, 0}, (three){8, 8, 8}, 10);
    check_useful("shifted by a part", false, 8, (three){0, 200, 4}, (three){8, 8, 8}, 10);
    check_useful("reversal in place", false, 8, (three){72, 200, 0}, (three){-8, 8, 8}, 10);
    check_useful("reduction", false, 8, (three){0, 200, 0}, (three){0, 8, 0}, 10);
    check_useful("accumulation", false, 8, (three){0, 208, 8}, (three){8, 8, 8}, 10);
    check_useful("scalar inside the output", false, 8, (three){200, 16, 0}, (three){8, 0, 8}, 10);
    check_useful("output onto itself", false, 8, (three){200, 400, 0}, (three){8, 8, 4}, 10);
}

int main(void)
{
    check_useful_calls();
    check_random_calls();
    return expect_result("overlap");
}
