#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Every kind of message that means harm, through the queue in a SQLite file: alone and amid good ones, by one
# worker and by several, with the outbox and without.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Suite;

Suite::main(
    [ 'sqlite+sqlite', name => 'alone', concurrency => 1, around => 0 ],
    [ 'sqlite+sqlite', name => 'amid', concurrency => 3, around => 25 ],
    [ 'sqlite+sqlite', name => 'alone-plain', concurrency => 3, around => 0, outbox => '' ],
    [ 'sqlite+sqlite', name => 'amid-plain', concurrency => 1, around => 5, outbox => '' ],
    [ 'sqlite+sqlite', name => 'apart', concurrency => 2, around => 10, apart => 1 ],
);
