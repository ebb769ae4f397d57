#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The page doc/day2/first-endpoint.md, followed, with a PostgreSQL of its own: the page makes an account and a database.
use strict;
use warnings;
use lib map { "$ENV{top_srcdir}/tests/$_" } qw(integration security day2);
use Managed;
use Page;

Page::follow('first-endpoint', \&Managed::just_installed, 'rabbitmq');
