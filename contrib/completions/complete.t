#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Completions are what the program's tables make of them, and work: a bash that reads lines and tabs as from a keyboard
# completes them, and runs them with a waybill that says what it was given. In zsh, too, where there is one.
top_srcdir=${top_srcdir:-.}
top_builddir=${top_builddir:-.}
here=$top_srcdir/contrib/completions
work=$(mktemp -d /tmp/waybill-complete-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
unset WAYBILL_CONF
count=0

ok() { # STATUS TEXT
    count=$((count + 1))
    test "$1" -eq 0 || printf 'not '
    echo "ok $count - $2"
}

is_current() { # SHELL FILE
    "$here/generate" "$1" "$top_builddir/waybill" >"$work/made" || return 1
    cmp -s "$work/made" "$here/$2" && return
    echo "# $2 is not what the program says; run make doc-options"
    return 1
}

# ---- what is typed, and the command that comes of it ---------------------------------------------

wanted=()
typed() { # WHAT WAS TYPED, WANTED: the words that waybill gets
    printf '%b\n' "$1" >>"$work/typed"
    wanted+=("$2")
}

cat >"$work/shop.conf" <<'END_OF_CONF'
endpoints = ( { name = "orders"; handlers = ["./orders.so"]; },
  { name = "billing"; error_queue = "name"; }, { name = "$(touch touched)"; } );
END_OF_CONF
mkdir "$work/with blank"
typed 'waybill chec\t' 'check'
typed 'waybill outbox sw\t' 'outbox sweep'
typed 'waybill delayed --al\tcan\t' 'delayed --all cancel'
typed 'waybill delayed -i sh res\t' 'delayed -i sh reschedule'
typed 'waybill delayed --id=li res\t' 'delayed --id=li reschedule'
typed 'waybill outbox pending --pa\t' 'outbox pending --parked'
typed 'waybill conformance \tp\t' 'conformance persistence'
typed 'waybill uninstall --err\t' 'uninstall --error-queues'
typed 'waybill send --err\t' 'send --err'
typed 'waybill help op\t' 'help options'
typed 'waybill help unin\t' 'help uninstall'
typed 'waybill conformance pers\t--business sh\t' 'conformance persistence --business shop.conf'
typed 'waybill check -c sh\t' 'check -c shop.conf'
typed 'waybill check --config=sh\t' 'check --config=shop.conf'
typed 'waybill check -c wi\t' 'check -c with blank'
typed 'waybill check sh\t' 'check sh'
typed 'waybill run -c shop.conf -e or\t' 'run -c shop.conf -e orders'
typed 'waybill run --config=shop.conf --endpoint=bi\t' 'run --config=shop.conf --endpoint=billing'
typed 'waybill run -c shop.conf -e $\t' 'run -c shop.conf -e $'
typed 'waybill send --delay sh\t' 'send --delay sh'

compare() { # SHELL
    printf '%s\n' "${wanted[@]}" >"$work/wanted"
    sed 's/[ /]*$//' "$work/said" | diff "$work/wanted" - >"$work/differences"
    local status=$?
    sed 's/^/# /' "$work/differences"
    ok $status "$1 completes verbs, options, arguments, files and endpoints"
}

# Blanks at the end, of words that were complete, and a directory's slash are not compared.
completes_in_bash() {
    {
        echo "waybill() { echo \"\$*\" >>said; }"
        echo ". '$(cd "$here" && pwd)/waybill'"
        cat "$work/typed"
    } >"$work/keys"
    : >"$work/said"
    (cd "$work" && INPUTRC=/dev/null HISTFILE='' TERM=dumb bash --norc --noprofile -i <keys >screen 2>&1)
    compare bash
}

# zle wants a terminal, which zpty is. Each line waits for the answer to the one before.
completes_in_zsh() {
    cp "$here/_waybill" "$work/_waybill"
    : >"$work/said"
    cat >"$work/drive" <<'END_OF_DRIVE'
zmodload zsh/zpty
zpty shell "zsh -f -i"
say() { zpty -w shell "$1" }
hear() { local got all=; while zpty -r shell got; do all+=$got; [[ $all == *$~1* ]] && return; done }
say 'fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -d dump; waybill() { echo "$*" >>said }; PS1=; unsetopt beep; echo re''ady'
hear '*ready*'
while IFS= read -r line; do
    zpty -w -n shell "$line"$'\n'
    n=$((n + 1))
    while [[ $(wc -l <said) -lt $n ]] && zpty -t shell; do zpty -r -t shell got; sleep 0.05; done
done <typed
zpty -d shell
END_OF_DRIVE
    (cd "$work" && TERM=dumb zsh -f drive >screen 2>&1)
    compare zsh
}

is_current bash waybill
ok $? "the completion for bash is made from the program's tables"
is_current zsh _waybill
ok $? "the completion for zsh is made from the program's tables"
completes_in_bash
test ! -e "$work/touched"
ok $? "a name in a configuration is no command"
! command -v zsh >/dev/null || completes_in_zsh
echo "1..$count"
