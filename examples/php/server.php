<?php
// Included by the others: a connection to the server, and what its replies need.
// PINPRIQ_URL names the server, by default pinpriq://127.0.0.1:7251, or several with commas between.

const TIMEOUT_S = 60; // how long to wait for a reply: longer than any WAIT

function connect(): Redis
{
    $url = getenv('PINPRIQ_URL') ?: 'pinpriq://127.0.0.1:7251';
    $pattern = '{^(?:pinpriq|redis)(s?)://(?:([^:]*):(.*)@)?([^/@]+)$}';
    if (!preg_match($pattern, $url, $parts)) {
        throw new Exception('PINPRIQ_URL is wrong');
    }
    [, $encrypted, $user, $password, $servers] = $parts;
    $pinpriq = new Redis();
    $servers = explode(',', $servers);
    foreach ($servers as $number => $server) {
        [$host, $port] = explode(':', "$server:7251");
        try {
            $pinpriq->connect(($encrypted ? 'tls://' : '') . $host, (int) $port, 2);
            break;
        } catch (RedisException $error) {
            if ($number === array_key_last($servers)) {
                throw $error;
            }
        }
    }
    $pinpriq->setOption(Redis::OPT_READ_TIMEOUT, TIMEOUT_S);
    if ($password !== '') {
        $pinpriq->auth([rawurldecode($user), rawurldecode($password)]);
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
