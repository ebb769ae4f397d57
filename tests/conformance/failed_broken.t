#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The persistence kit finds what is wrong with broken tables of failed messages: the cases named
# here must fail, and nothing may with the one that is whole.
topic=failed plugin=failed_broken
. "$top_srcdir/tests/conformance/broken_topic.sh"

try_whole <<'END'
skip failed: a turn whose request is lost
skip failed: a turn whose reply is lost
END

try keys_are_cut <<'END'
what is kept comes back, whatever its bytes
END
try truncates_messages <<'END'
what is kept comes back, whatever its bytes
END
try attempts_are_not_counted <<'END'
what fails again is the same message, with an attempt more, and waits
END
try status_stays <<'END'
what fails again is the same message, with an attempt more, and waits
END
try first_one_stays <<'END'
what fails again is the same message, with an attempt more, and waits
END
try same_failure_counts <<'END'
the same failure again changes nothing
END
try same_failure_waits <<'END'
the same failure again changes nothing
END
try turns_whatever <<'END'
a status is turned where it is as said, and told so
END
try turned_always <<'END'
a status is turned where it is as said, and told so
of four who turn one message one is told that he did
END
try turned_never <<'END'
a status is turned where it is as said, and told so
END
try turns_all <<'END'
a status is turned where it is as said, and told so
END
try changed_as_before <<'END'
a status is turned where it is as said, and told so
END
try turns_by_looking <<'END'
of four who turn one message one is told that he did
END
try turns_stand <<'END'
a rollback leaves nothing of them
END
try commit_forgets <<'END'
changes of a batch are there with its commit
END
try discards_whatever <<'END'
a message is discarded where its status is as said
END
try discards_nothing <<'END'
a message is discarded where its status is as said
END
try list_ignores_status <<'END'
a list is of what was asked for, in the order in which it failed
END
try list_includes_its_end <<'END'
a list is of what was asked for, in the order in which it failed
END
try list_excludes_its_start <<'END'
a list is of what was asked for, in the order in which it failed
END
try newest_first <<'END'
a list is of what was asked for, in the order in which it failed
END
try list_ends_at_a_page <<'END'
a list of many has each once
END
try list_repeats_pages <<'END'
a list of many has each once
END
try list_drops_the_visitors_word <<'END'
a list is of what was asked for, in the order in which it failed
END
try cleans_what_waits <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_the_latest <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_without_limit <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_nothing <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_by_failure <<'END'
a clean-up removes what does not wait, longest ago first, up to the limit
END
try cleans_by_looking <<'END'
a clean-up beside a batch in which a message fails again leaves it
END
try all_endpoints_are_one <<'END'
two endpoints share no messages
END
tell
