# left.pl SECONDS: CPU time in Held::DESTROY, called while the closure that left() calls is left and freed, and with it what it
# holds. caller() cannot tell such a stack: it ends Perl (5.36). Runs on 5.28 and later.
use strict;
use warnings;

sub Held::DESTROY { my $i = 0; $i++ while $i < 100_000 }

sub left {
    my $closure;
    {
        my $held = bless {}, "Held";
        $closure = sub { undef $closure; return ref $held };
    }
    $closure->();
}

sub cpu_seconds { my ($user, $system) = times; return $user + $system }

my $end = cpu_seconds() + $ARGV[0];
left() while cpu_seconds() < $end;
