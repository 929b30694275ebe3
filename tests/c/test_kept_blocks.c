/* Blocks that are kept, on a made-up system: threads, forks, sizes at random. */
#include "expect.h"
#include "memory/kept_blocks.h"
#include "memory/pages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, TURNS = 3000, HELD = 12, SHARED = 16, LIMIT = 8 << 20, FORKS = 20 };

static _Atomic int64_t now;
static _Atomic size_t there = SIZE_MAX;

static int64_t made_up_clock(void)
{
    return now;
}

static size_t made_up_available(void)
{
    return there;
}

/* ---- a device that gives memory ---- */

static _Atomic long pieces;
static _Atomic bool refuses;

static void *take(enum kept_kind kind, size_t bytes)
{
    (void)kind;
    void *data =
        refuses ? MAP_FAILED
                : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return NULL;
    }
    memset(data, 0xA5, 4096);
    pieces++;
    return data;
}

static void give_back(enum kept_kind kind, void *data, size_t bytes)
{
    expect(kind == KEPT_PINNED || kind == KEPT_MANAGED, "it is the device's");
    munmap(data, bytes);
    pieces--;
}

/* ---- sizes at random ---- */

struct held {
    unsigned char *data;
    size_t bytes;
    unsigned char mark;
    int kind; /* as kept_device_kind() tells it */
};

static bool is_intact(const struct held *held, size_t bytes)
{
    return held->data[0] == held->mark && held->data[bytes / 2] == held->mark &&
           held->data[bytes - 1] == held->mark;
}

static void mark(struct held *held)
{
    held->data[0] = held->data[held->bytes / 2] = held->data[held->bytes - 1] = held->mark;
}

static size_t random_size(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    const size_t size = (size_t)KEPT_FROM_BYTES << (*state >> 33) % 6;
    return size + (*state >> 40) % size;
}

/* Some are handed from thread to thread by these. */
static _Atomic(struct held *) shared[SHARED];

static void *work(void *argument)
{
    const int number = (int)(intptr_t)argument;
    const enum kept_kind kind = (enum kept_kind)(KEPT_MAPPED + number % 3);
    uint64_t state = (uint64_t)number + 1;
    struct held mine[HELD] = {{NULL, 0, 0, 0}};
    for (int turn = 0; turn < TURNS; turn++) {
        struct held *held = &mine[turn % HELD];
        const size_t size = random_size(&state);
        if (held->data == NULL) {
            const bool zeros = turn % 3 == 0;
            held->data = zeros ? kept_allocate_zeros(kind, size) : kept_allocate(kind, size);
            held->kind = kind == KEPT_MAPPED ? 0 : (int)kind;
            held->bytes = size;
            held->mark = (unsigned char)(1 + number);
            expect(held->data != NULL, "a block of %zu bytes", size);
            if (held->data == NULL) {
                continue;
            }
            expect(!zeros || (held->data[0] | held->data[size / 2] | held->data[size - 1]) == 0,
                   "zeros of %zu bytes", size);
            mark(held);
            continue;
        }
        expect(is_intact(held, held->bytes), "thread %d, turn %d: somebody wrote", number, turn);
        expect(kept_size(held->data) == held->bytes, "thread %d, turn %d: size", number, turn);
        expect(kept_device_kind(held->data + held->bytes - 1) == held->kind,
               "thread %d, turn %d: kind", number, turn);
        if (turn % 5 == 0) {
            held->data[size < held->bytes ? size - 1 : held->bytes - 1] = held->mark;
            held->data = kept_resize(held->data, size);
            expect(held->data[(size < held->bytes ? size : held->bytes) - 1] == held->mark,
                   "contents move along");
            held->bytes = size;
            mark(held);
        } else if (turn % 7 == 0) {
            struct held *gift = malloc(sizeof *gift);
            *gift = *held;
            gift = atomic_exchange(&shared[turn % SHARED], gift);
            *held = gift != NULL ? *gift : (struct held){NULL, 0, 0, 0};
            free(gift);
        } else {
            expect(kept_free(held->data, turn % 11 != 0), "a block is freed");
            held->data = NULL;
        }
        if (turn % 500 == 0) {
            kept_release();
            now += 1000000000;
        }
    }
    for (int i = 0; i < HELD; i++) {
        if (mine[i].data != NULL) {
            kept_free(mine[i].data, true);
        }
    }
    return NULL;
}

static void check_threads(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < SHARED; i++) {
        struct held *left = shared[i];
        if (left != NULL) {
            expect(is_intact(left, left->bytes) && kept_free(left->data, true), "left over");
            free(left);
        }
    }
    size_t kept = 0;
    for (int kind = KEPT_MAPPED; kind < KEPT_KINDS; kind++) {
        const struct kept_bytes bytes = kept_bytes((enum kept_kind)kind);
        kept += bytes.kept;
        expect(bytes.kept <= LIMIT, "kind %d: %zu bytes are kept", kind, bytes.kept);
        expect(bytes.used == 0, "kind %d: %zu bytes are in use", kind, bytes.used);
    }
    expect(kept > 0, "something is kept");
    kept_release();
    for (int kind = KEPT_MAPPED; kind < KEPT_KINDS; kind++) {
        expect(kept_bytes((enum kept_kind)kind).kept == 0, "kind %d is given back", kind);
    }
    expect(pieces == 0, "%ld pieces are left", pieces);
}

/* ---- memory of a device ---- */

static void check_device(void)
{
    enum { MIB = 1 << 20 };
    kept_release();
    kept_set_limit(1 << 30);
    char *small = kept_allocate(KEPT_PINNED, 4000), *next = kept_allocate(KEPT_PINNED, 4000);
    expect(next == small + 4096 && pieces == 1, "small blocks are parts of one piece");
    expect(kept_allocate(KEPT_PINNED, KEPT_DEVICE_FROM_BYTES - 1) == NULL, "too small");
    expect(kept_device_kind(next + 5000) == KEPT_PINNED, "what is free is of that kind, too");
    expect(kept_device_kind(small - 1) == 0 || pieces > 1, "not what lies in front");
    char *other = kept_allocate(KEPT_MANAGED, 4000);
    expect(pieces == 2 && kept_device_kind(other) == KEPT_MANAGED, "each kind has its own");
    expect(kept_release() == 0, "nothing goes while a part is in use");
    kept_free(small, false);
    expect(kept_bytes(KEPT_PINNED).kept == 2 * MIB - 4096 && pieces == 2, "the part waits");
    expect(kept_allocate(KEPT_PINNED, 4000) == small, "and is given again");
    memset(small, 1, 4000);
    small = kept_resize(small, 3 * MIB);
    expect(pieces == 3 && small[0] == 1 && small[3999] == 1, "contents move along");
    expect(kept_resize(small, 2 * MIB) == small, "in place");
    expect(kept_bytes(KEPT_PINNED).used == 3 * MIB + 4096, "%zu are in use",
           kept_bytes(KEPT_PINNED).used);
    refuses = true;
    expect(kept_resize(small, 9 * MIB) == NULL && kept_size(small) == 2 * MIB, "refused");
    expect(kept_allocate(KEPT_MANAGED, 5 * MIB) == NULL, "refused");
    refuses = false;
    kept_free(next, true);
    kept_free(small, true);
    kept_free(other, false);
    expect(pieces == 2, "%ld pieces: what is not kept goes as a whole", pieces);
    char *zeros = kept_allocate_zeros(KEPT_PINNED, 3 * MIB);
    expect(zeros == small && zeros[0] == 0 && zeros[3 * MIB - 1] == 0, "zeros are written");
    kept_set_limit(MIB);
    expect(pieces == 1, "the limit holds for what a device gave");
    kept_abandon_devices();
    expect(kept_device_kind(zeros) == 0 && kept_size(zeros) == 3 * MIB, "abandoned, and known");
    expect(kept_resize(zeros, 5 * MIB) == NULL, "it cannot grow");
    expect(kept_free(zeros, true) && pieces == 1, "it is left");
    expect(!kept_free(zeros, true), "and not known any more");
    munmap(zeros, 3 * MIB);
    pieces = 0;
    kept_set_limit(LIMIT);
}

/* ---- forks ---- */

static _Atomic bool ended;

static void *allocate_on(void *argument)
{
    while (!ended) {
        kept_free(kept_allocate(KEPT_MAPPED, 1 << 20), true);
    }
    return argument;
}

static void check_forks(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, allocate_on, NULL);
    }
    for (int i = 0; i < FORKS; i++) {
        char *pinned = kept_allocate(KEPT_PINNED, 1 << 20);
        const pid_t child = fork();
        if (child == 0) {
            alarm(60); /* for a child that hangs */
            const long before = pieces;
            if (!kept_free(pinned, false) || pieces != before || kept_device_kind(pinned) != 0) {
                _exit(2); /* the parent's */
            }
            const bool is_empty = kept_release() == 0;
            char *first = kept_allocate(KEPT_MAPPED, 1 << 20);
            kept_free(first, true);
            _exit(is_empty && kept_allocate(KEPT_MAPPED, 1 << 20) == first ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        expect(status == 0, "child %d: status %d", i, status);
        kept_free(pinned, false);
    }
    ended = true;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    kept_release();
}

/* ---- what is no block ---- */

static void check_others(void)
{
    char *block = kept_allocate(KEPT_MAPPED, 1 << 20);
    char *pages = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char local;
    const void *others[] = {NULL, &local, pages, block + 4096, block + 1, (void *)(uintptr_t)4096};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        expect(kept_size(others[i]) == 0, "other %zu: no size", i);
        expect(!kept_free((void *)(uintptr_t)others[i], true), "other %zu is not freed", i);
    }
    munmap(pages, 1 << 20);
    expect(kept_free(block, true), "the block is");
    expect(!kept_free(block, true) && kept_size(block) == 0, "but only once");
    kept_release();
    expect(!kept_free(block, true), "nor after it was given back");
    expect(kept_allocate(KEPT_MAPPED, KEPT_FROM_BYTES - 1) == NULL, "small ones are not kept");
    expect(kept_allocate(KEPT_MAPPED, SIZE_MAX) == NULL &&
               kept_allocate_zeros(KEPT_MAPPED, SIZE_MAX) == NULL,
           "no overflow");
}

/* ---- what is too small ---- */

/* More blocks than are looked at, of the class of the request, and all too small for it. */
static void check_class(void)
{
    enum { BLOCKS = 40, BYTES = 128 << 10, MORE = BYTES + 8192 };
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = kept_allocate(KEPT_MAPPED, BYTES);
    }
    for (int i = 0; i < BLOCKS; i++) {
        kept_free(blocks[i], true);
    }
    char *larger = kept_allocate(KEPT_MAPPED, MORE);
    for (int i = 0; i < BLOCKS; i++) {
        expect(larger != blocks[i], "block %d is too small", i);
    }
    kept_free(larger, true);
    kept_release();
}

/* ---- pages ---- */

/* ---- parts ---- */

static void check_parts(void)
{
    enum { MIB = 1 << 20 };
    kept_release();
    kept_set_limit(1 << 30);
    char *whole = kept_allocate(KEPT_MAPPED, 64 * MIB);
    kept_free(whole, true);
    char *first = kept_allocate(KEPT_MAPPED, 16 * MIB),
         *second = kept_allocate(KEPT_MAPPED, 16 * MIB);
    expect(first == whole && second == whole + 16 * MIB, "parts are split off one after the other");
    expect(kept_bytes(KEPT_MAPPED).kept == 32 * MIB, "%zu bytes are left of it",
           kept_bytes(KEPT_MAPPED).kept);
    kept_free(first, true);
    expect(kept_allocate(KEPT_MAPPED, 9 * MIB) == whole, "the part that fits best");
    kept_free(whole, true);
    kept_free(second, true);
    expect(kept_allocate(KEPT_MAPPED, 64 * MIB) == whole, "parts are joined");
    kept_free(whole, true);
    char *small = kept_allocate(KEPT_MAPPED, MIB);
    expect(small < whole || small >= whole + 64 * MIB, "few bytes do not split a large block");
    kept_free(small, true);

    /* What was in use at once bounds what is kept: 64 MiB so far. */
    char *large = kept_allocate(KEPT_MAPPED, 100 * MIB);
    expect(kept_bytes(KEPT_MAPPED).kept <= 16 * MIB, "%zu bytes stay beside",
           kept_bytes(KEPT_MAPPED).kept);
    kept_free(large, true);
    whole = kept_allocate(KEPT_MAPPED, 64 * MIB);
    second = kept_allocate(KEPT_MAPPED, 36 * MIB);
    expect(whole == large && second == large + 64 * MIB, "both fit into what was in use");
    kept_free(whole, true);
    now += (int64_t)20 * 1000000000;
    kept_release_unused();
    expect(kept_bytes(KEPT_MAPPED).kept == 0, "the unused part is given back alone");
    memset(second, 1, 36 * MIB);
    kept_free(second, true);
    kept_release();
    kept_set_limit(LIMIT);
}

static void check_pages(void)
{
    enum { BYTES = 16 << 20 };
    char *block = kept_allocate_zeros(KEPT_MAPPED, BYTES);
    expect(!pages_are_there(block, block + BYTES), "new memory has no pages");
    block[BYTES - 1] = 1;
    expect(!pages_are_there(block, block + BYTES), "nor has most of it with one");
    memset(block, 1, BYTES);
    expect(pages_are_there(block, block + BYTES), "used memory has");
    expect(pages_are_there(block + 1, block + BYTES - 1), "also what does not begin with a page");
    kept_set_limit((size_t)2 * BYTES);
    kept_free(block, true);
    expect(kept_allocate(KEPT_MAPPED, BYTES) == block && pages_are_there(block, block + BYTES),
           "and keeps them");
    kept_free(block, true);
    block = kept_allocate_zeros(KEPT_MAPPED, BYTES);
    expect(!pages_are_there(block, block + BYTES) && block[0] == 0, "zeros have none");
    kept_free(block, false);
    expect(kept_bytes(KEPT_MAPPED).kept == 0, "nothing is kept");
    kept_set_limit(LIMIT);
}

int main(int count, char **arguments)
{
    static const struct kept_system made_up = {made_up_clock, made_up_available};
    static const struct kept_source device = {take, give_back};
    kept_initialize(&made_up, LIMIT);
    kept_set_source(&device);
    check_others();
    check_class();
    check_pages();
    check_parts();
    check_device();
    check_threads();
    if (count < 2 || strcmp(arguments[1], "--no-fork") != 0) {
        check_forks();
    }
    return expect_result("kept blocks");
}
