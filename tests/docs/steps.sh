# shellcheck shell=bash
# shellcheck disable=SC2154  # `work`, `root` and `entry` are set by the scripts that source this, and by `entrance`
# The steps of a document (tests/docs/blocks.py), run in order. Sourced after tests/checks.sh, never run. The script that
# sources this defines
#   entrance MACHINE         sets `entry`, the command before commands that run there
#   place MACHINE:PATH       prints the path as this script sees it

# read_steps DOCUMENT [OPTION]: sets `steps`, the folder that has them.
read_steps() {
  document=$1 steps=$work/steps
  rm -rf "$steps"
  python3 "$root/tests/docs/blocks.py" "${@:2}" --steps "$steps" "$root/$document" || fail "$document is not one that can be run"
}

# run_block STEP: where and how long.
run_block() {
  local machine shows begin=$SECONDS log=$1/log
  machine=$(<"$1/machine") shows=$(<"$1/shows") where="$document:$(<"$1/line") on $(<"$1/machine")"
  cp "$1/text" "$(place "$machine:/run-block")"
  if [[ -s "$1/until" || -s "$1/stays" ]]; then
    run_until "$1" "$log"
  else
    entrance "$machine"
    "${entry[@]}" timeout "$(<"$1/seconds")" bash -euo pipefail -c 'cd; source /run-block' >"$log" 2>&1 ||
      fail "$where ended with $?: $(<"$1/text")" "$log"
  fi
  [[ -z "$shows" ]] || grep -qF -- "$shows" "$log" || fail "$where did not show '$shows'" "$log"
  say "ok: $where, $((SECONDS - begin)) s"
  sed 's/^/    /' "$log"
}

# run_until STEP LOG: interrupted, as with Ctrl-C, once its text of `until` is in LOG; left alone with `stays`.
run_until() {
  local session text seconds deadline
  text=$(<"$1/until")$(<"$1/stays") seconds=$(<"$1/seconds") deadline=$((SECONDS + $(<"$1/seconds")))
  entrance "$(<"$1/machine")"
  # The shell's background jobs ignore Ctrl-C otherwise.
  setsid env --default-signal=INT "${entry[@]}" bash -euo pipefail -c 'cd; source /run-block' >"$2" 2>&1 &
  session=$!
  until grep -qF -- "$text" "$2"; do
    kill -0 "$session" 2>/dev/null || fail "$where ended before it showed '$text'" "$2"
    [[ $SECONDS -lt $deadline ]] || fail "$where did not show '$text' in $seconds s" "$2"
    sleep 0.2
  done
  [[ ! -s "$1/stays" ]] || return 0
  pkill -INT --session "$session" || true
  wait "$session" || true
}

# clone FOLDER: what git knows of this tree, as it is now.
clone() {
  mkdir -p "$1"
  git -C "$root" ls-files -z | (cd "$root" && xargs -0 cp --parents --target-directory "$1")
}

bring() {
  local from to
  { read -r from && read -r to; } <"$1/text"
  if [[ "$from" == source:* ]]; then
    clone "$(place "$to")"
  else
    cp -r --no-target-directory "$(place "$from")" "$(place "$to")"
  fi || fail "$document:$(<"$1/line"): could not bring $from to $to"
  say "brought $from to $to"
}

# run_steps: those of read_steps.
run_steps() {
  local step
  for step in "$steps"/[0-9]*; do
    case "$(<"$step/kind")" in
      run) run_block "$step" ;;
      bring) bring "$step" ;;
      skip) say "not run: $document:$(<"$step/line"), $(<"$step/text")" ;;
    esac
  done
}
