# work_perl.pl FRAMES [FILE]: busy FRAMES subs deep, without a pause, until the process is ended. It writes to FILE what it has
# done: pieces of equal work and the process's CPU time in ns, two 64-bit numbers that belong together (the first one again behind
# them tells). Runs on 5.28 and later.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

sub mix { my $number = ($_[0] * 1103515245 + 12345) & 0xffffffff; return $number ^ $number >> 13 }

sub piece {
    my ($number, $rounds) = @_;
    $number = mix($number) while --$rounds >= 0;
    return $number;
}

sub without_pause {
    my ($file, $number, $done) = (shift, 0, 0);
    while (1) {
        $number = piece($number, 1000);
        $done++;
        next if !$file;
        sysseek $file, 0, 0;
        syswrite $file, pack("q3", $done, int(1e9 * clock_gettime(CLOCK_PROCESS_CPUTIME_ID)), $done);
    }
}

sub descend { my ($depth, $file) = @_; $depth > 0 ? descend($depth - 1, $file) : without_pause($file) }

my $file;
open $file, "+<", $ARGV[1] or die if $ARGV[1];
descend($ARGV[0] - 5, $file); # <main>, and of what follows the leaf's two
