/*
 * base/mutex.h -- pthread mutexes and condition variables that cannot fail:
 * what can go wrong with them is a bug of ours, so it is asserted.
 */
#ifndef BASE_MUTEX_H
#define BASE_MUTEX_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct mutex {
    pthread_mutex_t native;
};

struct condition {
    pthread_cond_t native; /* On the monotonic clock. */
};

void mutex_init(struct mutex *mutex);
void mutex_deinit(struct mutex *mutex);
void mutex_lock(struct mutex *mutex);
/* False: somebody holds it. */
bool mutex_try_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

void condition_init(struct condition *condition);
void condition_deinit(struct condition *condition);
void condition_wait(struct condition *condition, struct mutex *mutex);
/* Until signalled, or `wait_ns` from now. Spurious returns happen: look again. */
void condition_wait_for(struct condition *condition, struct mutex *mutex,
                        uint64_t wait_ns);
void condition_broadcast(struct condition *condition);

#endif
