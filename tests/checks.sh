# shellcheck shell=bash
# shellcheck disable=SC2154  # `work` is set by the script that sources this
# Functions that the tests in shell share: steps that are timed, and checks. Sourced after deploy/lib.sh, never run. The
# script that sources this sets `work`, a scratch folder.

readonly PATIENCE=300  # seconds for anything that must happen

# step TEXT: what follows belongs to it; says how long the step before took.
step() {
  [[ -z "${step_text:-}" ]] || say "$step_text: $((SECONDS - step_begin)) s"
  step_text=$1 step_begin=$SECONDS
}

# check TEXT COMMAND...: fails with the text unless the command succeeds.
check() {
  local text=$1
  shift
  "$@" >"$work/check.log" 2>&1 || fail "not true: $text ('$*' ended with $?)" "$work/check.log"
  say "ok: $text"
}

# soon TEXT COMMAND...: as check, but it may become true only after a while.
soon() {
  local text=$1 deadline=$((SECONDS + PATIENCE))
  shift
  until "$@" >"$work/check.log" 2>&1; do
    [[ $SECONDS -lt $deadline ]] || fail "not true after $PATIENCE s: $text ('$*')" "$work/check.log"
    sleep 0.2
  done
  say "ok: $text"
}
