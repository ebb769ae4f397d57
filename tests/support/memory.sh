# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# A directory for what a test's programs bring to the disk all the time: `. "$top_srcdir/tests/support/memory.sh"`, then
#
#   data=$(memory_for "$work/data")
#   trap 'rm -rf "$data"' EXIT
#   trap 'exit 1' HUP INT TERM
#
# It lies in memory where that has room (/dev/shm, 2 GiB), else it is the one that was named. What is killed in such
# tests are processes, and what these had written outlives them there as well; a disk that everybody's fsync waits for
# makes all of them slow.
memory_for() { # DIRECTORY
    if [ -w /dev/shm ] && [ "$(df -Pk /dev/shm | awk 'END { print $4 }')" -ge 2097152 ]; then
        mktemp -d /dev/shm/waybill-test.XXXXXX
    else
        mkdir -p "$1" && echo "$1"
    fi
}
