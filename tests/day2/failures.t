#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The page doc/day2/failures.md, followed.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/day2";
use Test::More;
use Page;

Endpoint::under_servers(qw(rabbitmq pgsql));
Page::follow('failures', qw(rabbitmq pgsql));
