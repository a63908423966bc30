/* base/mutex.c -- see base/mutex.h. */
#include "base/mutex.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

static void must(int result)
{
    assert(result == 0);
    (void)result;
}

void mutex_init(struct mutex *mutex)
{
    must(pthread_mutex_init(&mutex->native, NULL));
}

void mutex_deinit(struct mutex *mutex)
{
    must(pthread_mutex_destroy(&mutex->native));
}

void mutex_lock(struct mutex *mutex)
{
    must(pthread_mutex_lock(&mutex->native));
}

bool mutex_try_lock(struct mutex *mutex)
{
    const int result = pthread_mutex_trylock(&mutex->native);

    assert(result == 0 || result == EBUSY);
    return result == 0;
}

void mutex_unlock(struct mutex *mutex)
{
    must(pthread_mutex_unlock(&mutex->native));
}

void condition_init(struct condition *condition)
{
    pthread_condattr_t attributes;

    must(pthread_condattr_init(&attributes));
    must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    must(pthread_cond_init(&condition->native, &attributes));
    must(pthread_condattr_destroy(&attributes));
}

void condition_deinit(struct condition *condition)
{
    must(pthread_cond_destroy(&condition->native));
}

void condition_wait(struct condition *condition, struct mutex *mutex)
{
    must(pthread_cond_wait(&condition->native, &mutex->native));
}

void condition_wait_for(struct condition *condition, struct mutex *mutex,
                        uint64_t wait_ns)
{
    struct timespec until;
    uint64_t ns;
    int result;

    must(clock_gettime(CLOCK_MONOTONIC, &until));
    ns = (uint64_t)until.tv_nsec + wait_ns % 1000000000u;
    until.tv_sec += (time_t)(wait_ns / 1000000000u + ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    result = pthread_cond_timedwait(&condition->native, &mutex->native, &until);
    assert(result == 0 || result == ETIMEDOUT);
    (void)result;
}

void condition_broadcast(struct condition *condition)
{
    must(pthread_cond_broadcast(&condition->native));
}
