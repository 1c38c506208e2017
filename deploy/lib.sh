# shellcheck shell=bash
# Functions that deploy/demo.sh, deploy/fleet.sh and the examples share: messages, run files and run folders. Sourced,
# never run.
# The script that sources this sets TERSE_PROGRAM, the name in front of its messages.

# fail TEXT [LOG]: one clear line, after the end of LOG, and out.
fail() {
  if [[ -n "${2:-}" && -s "$2" ]]; then
    printf -- '--- the end of %s ---\n' "$2" >&2
    tail -n 12 "$2" >&2
    printf -- '---\n' >&2
  fi
  printf '%s: %s\n' "$TERSE_PROGRAM" "$1" >&2
  exit 1
}

say() {
  printf '%s: %s\n' "$(basename "$TERSE_PROGRAM" .sh)" "$1"
}

# value_of OPTION [VALUE]: the value, or out when there is none.
value_of() {
  [[ $# -ge 2 && -n "$2" ]] || fail "$1 needs a value; see $TERSE_PROGRAM --help"
  printf '%s' "$2"
}

# unknown_argument WORD: out, with the option that was probably meant.
unknown_argument() {
  [[ "$1" != --run && "$1" != --run=* ]] ||
    fail "there is no option --run; did you mean '--run-file'? see $TERSE_PROGRAM --help"
  fail "unknown argument '$1'; see $TERSE_PROGRAM --help"
}

# absolute PATH: without a link to resolve, and whether it exists or not.
absolute() {
  realpath -ms -- "$1"
}

# run_file_value FILE TABLE KEY: the value of KEY in [TABLE] ('' is the top of the file), without quotes; empty when
# it is not given. Reads the plain `key = value` lines of TOML, which is how run files are written.
run_file_value() {
  awk -v table="$2" -v key="$3" '
    /^[ \t]*\[/ { here = $0; gsub(/[][ \t]|#.*/, "", here); next }
    here == table && $0 ~ "^[ \t]*" key "[ \t]*=" {
      sub(/^[^=]*=[ \t]*/, ""); sub(/[ \t]*#.*$/, ""); gsub(/^["'\'']|["'\''][ \t]*$/, ""); print; exit
    }' "$1"
}

# run_file_set FILE TABLE KEY VALUE: writes FILE to standard output with that one line set, in place or below the
# table's head; fails when [TABLE] is absent.
run_file_set() {
  awk -v table="$2" -v key="$3" -v value="$4" '
    { line[NR] = $0 }
    /^[ \t]*\[/ { here = $0; gsub(/[][ \t]|#.*/, "", here); if (here == table) head = NR }
    here == table && $0 ~ "^[ \t]*" key "[ \t]*=" { given = NR }
    END {
      if (!given && !head && table != "") exit 1
      if (!given && table == "") print key " = " value
      for (i = 1; i <= NR; ++i) {
        print i == given ? key " = " value : line[i]
        if (!given && i == head) print key " = " value
      }
    }' "$1"
}

# check_inputs RUN_FILE DATA CLIENTS: what a user can get wrong, before anything is built or started.
check_inputs() {
  [[ -f "$1" && -r "$1" ]] || fail "--run-file: no run file '$1'; those that come with Terse are in deploy/runs"
  [[ -z "$2" || -d "$2" ]] || fail "--data: no folder '$2'; leave --data out to use the embedded digits"
  [[ -z "$3" || "$3" =~ ^[1-9][0-9]{0,4}$ ]] || fail "--clients must be a number from 1 to 99999, not '$3'"
}

# run_file_clients FILE [RELAYS]: how many clients the run is for: 4 when it says nothing. With relays these are the parts of
# the data, where the file says how many there are.
run_file_clients() {
  local clients=''
  [[ -z "${2:-}" ]] || clients=$(run_file_value "$1" data shards)
  [[ "$clients" =~ ^[1-9] ]] || clients=$(run_file_value "$1" rounds clients)
  printf '%s' "${clients:-4}"
}

# check_relays RELAYS CLIENTS: whether there can be so many relays, or none.
check_relays() {
  [[ -z "$1" || "$1" =~ ^[1-9][0-9]{0,2}$ ]] || fail "--relays must be a number from 1 to 999, not '$1'"
  [[ -z "$1" || "$1" -le "$2" ]] || fail "$1 relays need $1 clients or more, and there are $2; see --clients"
}

# adjusted_run_file FILE NAME CLIENTS [RELAYS]: FILE with the run's name and the number of its clients, otherwise as it is.
# With relays it is they whom the run counts as its clients, and the clients' number is that of the data's parts, where the
# data is cut.
adjusted_run_file() {
  local text members=${4:-$3}
  text=$(<"$1")
  if [[ "$(run_file_value "$1" '' name)" != "$2" ]]; then
    text=$(run_file_set <(printf '%s\n' "$text") '' name "\"$2\"")
  fi
  if [[ "$(run_file_value "$1" rounds clients)" != "$members" ]]; then
    text=$(run_file_set <(printf '%s\n' "$text") rounds clients "$members") || fail "'$1' has no table [rounds]; add one"
  fi
  if [[ -n "${4:-}" && "$(run_file_value "$1" data partition)" != all ]]; then
    text=$(run_file_set <(printf '%s\n' "$text") data shards "$3") || fail "'$1' has no table [data]; add one"
  fi
  printf '%s\n' "$text"
}

# run_file_with_model FILE MODEL: FILE as one that trains the TorchScript module MODEL.
run_file_with_model() {
  local hash text
  hash=$(sha256sum <"$2" | cut -d ' ' -f 1)
  text=$(run_file_set "$1" model name '"torchscript"') || fail "'$1' has no table [model]; add one"
  run_file_set <(printf '%s\n' "$text") model hash "\"$hash\""
}

# open_run_folder OUT NAME FILE CLIENTS DATA [RELAYS]: sets run_folder and run_name, and says which folder it is. A folder of
# that name is resumed when it holds the same run, unfinished and of nobody else; otherwise NAME-2, NAME-3 ... is taken.
# The folder stays locked until this process and its children end.
open_run_folder() {
  local out=$1 name=$2 file=$3 clients=$4 data=${5:-embedded} number=1 wanted
  [[ "$name" =~ ^[A-Za-z0-9._-]{1,58}$ && "$name" != .* ]] ||
    fail "'$name' cannot name a run: letters, digits, '-', '_' and '.', at most 58, and no '.' in front; use --name"
  if ! mkdir -p "$out" 2>/dev/null || [[ ! -w "$out" ]]; then
    fail "--out: cannot write into '$out'"
  fi
  wanted=$(mktemp -t terse-run.XXXXXX)
  while true; do
    run_name=$name
    [[ $number -eq 1 ]] || run_name=$name-$number
    run_folder=$out/$run_name
    adjusted_run_file "$file" "$run_name" "$clients" "${6:-}" >"$wanted"
    if mkdir "$run_folder" 2>/dev/null; then
      lock_run_folder
      cat "$wanted" >"$run_folder/run.toml"
      printf '%s\n' "$data" >"$run_folder/data.txt"
      say "new run in $run_folder"
      break
    elif resumable "$wanted" "$data" && lock_run_folder; then
      say "resuming the unfinished run in $run_folder"
      break
    fi
    number=$((number + 1))
  done
  [[ $number -eq 1 ]] ||
    say "$out/$name stays as it is: it holds a finished run, another one, or one that is still going"
  rm -f "$wanted"
}

resumable() {
  [[ -d "$run_folder" && ! -e "$run_folder/summary.json" ]] || return 1
  cmp -s "$1" "$run_folder/run.toml" && [[ "$(cat "$run_folder/data.txt" 2>/dev/null)" == "$2" ]]
}

lock_run_folder() {
  exec {run_lock}>"$run_folder/.lock"
  flock --nonblock "$run_lock"
}
