/*
 * tools/bench/peers/peer_redis.c -- Redis: a server of our own that syncs its log at
 * each write, behind a socket in its directory; a connection for each thread. A batch
 * is one MSET or DEL, and one entry of the log.
 *
 * The server ends with this process, however that ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/peers/peer.h"
#include "tools/must/must.h"

#define SOCKET "redis.sock"

enum { EXEC_FAILED = 127 };

struct redis {
    pid_t server;
    int directory;
};

/* 0: there is none. */
static pid_t running;

/* At exit, also from die(): before the directory is removed under it. */
static void kill_server(void)
{
    const pid_t server = running;

    running = 0;
    if (server != 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
}

/* In the child. */
static void serve(const char *directory, pid_t parent, int output)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
        dup2(output, STDOUT_FILENO) == STDOUT_FILENO) {
        execlp("redis-server", "redis-server", "--dir", directory,
               "--unixsocket", SOCKET, "--port", "0", "--save", "",
               "--appendonly", "yes", "--appendfsync", "always", "--maxclients",
               "500", (char *)NULL);
    }
    _exit(EXEC_FAILED);
}

/* It says so in its log, when it has read its data. False: it ended instead. */
static bool wait_until_ready(int output)
{
    FILE *log = must_have(fdopen(output, "r"));
    char line[1024];
    bool ready = false;

    while (!ready && fgets(line, sizeof line, log) != NULL) {
        ready = strstr(line, "eady to accept connections") != NULL;
    }
    fclose(log);
    return ready;
}

static pid_t start_server(const char *directory)
{
    const pid_t parent = getpid();
    int output[2];
    pid_t server;

    if (pipe2(output, O_CLOEXEC) != 0 || (server = fork()) < 0) {
        die("redis: %s", strerror(errno));
    }
    if (server == 0) {
        serve(directory, parent, output[1]);
    }
    running = server;
    close(output[1]);
    return wait_until_ready(output[0]) ? server : 0;
}

static void *redis_open(const char *directory)
{
    static bool kills_at_exit;
    struct redis *redis = must_have(calloc(1, sizeof *redis));
    int status;

    if (!kills_at_exit && atexit(kill_server) != 0) {
        die("atexit");
    }
    kills_at_exit = true;
    redis->server = start_server(directory);
    if (redis->server == 0) {
        waitpid(running, &status, 0);
        running = 0;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != EXEC_FAILED) {
            die("%s: redis-server does not start", directory);
        }
        fprintf(stderr, "redis-server is not installed: left out\n");
        free(redis);
        return NULL;
    }
    redis->directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (redis->directory < 0) {
        die("%s: %s", directory, strerror(errno));
    }
    return redis;
}

static void redis_close(void *db)
{
    struct redis *redis = db;
    int status;

    kill(redis->server, SIGTERM);
    if (waitpid(redis->server, &status, 0) != redis->server || status != 0) {
        die("redis-server ended with status %d", status);
    }
    running = 0;
    close(redis->directory);
    free(redis);
}

/* The path of a socket has at most 107 bytes; a directory may have more. */
static void *redis_thread_begin(void *db)
{
    const struct redis *redis = db;
    redisContext *connection;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d/" SOCKET, redis->directory);
    connection = must_have(redisConnectUnix(path));
    if (connection->err != 0) {
        die("redis: %s", connection->errstr);
    }
    return connection;
}

static void redis_thread_end(void *db, void *thread)
{
    (void)db;
    redisFree(thread);
}

static long long run(redisContext *connection, size_t words,
                     const char **arguments, const size_t *lengths)
{
    redisReply *reply =
        redisCommandArgv(connection, (int)words, arguments, lengths);
    long long number;

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        die("redis: %s", reply == NULL ? connection->errstr : reply->str);
    }
    number = reply->integer;
    freeReplyObject(reply);
    return number;
}

static void write_all(redisContext *connection, const char *command,
                      const struct peer_item *items, size_t count,
                      bool with_values)
{
    const char **arguments =
        must_have(malloc((1 + 2 * count) * sizeof *arguments));
    size_t *lengths = must_have(malloc((1 + 2 * count) * sizeof *lengths));
    size_t words = 0;

    arguments[words] = command;
    lengths[words++] = strlen(command);
    for (size_t i = 0; i < count; i++) {
        arguments[words] = items[i].key;
        lengths[words++] = items[i].key_bytes;
        if (with_values) {
            arguments[words] = items[i].value;
            lengths[words++] = items[i].value_bytes;
        }
    }
    (void)run(connection, words, arguments, lengths);
    free(arguments);
    free(lengths);
}

static void redis_put(void *db, void *thread, const struct peer_item *items,
                      size_t count)
{
    (void)db;
    write_all(thread, "MSET", items, count, true);
}

static void redis_delete(void *db, void *thread, const struct peer_item *items,
                         size_t count)
{
    (void)db;
    write_all(thread, "DEL", items, count, false);
}

static uint64_t redis_count(void *db, void *thread)
{
    const char *command = "DBSIZE";
    const size_t bytes = strlen(command);

    (void)db;
    return (uint64_t)run(thread, 1, &command, &bytes);
}

const struct peer peer_redis = {
    .name = "redis",
    .open = redis_open,
    .close = redis_close,
    .thread_begin = redis_thread_begin,
    .thread_end = redis_thread_end,
    .put = redis_put,
    .delete = redis_delete,
    .count = redis_count,
};
