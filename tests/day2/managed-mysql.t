#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The page doc/day2/managed-mysql.md, followed, on a private server with a private authority.
use strict;
use warnings;
use lib map { "$ENV{top_srcdir}/tests/$_" } qw(integration security day2);
use Managed;
use Page;

Page::follow('managed-mysql', \&Managed::mysql);
