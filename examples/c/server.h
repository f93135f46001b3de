// Included by the others: a connection to the server.
// PINPRIQ_HOST and PINPRIQ_PORT name the server, by default 127.0.0.1 and 7251.
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *or_default(const char *name, const char *value) {
    const char *given = getenv(name);
    return given != NULL ? given : value;
}

// Connects, and then waits this long for each reply. Returns NULL if there is no server.
static redisContext *connect_to_server(int timeout_s) {
    struct timeval timeout = {.tv_sec = timeout_s};
    const char *host = or_default("PINPRIQ_HOST", "127.0.0.1");
    int port = atoi(or_default("PINPRIQ_PORT", "7251"));
    redisContext *pinpriq = redisConnectWithTimeout(host, port, timeout);
    if (pinpriq != NULL && pinpriq->err == 0 && redisSetTimeout(pinpriq, timeout) == REDIS_OK) {
        return pinpriq;
    }
    printf("no server: %s\n", pinpriq != NULL ? pinpriq->errstr : "no memory");
    if (pinpriq != NULL) {
        redisFree(pinpriq);
    }
    return NULL;
}
