#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The page doc/day2/sizing.md, followed.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/day2";
use Page;

Page::follow('sizing', qw(rabbitmq pgsql));
