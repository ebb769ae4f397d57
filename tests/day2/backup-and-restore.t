#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The page doc/day2/backup-and-restore.md, followed.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/day2";
use Page;

Page::follow('backup-and-restore', qw(rabbitmq pgsql));
