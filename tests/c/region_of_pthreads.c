/* region_run with threads of its own. ThreadSanitizer does not see how libgomp's threads wait for each
 * other, and takes whatever is handed from one to the other for a race; these it sees. */
#include "parallel.h"

#include <pthread.h>

enum { MOST_THREADS = 64 };

struct member {
    region_share *share;
    void *context;
    int index, count;
};

static void *start(void *of)
{
    const struct member *member = of;
    member->share(member->context, member->index, member->count);
    return NULL;
}

int __wrap_region_run(int threads, region_share *share, void *context);

int __wrap_region_run(int threads, region_share *share, void *context)
{
    pthread_t started[MOST_THREADS];
    struct member members[MOST_THREADS];
    const int count = threads < MOST_THREADS ? threads : MOST_THREADS;
    for (int i = 1; i < count; i++) {
        members[i] = (struct member){share, context, i, count};
        pthread_create(&started[i], NULL, start, &members[i]);
    }
    share(context, 0, count);
    for (int i = 1; i < count; i++) {
        pthread_join(started[i], NULL);
    }
    return count;
}
