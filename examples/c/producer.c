// Puts tasks: plain, with a priority, many at once, at most once, and one whose end it awaits.
//
// Install hiredis (Debian: gcc, libc6-dev, libhiredis-dev) and run:
//     cc -o producer producer.c -lhiredis && ./producer
#include "server.h"

#include <stdarg.h>

// Ends the program unless this is so.
static void expect(int is_so, const char *what) {
    if (!is_so) {
        fprintf(stderr, "expected %s\n", what);
        exit(1);
    }
}

// Sends a command and returns its reply, which is to be freed.
static redisReply *ask(redisContext *pinpriq, const char *format, ...) {
    va_list words;
    va_start(words, format);
    redisReply *reply = redisvCommand(pinpriq, format, words);
    va_end(words);
    expect(reply != NULL, "a reply");
    expect(reply->type != REDIS_REPLY_ERROR, reply->str);
    return reply;
}

// Waits for the reply to a command that was sent before.
static redisReply *next_reply(redisContext *pinpriq) {
    void *reply = NULL;
    expect(redisGetReply(pinpriq, &reply) == REDIS_OK, "a reply");
    return reply;
}

int main(void) {
    redisContext *pinpriq = connect_to_server(60);
    expect(pinpriq != NULL, "a server");

    // PUT returns the id of the new task. The first task creates the queue. %s is one argument,
    // whatever it contains; %b takes bytes and their number.
    redisReply *reply = ask(pinpriq, "PUT c-mails %s", "to: ann");
    printf("put task %s\n", reply->str);
    freeReplyObject(reply);

    // A lower number is more urgent; without PRIORITY it is 0. A TTL drops a task that was not taken.
    freeReplyObject(ask(pinpriq, "PUT c-mails %s PRIORITY %d", "to: bob", -1));
    freeReplyObject(ask(pinpriq, "PUT c-mails %s PRIORITY 9 TTL 60000", "to: eve"));

    // Looking changes nothing: each task is an array of queue, id, receipt and payload.
    const char *wanted[] = {"to: bob", "to: ann", "to: eve"};
    reply = ask(pinpriq, "PEEK c-mails COUNT 10");
    expect(reply->elements == 3, "three tasks");
    for (size_t at = 0; at < reply->elements; at++) {
        expect(strcmp(reply->element[at]->element[3]->str, wanted[at]) == 0, wanted[at]);
    }
    freeReplyObject(reply);

    // Commands that are appended are sent together, when the first reply is asked for.
    for (int number = 0; number < 100; number++) {
        redisAppendCommand(pinpriq, "PUT numbers %d", number);
    }
    for (int number = 0; number < 100; number++) {
        reply = next_reply(pinpriq);
        expect(reply->type == REDIS_REPLY_STRING, "an id");
        freeReplyObject(reply);
    }
    reply = ask(pinpriq, "POP numbers COUNT 1000");
    expect(reply->elements == 100, "100 tasks");
    freeReplyObject(reply);

    // If the connection breaks, send it again: the key lets both put one task. For a minute this is
    // so even if the task is done meanwhile. The reply has the id, and 1 if it is new.
    const char *order = "PUT c-mails order UNIQUE order-17 WINDOW 60000";
    for (int is_new = 1; is_new >= 0; is_new--) {
        reply = ask(pinpriq, order);
        expect(reply->element[1]->integer == is_new, is_new ? "a new task" : "the same task");
        freeReplyObject(reply);
    }

    // With WAIT the producer learns how its task ended. Another connection does the task.
    int sent = 0;
    redisAppendCommand(pinpriq, "PUT urgent now! WAIT 30000");
    while (!sent) {
        expect(redisBufferWrite(pinpriq, &sent) == REDIS_OK, "a connection");
    }
    redisContext *worker = connect_to_server(60);
    expect(worker != NULL, "a server");
    redisReply *taken = ask(worker, "TAKE urgent WAIT 30000");
    expect(taken->elements == 1, "a task");
    freeReplyObject(ask(worker, "ACK urgent %s", taken->element[0]->element[2]->str));
    freeReplyObject(taken);
    redisFree(worker);
    reply = next_reply(pinpriq);
    expect(strcmp(reply->element[1]->str, "acked") == 0, "acked");
    freeReplyObject(reply);

    reply = ask(pinpriq, "QUEUE DROP c-mails");
    expect(reply->integer == 4, "four tasks to drop");
    freeReplyObject(reply);

    // worker.c takes from this queue.
    freeReplyObject(ask(pinpriq, "PUT c-jobs %s", "to: zoe"));
    redisFree(pinpriq);
    puts("producer: ok");
    return 0;
}
