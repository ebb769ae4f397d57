#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# The page doc/day2/full-disk.md, followed. The disk is node1/data, and a library in front of write() has it full while a
# file "filler" is in it: nobody has to mount anything.
use strict;
use warnings;
use lib "$ENV{top_srcdir}/tests/integration", "$ENV{top_srcdir}/tests/day2";
use Cwd ();
use Page;

Page::follow('full-disk', sub {
    return (LD_PRELOAD => "$Endpoint::build/tests/integration/.libs/full_disk.so", WB_DISKS => Cwd::abs_path(Endpoint::work_dir()) . '/node1/data');
});
