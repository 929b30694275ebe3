/* Lanes and sessions are made when they are needed first, and kept. */
#include "resources.h"

#include <pthread.h>
#include <stdlib.h>

struct resources {
    struct device *device;
    pthread_mutex_t lock;
    pthread_cond_t lane_came_back;
    struct lane *lanes;       /* unused */
    struct session *sessions; /* unused */
    int made, most;           /* lanes */
};

struct resources *resources_new(struct device *device, int most_lanes)
{
    struct resources *resources = calloc(1, sizeof *resources);
    if (resources != NULL) {
        resources->device = device;
        resources->most = most_lanes;
        pthread_mutex_init(&resources->lock, NULL);
        pthread_cond_init(&resources->lane_came_back, NULL);
    }
    return resources;
}

static void lane_delete(struct device *device, struct lane *lane)
{
    for (int i = 0; i < LANE_SLOTS; i++) {
        device->release_event(device, lane->event[i]);
    }
    device->release_pinned(device, lane->slot[0]);
    free(lane);
}

static enum status lane_new(struct device *device, struct lane **made)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return STATUS_NO_HOST_MEMORY;
    }
    void *memory = NULL;
    enum status status = device->alloc_pinned(device, (size_t)LANE_SLOTS * SLOT_BYTES, &memory);
    for (int i = 0; i < LANE_SLOTS && status == STATUS_OK; i++) {
        lane->slot[i] = (char *)memory + (size_t)i * SLOT_BYTES;
        status = device->new_event(device, &lane->event[i]);
    }
    if (status != STATUS_OK) {
        lane->slot[0] = memory;
        lane_delete(device, lane);
        return status;
    }
    *made = lane;
    return STATUS_OK;
}

enum status lane_take(struct resources *resources, bool wait, struct lane **lane)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&resources->lock);
    while (wait && resources->lanes == NULL && resources->made == resources->most) {
        pthread_cond_wait(&resources->lane_came_back, &resources->lock);
    }
    *lane = resources->lanes;
    if (*lane != NULL) {
        resources->lanes = (*lane)->next;
    } else if (resources->made < resources->most) {
        status = lane_new(resources->device, lane);
        resources->made += status == STATUS_OK;
    }
    pthread_mutex_unlock(&resources->lock);
    return status;
}

void lane_give_back(struct resources *resources, struct lane *lane)
{
    pthread_mutex_lock(&resources->lock);
    lane->next = resources->lanes;
    resources->lanes = lane;
    pthread_cond_signal(&resources->lane_came_back);
    pthread_mutex_unlock(&resources->lock);
}

static void session_delete(struct device *device, struct session *session)
{
    for (int i = 0; i < PLAN_MOST_DEPTH; i++) {
        device->release_event(device, session->multiplied[i]);
        device->release_event(device, session->downloaded[i]);
    }
    device->release_event(device, session->uploaded);
    for (int i = 0; i < PLAN_QUEUES; i++) {
        device->release_queue(device, session->compute[i]);
    }
    device->release_queue(device, session->upload);
    device->release_queue(device, session->download);
    free(session);
}

static enum status session_fill(struct device *device, struct session *session)
{
    enum status status = device->new_queue(device, &session->upload);
    if (status == STATUS_OK) {
        status = device->new_queue(device, &session->download);
    }
    for (int i = 0; i < PLAN_QUEUES && status == STATUS_OK; i++) {
        status = device->new_queue(device, &session->compute[i]);
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
    while (resources->lanes != NULL) {
        struct lane *lane = resources->lanes;
        resources->lanes = lane->next;
        lane_delete(resources->device, lane);
    }
    while (resources->sessions != NULL) {
        struct session *session = resources->sessions;
        resources->sessions = session->next;
        session_delete(resources->device, session);
    }
    pthread_cond_destroy(&resources->lane_came_back);
    pthread_mutex_destroy(&resources->lock);
    free(resources);
}
