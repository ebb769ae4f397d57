#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Every kind of message that means harm, through RabbitMQ: alone and amid good ones, by one
# worker and by several, with the outbox and without, in either topology.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/hostile";
use Suite;

Suite::main(
    [ 'amqp+pgsql', name => 'alone', concurrency => 1, around => 0 ],
    [ 'amqp+pgsql', name => 'amid', concurrency => 3, around => 25 ],
    [ 'amqp+pgsql', name => 'alone-plain', concurrency => 3, around => 0, outbox => '' ],
    [ 'amqp+pgsql', name => 'amid-plain', concurrency => 1, around => 5, outbox => '' ],
    [ 'amqp+pgsql', name => 'direct', concurrency => 3, around => 5, transport => 'topology = "direct";' ],
);
