<?php
// Included by the others: a connection to the server, and what its replies need.
// PINPRIQ_URL names the server, by default redis://127.0.0.1:7251.

const TIMEOUT_S = 60; // how long to wait for a reply: longer than any WAIT

function connect(): Redis
{
    $url = parse_url(getenv('PINPRIQ_URL') ?: 'redis://127.0.0.1:7251');
    $pinpriq = new Redis();
    $pinpriq->connect($url['host'], $url['port'] ?? 7251, 2);
    $pinpriq->setOption(Redis::OPT_READ_TIMEOUT, TIMEOUT_S);
    if (isset($url['pass'])) {
        $pinpriq->auth([$url['user'], rawurldecode($url['pass'])]);
    }
    return $pinpriq;
}

class Refused extends Exception
{
}

// Sends a command. phpredis throws most refusals, as it throws a lost connection. For those that
// begin with ERR it returns false, and keeps what they say.
function ask(Redis $pinpriq, string|int ...$words): mixed
{
    $pinpriq->clearLastError();
    try {
        $reply = $pinpriq->rawCommand(...$words);
    } catch (RedisException $error) {
        // The first word of a refusal is in capitals.
        if (preg_match('/^[A-Z]+ /', $error->getMessage())) {
            throw new Refused($error->getMessage());
        }
        throw $error;
    }
    if ($reply === false && $pinpriq->getLastError() !== null) {
        throw new Refused($pinpriq->getLastError());
    }
    return $reply;
}
