# shares.pl SECONDS WARM: CPU time, 50 % in fifty(), 30 % in thirty(), 20 % in twenty(). Runs on 5.28 and later. Before them
# WARM seconds in warm(), while a profiler finds it: else what is missed at the start is fifty()'s.
#
# At the end it prints the true shares, as CPU clocks around each call tell: "fifty 0.5003 thirty ...".
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

sub now { return clock_gettime(CLOCK_PROCESS_CPUTIME_ID) }

sub fifty { my ($i, $total) = (0, 0); $total += $i * $i % 7 while $i++ < $_[0] * 5; return $total }
sub thirty { my $total = 0; $total += $_ * $_ % 7 for 1 .. $_[0] * 3; return $total }
sub twenty { my $text = "ab" x ($_[0] * 2); my $count = () = $text =~ /a(?=b)/g; return $count }
sub warm { my $end = shift; 1 while now() < $end }

warm(now() + $ARGV[1]);
my %turns = (fifty => 2000, thirty => 2000, twenty => 2000);
my %wanted = (fifty => 0.005, thirty => 0.003, twenty => 0.002);
my (%spent, $sum);
my $end = now() + $ARGV[0];
while (now() < $end) {
    for my $name (sort keys %turns) {
        my $start = now();
        main->can($name)->($turns{$name});
        my $used = now() - $start;
        $spent{$name} += $used;
        $sum += $used;
        # each turn brings the shares to what they should be
        $turns{$name} = int($turns{$name} * $wanted{$name} / $used) || 1;
    }
}
print join(" ", map { sprintf "%s %.4f", $_, $spent{$_} / $sum } sort keys %spent), "\n";
