# threads.pl SECONDS: an interpreter in each of two threads, first() in the main one, second() in the other. Of a Perl with
# threads.
use strict;
use warnings;
use threads;

sub busy { my $end = time + $_[0]; my $i = 0; while (time < $end) { $i++ for 1 .. 1000 } }
sub first { busy(@_) }
sub second { busy(@_) }

my $other = threads->create(\&second, $ARGV[0]);
first($ARGV[0]);
$other->join;
