// A worker: it renews its leases, fails what it cannot do, outlives restarts of the server, and
// stops at SIGTERM after the current task.
//
// Install hiredis (Debian: gcc, libc6-dev, libhiredis-dev) and run:
//     cc -o worker worker.c -lhiredis && ./worker QUEUE
#include "server.h"

#include <signal.h>
#include <time.h>

enum {
    TTR_MS = 1000,   // how long a lease lasts unless it is renewed
    WAIT_MS = 2000,  // how long to wait for a task, and so for the end at SIGTERM
    TIMEOUT_S = 10,  // how long to wait for a reply: longer than WAIT_MS
    PAUSE_MS = 100, PAUSE_MAX_MS = 5000,
};

typedef struct {
    const char *receipt, *payload;
    long long attempts;
} task;

static redisContext *pinpriq;
static const char *queue = "c-jobs";
static volatile sig_atomic_t goes_on = 1;

static void stop(int signal) { goes_on = signal != SIGTERM; }

static void pause_ms(int ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

// The work itself. Returns whether it could be done. Long work renews its lease by itself.
static int handle(const task *task) {
    if (strcmp(task->payload, "slow") == 0) {
        for (int piece = 0; piece < 5; piece++) {
            pause_ms(TTR_MS / 3);
            freeReplyObject(redisCommand(pinpriq, "TOUCH %s %s", queue, task->receipt));
        }
    }
    return strcmp(task->payload, "broken") != 0 &&
           (strcmp(task->payload, "flaky") != 0 || task->attempts >= 2);
}

static void work_on(const task *task) {
    redisReply *reply;
    const char *end = "acked";
    if (handle(task)) {
        reply = redisCommand(pinpriq, "ACK %s %s", queue, task->receipt);
    } else {
        // The settings of the queue say what follows: another try later, or none.
        char reason[100];
        snprintf(reason, sizeof reason, "cannot do %s", task->payload);
        reply = redisCommand(pinpriq, "FAIL %s %s REASON %s", queue, task->receipt, reason);
        end = reply != NULL && strcmp(reply->str, "B") == 0 ? "buried" : "released";
    }
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        // The lease has ended, or will end, and the task comes again.
        printf("%s lost: %s\n", task->payload, reply != NULL ? reply->str : pinpriq->errstr);
    } else {
        printf("%s %s\n", task->payload, end);
    }
    freeReplyObject(reply);
}

// What is known of a task comes as a flat list of names and values.
static task named(const redisReply *fields) {
    task task = {0};
    for (size_t at = 0; at + 1 < fields->elements; at += 2) {
        const char *name = fields->element[at]->str;
        const redisReply *value = fields->element[at + 1];
        if (strcmp(name, "receipt") == 0) task.receipt = value->str;
        if (strcmp(name, "payload") == 0) task.payload = value->str;
        if (strcmp(name, "attempts") == 0) task.attempts = value->integer;
    }
    return task;
}

// Does tasks until the connection breaks or it is time to stop.
static void serve(int *pause) {
    // After the third failure a task is buried: DIG or PLOW brings it back.
    freeReplyObject(redisCommand(pinpriq, "QUEUE SET %s ATTEMPTS 3 BACKOFF 20", queue));
    while (goes_on && pinpriq->err == 0) {
        // Without a task, an empty reply comes when the time is up.
        redisReply *taken =
            redisCommand(pinpriq, "TAKE %s WAIT %d TTR %d WITHMETA", queue, WAIT_MS, TTR_MS);
        if (taken == NULL || taken->type == REDIS_REPLY_ERROR) {
            printf("cannot take: %s\n", taken != NULL ? taken->str : pinpriq->errstr);
            freeReplyObject(taken);
            return;
        }
        *pause = PAUSE_MS;
        for (size_t at = 0; at < taken->elements; at++) {
            task task = named(taken->element[at]);
            work_on(&task);
        }
        freeReplyObject(taken);
    }
}

int main(int count, char **arguments) {
    if (count > 1) queue = arguments[1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTERM, stop);
    int pause = PAUSE_MS;
    while (goes_on) {
        pinpriq = connect_to_server(TIMEOUT_S);
        if (pinpriq != NULL) serve(&pause);
        redisFree(pinpriq);
        if (goes_on) {
            printf("next try in %d ms\n", pause);
            pause_ms(pause);
            pause = 2 * pause < PAUSE_MAX_MS ? 2 * pause : PAUSE_MAX_MS;
        }
    }
    puts("worker: ok");
    return 0;
}
