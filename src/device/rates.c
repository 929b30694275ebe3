/* One line of the file for each machine that a user's home folder serves:
 *     key <tab> disturbed <tab> rates */
#include "rates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINES = 200 };

static const double MOST_RATE = 1e18;

static const char HEADER[] = "numc_ufuncs rates 1\n";

const struct rates rates_assumed = {
    .threads = RATES_OF_A_CORE,
    .product = {20e9, 20e9, 20e9, 20e9, 20e9, 20e9, 100e9, 50e9, 100e9, 50e9},
    .stack = {20e9, 20e9, 20e9, 20e9, 20e9, 20e9, 100e9, 50e9, 100e9, 50e9},
    .memory = 100e9,
    .device = {2e12, 2e12, 2e12, 2e12, 2e12, 8e12, 8e12, 4e12, 8e12, 4e12},
    .transfer = 20e9,
    .latency_ns = 100e3,
};

const char *const rates_type_names[RATE_TYPES] = {"bool",      "int8",      "int16",   "int32",
                                                  "int64",     "float16",   "float32", "float64",
                                                  "complex64", "complex128"};

const struct element_type rates_types[RATE_TYPES] = {
    {ELEMENT_BOOL, 1},    {ELEMENT_INTEGER, 1}, {ELEMENT_INTEGER, 2}, {ELEMENT_INTEGER, 4},
    {ELEMENT_INTEGER, 8}, {ELEMENT_FLOAT, 2},   {ELEMENT_FLOAT, 4},   {ELEMENT_FLOAT, 8},
    {ELEMENT_COMPLEX, 8}, {ELEMENT_COMPLEX, 16}};

int rates_type(struct element_type type)
{
    int index = 0;
    while (rates_types[index].kind != type.kind || rates_types[index].size != type.size) {
        index++;
    }
    return index;
}

void rates_keep_best(struct rates *rates, const struct rates *other)
{
    for (int type = 0; type < RATE_TYPES; type++) {
        rates->product[type] = fmax(rates->product[type], other->product[type]);
        rates->stack[type] = fmax(rates->stack[type], other->stack[type]);
        rates->device[type] = fmax(rates->device[type], other->device[type]);
    }
    rates->memory = fmax(rates->memory, other->memory);
    rates->transfer = fmax(rates->transfer, other->transfer);
    rates->latency_ns = fmin(rates->latency_ns, other->latency_ns);
}

void rates_round(struct rates *rates)
{
    double numbers[RATE_COUNT];
    memcpy(numbers, rates, sizeof numbers);
    for (int i = 0; i < RATE_COUNT; i++) {
        numbers[i] = fmin(fmax(round(numbers[i]), 1), MOST_RATE / 10);
    }
    memcpy(rates, numbers, sizeof numbers);
}

/* ---- the file ---- */

/* "model name" on x86-64; several numbers on aarch64. */
static void read_processor(char *text, size_t size)
{
    static const char *const fields[] = {"model name", "CPU implementer", "CPU variant",
                                         "CPU part"};
    char line[256];
    size_t used = 0;
    text[0] = '\0';
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL && line[0] != '\n') {
        char *value = strchr(line, ':');
        for (size_t i = 0; i < sizeof fields / sizeof fields[0] && value != NULL; i++) {
            if (strncmp(line, fields[i], strlen(fields[i])) == 0 && used < size) {
                value[strcspn(value, "\n")] = '\0';
                used += (size_t)snprintf(text + used, size - used, "%s", value + 1);
            }
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

void rates_key(char *key, size_t size, int threads, const char *device, const char *build)
{
    char processor[256];
    read_processor(processor, sizeof processor);
    snprintf(key, size, "%s, %d threads, %s, %s", processor, threads, device, build);
    for (char *c = key; *c != '\0'; c++) {
        *c = *c == '\t' || *c == '\n' ? ' ' : *c; /* the file's separators */
    }
}

void rates_path(char *path, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = 0;
    if (cache != NULL && cache[0] == '/') {
        length = snprintf(path, size, "%s/numc_ufuncs/rates.txt", cache);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(path, size, "%s/.cache/numc_ufuncs/rates.txt", home);
    }
    if (length <= 0 || (size_t)length >= size) {
        path[0] = '\0';
    }
}

static bool has_key(const char *line, const char *key)
{
    const size_t length = strlen(key);
    return strncmp(line, key, length) == 0 && line[length] == '\t';
}

/* NULL unless the file has our header. */
static FILE *open_file(const char *path)
{
    char first[sizeof HEADER] = "";
    FILE *file = fopen(path, "re");
    if (file != NULL && (fgets(first, sizeof first, file) == NULL || strcmp(first, HEADER) != 0)) {
        fclose(file);
        file = NULL;
    }
    return file;
}

static bool parse(const char *text, struct rates *rates, int *disturbed)
{
    double numbers[1 + RATE_COUNT];
    for (int i = 0; i < 1 + RATE_COUNT; i++) {
        char *end;
        numbers[i] = strtod(text, &end);
        if (end == text || !(numbers[i] >= (i > 0) && numbers[i] < MOST_RATE)) {
            return false;
        }
        text = end;
    }
    if (strcmp(text, "\n") != 0) {
        return false; /* truncated or too long */
    }
    *disturbed = (int)fmin(numbers[0], 100);
    memcpy(rates, numbers + 1, sizeof *rates);
    return true;
}

bool rates_load(const char *path, const char *key, struct rates *rates, int *disturbed)
{
    FILE *file = open_file(path);
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    while (file != NULL && !found && getline(&line, &room, file) >= 0) {
        found = has_key(line, key) && parse(line + strlen(key), rates, disturbed);
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* Makes all folders above the file. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700); /* as the XDG base directory specification asks for */
        *slash = '/';
    }
}

static void copy_other_lines(const char *path, const char *key, FILE *to)
{
    FILE *file = open_file(path);
    char *line = NULL;
    size_t room = 0;
    for (int i = 0; file != NULL && i < MOST_LINES && getline(&line, &room, file) >= 0; i++) {
        if (!has_key(line, key)) {
            fputs(line, to);
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
}

static bool write_file(FILE *file, const char *path, const char *key, const struct rates *rates,
                       int disturbed)
{
    double numbers[RATE_COUNT];
    memcpy(numbers, rates, sizeof numbers);
    fprintf(file, "%s%s\t%d\t", HEADER, key, disturbed);
    for (int i = 0; i < RATE_COUNT; i++) {
        fprintf(file, "%.0f%c", numbers[i], i + 1 < RATE_COUNT ? ' ' : '\n');
    }
    copy_other_lines(path, key, file);
    return ferror(file) == 0;
}

bool rates_save(const char *path, const char *key, const struct rates *rates, int disturbed)
{
    char temporary[4096];
    const int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (path[0] == '\0' || length < 0 || (size_t)length >= sizeof temporary) {
        return false;
    }
    make_folders(temporary);
    const int descriptor = mkstemp(temporary);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file == NULL) {
        if (descriptor >= 0) {
            close(descriptor);
            unlink(temporary);
        }
        return false;
    }
    bool written = write_file(file, path, key, rates, disturbed);
    written = fclose(file) == 0 && written && rename(temporary, path) == 0;
    if (!written) {
        unlink(temporary);
    }
    return written;
}
