# known_stacks.pl SECONDS: CPU time in stacks that the program itself writes down. Runs on 5.28 and later.
#
# On standard output a line "version V", "file F", "burn FIRST LAST", then a line for each stack: its frames below burn(), root
# first, "name\tfile\tline" with tabs between, as caller() tells them. The time goes into burn().
use strict;
use warnings;
use utf8;
use List::Util qw(first reduce);

our (%recorded, @recorded);
our $recording = 1;

sub burn {
    tell_stack() if $recording;
    my ($i, $total) = (0, 0);
    while ($i < 2500) {
        $total += $i * $i % 7;
        $i++;
    }
    return $total;
} # the last line of burn()

sub tell_stack {
    my ($i, @stack) = (2);
    while (my @at = caller($i)) { # each tells where it was called; 0 is this sub, 1 burn()
        my ($name, $file, $line) = @at[3, 1, 2];
        my @called = caller($i - 1);
        $name = "(require)" if $at[7];
        unshift @stack, [$name, @called[1, 2]];
        $i++;
    }
    my @root = caller($i - 1);
    unshift @stack, ["<main>", @root[1, 2]];
    $_->[1] =~ s/^\(eval \d+\)$/(eval)/ for @stack;
    my $text = join("\t", map { @$_ } @stack);
    push @recorded, $text unless $recorded{$text}++;
}

sub recursion {
    my ($depth) = @_;
    return burn() if $depth == 0;
    for my $once (1) {
        return recursion($depth - 1) + 1;
    }
}

sub sorted {
    my @sorted = sort { burn(); $a <=> $b } 2, 1;
    my $by = sub { burn(); $a <=> $b };
    @sorted = sort $by 2, 1;
    return @sorted;
}

sub by_eval { eval { burn() }; my @inner = sort { burn(); $a <=> $b } 2, 1; return $a <=> $b }

sub nested_sorts {
    my @sorted = sort by_eval 2, 1; # in void context nothing would be sorted
}

sub evals {
    eval { burn(); die "no\n" };
    eval "burn(); 1" or die;
    eval "no warnings; sub from_text { burn() } from_text(); 1" or die;
    eval {
        eval { burn() };
        burn();
    };
}

sub closures {
    my $value = shift;
    my $closure = sub { burn() + $value };
    $closure->();
    my $outer = sub { my $inner = sub { burn() + $value }; $inner->() };
    $outer->();
}

sub lists {
    my @all = map { burn() } 1, 2;
    @all = grep { burn(); 1 } @all;
    first { burn(); 0 } 1, 2;
    reduce { burn(); $a } 1, 2;
}

sub loops {
    for my $one (1, 2) {
        my $times = 0;
        while ($times++ < 1) {
            {
                burn();
            }
        }
    }
}

sub handlers {
    local $SIG{__WARN__} = sub { burn() };
    warn "never seen\n";
    local $SIG{__DIE__} = sub { burn() };
    eval { die "never seen\n" };
}

sub signals {
    local $SIG{USR1} = sub { burn() };
    kill USR1 => $$;
    return;
}

sub objects {
    my $one = Num->new(1) + 2;
    my $text = "$one";
    $one->only_by_autoload;
    $one->method->plain;
    my $method = $one->can("method");
    $one->$method;
    Num->class_method;
}

sub destroyed {
    my $one = Num->new(1);
    undef $one;
    burn();
}

sub magic {
    tie my $tied, "Tied";
    my $value = $tied + 1;
    $tied = 1;
}

sub required {
    delete $INC{"Known.pm"};
    require Known;
    do "./Known.pm";
    Known::sub_of_file();
}

sub over_several_lines {
    my @all = (
        burn(),
        recursion(
            0,
        ),
    );
}

sub gone_to {
    goto &main::recursion;
}

sub in_pattern {
    "aa" =~ /a(?{ burn() })a/;
}

*Alias::of = \&burning;
sub burning { burn() }

{
    no strict "refs";
    *{"main::made"} = sub { burn() };
}

sub größe { burn() }

my $new_words = $] >= 5.036 && eval q{
    use feature qw(try defer);
    no warnings;
    sub tries { try { burn(); die "no\n" } catch ($no) { burn() } }
    sub defers { defer { burn() } burn() }
    1};

sub dots {
    my $all = join ",", map { sprintf "%s", burn() } 1;
    local $_ = $all;
    s/(.)/burn()/e;
}

package Num;
use overload "+" => \&plus, '""' => sub { main::burn(); "number" };

sub new { my ($class, $value) = @_; main::burn(); return bless {value => $value}, $class }
sub plus { main::burn(); return Num->new($_[0]{value}) }
sub method { main::burn(); return $_[0] }
sub plain { $_[0]->Deep::Er::in_other }
sub class_method { main::burn() }

sub AUTOLOAD { main::burn() }

sub DESTROY { main::burn() }

package Deep::Er;
sub in_other { main::burn() }

package Tied;
sub TIESCALAR { my $class = shift; main::burn(); return bless [], $class }
sub FETCH { main::burn() }
sub STORE { main::burn() }

package main;

sub round {
    recursion(0);
    recursion(60);
    sorted();
    nested_sorts();
    evals();
    closures(1);
    lists();
    loops();
    handlers();
    signals();
    objects();
    destroyed();
    magic();
    required();
    over_several_lines();
    gone_to(0);
    in_pattern();
    Alias::of();
    made();
    größe();
    dots();
    if ($new_words) {
        tries();
        defers();
    }
}

sub cpu_seconds { my ($user, $system) = times; return $user + $system }

binmode STDOUT, ":utf8";
$0 =~ m{(.*)/};
chdir "$1/lib" or die;
unshift @INC, ".";
my $end = cpu_seconds() + $ARGV[0];
while (cpu_seconds() < $end) {
    round();
    $recording = 0;
}
printf "version %vd\nfile %s\nburn 14 22\n", $^V, __FILE__;
print "$_\n" for @recorded;
