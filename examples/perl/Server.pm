# Used by the others: a connection to the server.
# PINPRIQ_URL names the server, by default redis://127.0.0.1:7251.
package Server;
use strict;
use warnings;
use Redis;

# Connects, and signs in if the URL says as whom. The arguments are options of Redis->new.
sub connected {
    my $url = $ENV{PINPRIQ_URL} // 'redis://127.0.0.1:7251';
    my ($user, $password, $address) = $url =~ m{^redis://(?:([^:]*):(.*)@)?([^@/]+)}
        or die "PINPRIQ_URL is no redis:// URL\n";
    my $pinpriq = Redis->new(server => $address, @_);
    if (defined $password) {
        $password =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
        $pinpriq->auth($user, $password);
    }
    return $pinpriq;
}

1;
