# A worker: it renews its leases, fails what it cannot do, outlives restarts of the server, and
# stops at SIGTERM after the current task.
#
# Install the module Redis (Debian: libredis-perl) and run: perl worker.pl QUEUE
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use List::Util 'min';
use Server;

my $TTR_MS = 1_000;     # how long a lease lasts unless it is renewed
my $WAIT_MS = 2_000;    # how long to wait for a task, and so for the end at SIGTERM
my $PAUSE_S = 0.1;
my $PAUSE_MAX_S = 5;

my $queue = $ARGV[0] // 'perl-jobs';
my $goes_on = 1;
$SIG{TERM} = sub { $goes_on = 0 };
$| = 1;

sub pause { select(undef, undef, undef, $_[0]) }

# A refusal is an exception such as "[ack] STALE …". Any other means that the connection is lost.
sub is_refusal { $_[0] =~ /^\[\w+\] [A-Z]+ / }

# The work itself. It returns why it failed, or nothing. Long work renews its lease by itself, at
# least three times while a lease lasts.
sub handle {
    my ($payload, $attempts, $renew) = @_;
    if ($payload eq 'slow') {
        for (1 .. 5) {
            pause($TTR_MS / 3000);
            $renew->();
        }
    }
    return "cannot do $payload" if $payload eq 'broken';
    return "cannot do $payload" if $payload eq 'flaky' && $attempts < 2;
    return;
}

sub work_on {
    my ($pinpriq, $task) = @_;
    my ($receipt, $payload) = @$task{qw(receipt payload)};
    my $reason =
        handle($payload, $task->{attempts}, sub { $pinpriq->touch($queue, $receipt) });
    if (defined $reason) {
        # The settings of the queue say what follows: another try later, or none.
        my $state = $pinpriq->fail($queue, $receipt, REASON => $reason);
        print $payload, $state eq 'B' ? ' buried' : ' released', "\n";
    } else {
        $pinpriq->ack($queue, $receipt);
        print "$payload acked\n";
    }
}

# Does tasks until the connection breaks or it is time to stop.
sub serve {
    my $pause = shift;
    my $pinpriq = Server::connected(read_timeout => 10);
    # After the third failure a task is buried: DIG or PLOW brings it back.
    $pinpriq->queue('SET', $queue, ATTEMPTS => 3, BACKOFF => 20);
    while ($goes_on) {
        # Without a task, an empty reply comes when the time is up.
        my @taken = $pinpriq->take($queue, WAIT => $WAIT_MS, TTR => $TTR_MS, 'WITHMETA');
        $$pause = $PAUSE_S;
        for my $fields (@taken) {
            # What is known of a task comes as a flat list of names and values.
            my %task = @$fields;
            next if eval { work_on($pinpriq, \%task); 1 };
            die $@ unless is_refusal($@);
            # The lease has ended, and the task comes again.
            print "$task{payload} lost: $@";
        }
    }
}

my $pause = $PAUSE_S;
while ($goes_on) {
    next if eval { serve(\$pause); 1 };
    die $@ if is_refusal($@);
    print "no server, next try in $pause s: $@";
    pause($pause);
    $pause = min(2 * $pause, $PAUSE_MAX_S);
}
print "worker: ok\n";
