# threads.pl SECONDS: threads with an interpreter each. first() runs in the main one, second() in another, which forks a process
# for fifth(); third() begins one for fourth(). Of a Perl with threads.
use strict;
use warnings;
use threads;
use Time::HiRes qw(time);

sub busy { my $end = time + $_[0]; my $i = 0; while (time < $end) { $i++ for 1 .. 1000 } }
sub first { busy(@_) }
sub second {
    my $child = fork;
    if (!$child) {
        fifth(@_);
        require POSIX;
        POSIX::_exit(0);
    }
    busy(@_);
    waitpid $child, 0;
}
sub third { threads->create(\&fourth, @_)->join }
sub fourth { busy(@_) }
sub fifth { busy(@_) }

my $other = threads->create(\&second, $ARGV[0]);
my $third = threads->create("third", $ARGV[0]);
first($ARGV[0]);
$_->join for $other, $third;
