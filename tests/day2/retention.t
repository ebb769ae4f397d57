#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The page doc/day2/retention.md, followed.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/day2";
use Page;

Page::follow('retention', qw(rabbitmq pgsql));
