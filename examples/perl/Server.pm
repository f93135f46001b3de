# Used by the others: a connection to the server.
# PINPRIQ_URL names the server, by default pinpriq://127.0.0.1:7251, or several with commas between.
package Server;
use strict;
use warnings;
use Redis;

# Connects, and signs in if the URL says as whom. The arguments are options of Redis->new.
sub connected {
    my $url = $ENV{PINPRIQ_URL} // 'pinpriq://127.0.0.1:7251';
    my ($user, $password, $servers) =
        $url =~ m{^(?:pinpriq|redis)://(?:([^:]*):(.*)@)?([^@/]+)$}
        or die "PINPRIQ_URL is no pinpriq:// URL\n";
    my $pinpriq;
    for my $server (split /,/, $servers) {
        $pinpriq = eval { Redis->new(server => $server, @_) } and last;
    }
    die $@ unless $pinpriq;
    if (defined $password) {
        $password =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
        $pinpriq->auth($user, $password);
    }
    return $pinpriq;
}

1;
