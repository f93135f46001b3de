# Puts tasks: plain, with a priority, many at once, at most once, and one whose end it awaits.
#
# Install the module Redis (Debian: libredis-perl) and run: perl producer.pl
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Server;

sub expect {
    my ($seen, $wanted) = @_;
    die "expected $wanted and got $seen\n" if $seen ne $wanted;
}

# Each command is a method of its name.
my $pinpriq = Server::connected();

# PUT returns the id of the new task. The first task creates the queue.
print 'put task ', $pinpriq->put('perl-mails', 'to: ann'), "\n";

# A lower number is more urgent; without PRIORITY it is 0. A TTL drops a task that was not taken.
$pinpriq->put('perl-mails', 'to: bob', PRIORITY => -1);
$pinpriq->put('perl-mails', 'to: eve', PRIORITY => 9, TTL => 60_000);

# Looking changes nothing: each task is [queue, id, receipt, payload].
expect(join(', ', map { $_->[3] } $pinpriq->peek('perl-mails', COUNT => 10)),
    'to: bob, to: ann, to: eve');

# With a function for the reply, a command does not wait for it. So many tasks are put in one round
# trip.
my $put = 0;
for my $number (0 .. 99) {
    $pinpriq->put('numbers', $number, sub { $put++ unless defined $_[1] });
}
$pinpriq->wait_all_responses;
expect($put, 100);
expect(scalar(my @popped = $pinpriq->pop('numbers', COUNT => 1000)), 100);

# If the connection breaks, send it again: the key lets both put one task. For a minute this is so
# even if the task is done meanwhile. The reply has the id, and 1 if it is new.
my @order = ('perl-mails', 'to: joe', UNIQUE => 'order 17', WINDOW => 60_000);
my ($id, $is_new) = $pinpriq->put(@order);
expect($is_new, 1);
expect(join(' ', $pinpriq->put(@order)), "$id 0");

# With WAIT the producer learns how its task ended.
my $outcome;
$pinpriq->put('urgent', 'now!', WAIT => 30_000, sub { $outcome = $_[0][1] });
my $worker = Server::connected();
for my $task ($worker->take('urgent', WAIT => 30_000)) {
    my ($queue, undef, $receipt) = @$task;
    $worker->ack($queue, $receipt);
}
$pinpriq->wait_all_responses;
expect($outcome, 'acked');

expect($pinpriq->queue('DROP', 'perl-mails'), 4);

# worker.pl takes from this queue.
$pinpriq->put('perl-jobs', 'to: zoe');
print "producer: ok\n";
