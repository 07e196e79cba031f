# hot.pl SECONDS: 25 subs deep, then hot_a > mid_a > leaf_a and hot_b > mid_b > leaf_b by turns, as fast as can be; hot_b calls
# from a sort's block. A stack with both letters never was. Runs on 5.28 and later.
use strict;
use warnings;

sub leaf_a { my $n = shift; $n++ while $n < 12; return $n }
sub mid_a { return leaf_a(@_) }
sub hot_a { return mid_a(@_) }

sub leaf_b { return $_[0] + 1 }
sub mid_b { return leaf_b(@_) }
sub hot_b { my $n = shift; my @sorted = sort { mid_b($n); $a <=> $b } 2, 1; return @sorted }

sub turns {
    my $count = shift;
    for my $i (0 .. $count - 1) {
        hot_a($i % 10);
        hot_b($i % 40);
    }
}

sub down {
    my ($depth, $count) = @_;
    if ($depth > 0) {
        down($depth - 1, $count);
    } else {
        turns($count);
    }
}

sub cpu_seconds { my ($user, $system) = times; return $user + $system }

my $end = cpu_seconds() + $ARGV[0];
down(25, 1000) while cpu_seconds() < $end;
