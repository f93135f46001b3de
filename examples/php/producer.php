<?php
// Puts tasks: plain, with a priority, many at once, and at most once.
//
// Install phpredis (Debian: php-cli, php-redis) and run: php producer.php
require __DIR__ . '/server.php';

function expect(mixed $seen, mixed $wanted): void
{
    if ($seen !== $wanted) {
        throw new Exception('expected ' . json_encode($wanted) . ' and got ' . json_encode($seen));
    }
}

$pinpriq = connect();

// PUT returns the id of the new task. The first task creates the queue.
echo 'put task ', ask($pinpriq, 'PUT', 'php-mails', 'to: ann'), "\n";

// A lower number is more urgent; without PRIORITY it is 0. A TTL drops a task that was not taken.
ask($pinpriq, 'PUT', 'php-mails', 'to: bob', 'PRIORITY', -1);
ask($pinpriq, 'PUT', 'php-mails', 'to: eve', 'PRIORITY', 9, 'TTL', 60000);

// Looking changes nothing: each task is [queue, id, receipt, payload].
$seen = array_column(ask($pinpriq, 'PEEK', 'php-mails', 'COUNT', 10), 3);
expect($seen, ['to: bob', 'to: ann', 'to: eve']);

// A pipeline puts many tasks in one round trip.
$pinpriq->pipeline();
for ($number = 0; $number < 100; $number++) {
    $pinpriq->rawCommand('PUT', 'numbers', $number);
}
expect(count($pinpriq->exec()), 100);
expect(count(ask($pinpriq, 'POP', 'numbers', 'COUNT', 1000)), 100);

// If the connection breaks, send it again: the key lets both put one task. For a minute this is so
// even if the task is done meanwhile. The reply has the id, and 1 if it is new.
$order = ['PUT', 'php-mails', 'to: joe', 'UNIQUE', 'order 17', 'WINDOW', 60000];
[$id, $isNew] = ask($pinpriq, ...$order);
expect($isNew, 1);
expect(ask($pinpriq, ...$order), [$id, 0]);

// A refusal begins with a word in capitals.
try {
    ask($pinpriq, 'ACK', 'php-mails', '1-1-1');
    throw new Exception('a wrong receipt was accepted');
} catch (Refused $refused) {
    expect(str_starts_with($refused->getMessage(), 'STALE '), true);
}

expect(ask($pinpriq, 'QUEUE', 'DROP', 'php-mails'), 4);

// worker.php takes from this queue.
ask($pinpriq, 'PUT', 'php-jobs', 'to: zoe');
echo "producer: ok\n";
