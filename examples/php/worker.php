<?php
// A worker: it renews its leases, fails what it cannot do, outlives restarts of the server, and
// stops at SIGTERM after the current task.
//
// Install phpredis (Debian: php-cli, php-redis) and run: php worker.php QUEUE
require __DIR__ . '/server.php';

const TTR_MS = 1000; // how long a lease lasts unless it is renewed
const WAIT_MS = 2000; // how long to wait for a task, and so for the end at SIGTERM
const PAUSE_MS = 100;
const PAUSE_MAX_MS = 5000;

class CannotDo extends Exception
{
}

// The work itself. It fails by throwing an exception. PHP has no threads, so long work renews its
// lease by itself, at least three times while a lease lasts.
function handle(string $payload, int $attempts, callable $renew): void
{
    if ($payload === 'slow') {
        for ($piece = 0; $piece < 5; $piece++) {
            usleep(TTR_MS * 1000 / 3);
            $renew();
        }
    }
    if ($payload === 'broken' || ($payload === 'flaky' && $attempts < 2)) {
        throw new CannotDo("cannot do $payload");
    }
}

function workOn(Redis $pinpriq, array $task): void
{
    ['queue' => $queue, 'receipt' => $receipt, 'payload' => $payload] = $task;
    $renew = fn () => ask($pinpriq, 'TOUCH', $queue, $receipt);
    try {
        try {
            handle($payload, $task['attempts'], $renew);
            ask($pinpriq, 'ACK', $queue, $receipt);
            echo "$payload acked\n";
        } catch (CannotDo $error) {
            // The settings of the queue say what follows: another try later, or none.
            $state = ask($pinpriq, 'FAIL', $queue, $receipt, 'REASON', $error->getMessage());
            echo $payload, $state === 'B' ? " buried\n" : " released\n";
        }
    } catch (Refused $refused) {
        // The lease has ended, and the task comes again.
        echo "$payload lost: ", $refused->getMessage(), "\n";
    }
}

// What is known of a task comes as a flat list of names and values.
function named(array $flat): array
{
    $fields = [];
    foreach (array_chunk($flat, 2) as [$name, $value]) {
        $fields[$name] = $value;
    }
    return $fields;
}

$queue = $argv[1] ?? 'php-jobs';
$goesOn = true;
pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () use (&$goesOn) {
    $goesOn = false;
});
$pause = PAUSE_MS;
$pinpriq = null;
while ($goesOn) {
    try {
        if ($pinpriq === null) {
            $pinpriq = connect();
            // After the third failure a task is buried: DIG or PLOW brings it back.
            ask($pinpriq, 'QUEUE', 'SET', $queue, 'ATTEMPTS', 3, 'BACKOFF', 20);
        }
        // Without a task, an empty reply comes when the time is up.
        $taken = ask($pinpriq, 'TAKE', $queue, 'WAIT', WAIT_MS, 'TTR', TTR_MS, 'WITHMETA');
        $pause = PAUSE_MS;
        foreach ($taken as $fields) {
            workOn($pinpriq, named($fields));
        }
    } catch (RedisException $error) {
        echo 'no server, next try in ', $pause / 1000, ' s: ', $error->getMessage(), "\n";
        $pinpriq = null;
        usleep($pause * 1000);
        $pause = min(2 * $pause, PAUSE_MAX_MS);
    }
}
echo "worker: ok\n";
