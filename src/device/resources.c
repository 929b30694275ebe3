/* Rings and sessions are made at first use, and kept. */
#include "resources.h"

#include <pthread.h>
#include <stdlib.h>

struct resources {
    struct device *device;
    pthread_mutex_t lock;
    pthread_cond_t ring_came_back;
    struct ring *rings;       /* unused */
    struct session *sessions; /* unused */
    int made, most;           /* rings */
};

struct resources *resources_new(struct device *device, int most_rings)
{
    struct resources *resources = calloc(1, sizeof *resources);
    if (resources != NULL) {
        resources->device = device;
        resources->most = most_rings;
        pthread_mutex_init(&resources->lock, NULL);
        pthread_cond_init(&resources->ring_came_back, NULL);
    }
    return resources;
}

static void ring_delete(struct device *device, struct ring *ring)
{
    for (int i = 0; i < RING_SLOTS; i++) {
        device->release_event(device, ring->event[i]);
    }
    device->release_pinned(device, ring->slot[0]);
    free(ring);
}

static enum status ring_new(struct device *device, struct ring **made)
{
    struct ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL) {
        return STATUS_NO_HOST_MEMORY;
    }
    void *memory = NULL;
    enum status status = device->alloc_pinned(device, (size_t)RING_SLOTS * SLOT_BYTES, &memory);
    for (int i = 0; i < RING_SLOTS && status == STATUS_OK; i++) {
        ring->slot[i] = (char *)memory + (size_t)i * SLOT_BYTES;
        status = device->new_event(device, &ring->event[i]);
    }
    if (status != STATUS_OK) {
        ring->slot[0] = memory;
        ring_delete(device, ring);
        return status;
    }
    *made = ring;
    return STATUS_OK;
}

/* Under the lock. */
static enum status make_ring(struct resources *resources, struct ring **ring)
{
    const enum status status = ring_new(resources->device, ring);
    resources->made += status == STATUS_OK;
    return status;
}

/* Under the lock. */
static void keep_ring(struct resources *resources, struct ring *ring)
{
    ring->next = resources->rings;
    resources->rings = ring;
}

enum status ring_take(struct resources *resources, bool wait, struct ring **ring)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&resources->lock);
    while (wait && resources->rings == NULL && resources->made == resources->most) {
        pthread_cond_wait(&resources->ring_came_back, &resources->lock);
    }
    *ring = resources->rings;
    if (*ring != NULL) {
        resources->rings = (*ring)->next;
    } else if (resources->made < resources->most) {
        status = make_ring(resources, ring);
    }
    pthread_mutex_unlock(&resources->lock);
    return status;
}

void ring_give_back(struct resources *resources, struct ring *ring)
{
    pthread_mutex_lock(&resources->lock);
    keep_ring(resources, ring);
    pthread_cond_signal(&resources->ring_came_back);
    pthread_mutex_unlock(&resources->lock);
}

void rings_prepare(struct resources *resources, int count)
{
    struct ring *ring;
    pthread_mutex_lock(&resources->lock);
    while (resources->made < count && resources->made < resources->most &&
           make_ring(resources, &ring) == STATUS_OK) {
        keep_ring(resources, ring);
    }
    pthread_mutex_unlock(&resources->lock);
}

static void session_delete(struct device *device, struct session *session)
{
    for (int i = 0; i < PLAN_MOST_DEPTH; i++) {
        device->release_event(device, session->multiplied[i]);
        device->release_event(device, session->downloaded[i]);
    }
    device->release_event(device, session->uploaded);
    for (int i = 0; i < PLAN_STREAMS; i++) {
        device->release_stream(device, session->compute[i]);
    }
    device->release_stream(device, session->upload);
    device->release_stream(device, session->download);
    device->release_pinned(device, session->raised);
    free(session);
}

static enum status session_fill(struct device *device, struct session *session)
{
    void *pinned = NULL;
    const size_t words = RAISED_WORDS * sizeof *session->raised;
    enum status status = device->alloc_pinned(device, words + sizeof *session->nonfinite, &pinned);
    session->raised = pinned;
    session->nonfinite = pinned != NULL ? (bool *)(session->raised + RAISED_WORDS) : NULL;
    if (status == STATUS_OK) {
        status = device->new_stream(device, &session->upload);
    }
    if (status == STATUS_OK) {
        status = device->new_stream(device, &session->download);
    }
    for (int i = 0; i < PLAN_STREAMS && status == STATUS_OK; i++) {
        status = device->new_stream(device, &session->compute[i]);
    }
    if (status == STATUS_OK) {
        status = device->new_event(device, &session->uploaded);
    }
    for (int i = 0; i < PLAN_MOST_DEPTH && status == STATUS_OK; i++) {
        status = device->new_event(device, &session->multiplied[i]);
        if (status == STATUS_OK) {
            status = device->new_event(device, &session->downloaded[i]);
        }
    }
    return status;
}

enum status session_take(struct resources *resources, struct session **taken)
{
    pthread_mutex_lock(&resources->lock);
    struct session *session = resources->sessions;
    if (session != NULL) {
        resources->sessions = session->next;
    }
    pthread_mutex_unlock(&resources->lock);
    if (session == NULL) {
        session = calloc(1, sizeof *session);
        if (session == NULL) {
            return STATUS_NO_HOST_MEMORY;
        }
        const enum status status = session_fill(resources->device, session);
        if (status != STATUS_OK) {
            session_delete(resources->device, session);
            return status;
        }
    }
    *session->nonfinite = false;
    *taken = session;
    return STATUS_OK;
}

void session_give_back(struct resources *resources, struct session *session)
{
    pthread_mutex_lock(&resources->lock);
    session->next = resources->sessions;
    resources->sessions = session;
    pthread_mutex_unlock(&resources->lock);
}

void resources_delete(struct resources *resources)
{
    if (resources == NULL) {
        return;
    }
    while (resources->rings != NULL) {
        struct ring *ring = resources->rings;
        resources->rings = ring->next;
        ring_delete(resources->device, ring);
    }
    while (resources->sessions != NULL) {
        struct session *session = resources->sessions;
        resources->sessions = session->next;
        session_delete(resources->device, session);
    }
    pthread_cond_destroy(&resources->ring_came_back);
    pthread_mutex_destroy(&resources->lock);
    free(resources);
}
