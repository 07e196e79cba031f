package Known;
use strict;
use warnings;
no warnings 'redefine';

BEGIN {
    main::burn();
}

main::burn();

sub sub_of_file {
    main::burn();
}

1;
