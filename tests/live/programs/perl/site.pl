# site.pl daemon -l URL: a web application of Mojolicious; each page sorts, formats and fills a template.
use Mojolicious::Lite;

helper price => sub { my ($self, $n) = @_; my $sum = 0; $sum += $_ ** 2 % 7 for 1 .. $n; return $sum };

get "/" => sub {
    my $self = shift;
    my @rows = sort { $a->{price} <=> $b->{price} } map { { name => "item $_", price => $self->price($_) } } 1 .. 60;
    $self->render("index", rows => \@rows);
};

app->log->level("error");
app->start;

__DATA__
@@ index.html.ep
% for my $row (@$rows) {
<p><%= $row->{name} %> <%= $row->{price} %></p>
% }
