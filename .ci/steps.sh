# Runs the steps of ./dev: each says what it does and how long it took, and keeps its output in build/log.

say() { printf '%s\n' "$*" >&2; }

die() {
  say "dev: $*"
  exit 1
}

step_group=
ticker=
beside=

# Ends the running step with everything it started, so that an interrupted ./dev leaves nothing behind: first as Ctrl-C would,
# which lets it clean up, and ten seconds later by force.
end_step() {
  local tenths=0
  [[ -z $ticker ]] || kill -- "-$ticker" 2>/dev/null || true
  [[ -z $beside ]] || kill "$beside" 2>/dev/null || true
  if [[ -n $step_group ]] && kill -INT -- "-$step_group" 2>/dev/null; then
    while ((tenths++ < 100)) && kill -0 -- "-$step_group" 2>/dev/null; do sleep 0.1; done
    kill -KILL -- "-$step_group" 2>/dev/null || true
  fi
  [[ -z $beside ]] || wait "$beside" 2>/dev/null || true
  ticker=''
  step_group=''
  beside=''
}
trap end_step EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# progress_of LOG: what CMake, ninja or ctest last said of how far it is, such as "[55/60] "; nothing if it has not.
progress_of() { tail -c 4000 "$1" | grep -oE '\[ *[0-9]+(/[0-9]+|%)\]' | tail -n 1 | sed 's/$/ /'; }

# tick WHAT LOG: keeps the terminal informed each second, or a log file each half minute, until it is killed.
tick() {
  local what=$1 log=$2 seconds=0 room
  while sleep 1; do
    seconds=$((seconds + 1))
    if [[ -t 2 ]]; then
      room=$(($(tput cols 2>/dev/null || echo 100) - ${#what} - 16))
      printf '\r\e[K  … %s (%d s) %.*s' "$what" "$seconds" "$((room > 0 ? room : 0))" \
        "$(tail -c 400 "$log" | tr '\r' '\n' | tr -cd '[:print:]\n' | grep -v '^ *$' | tail -n 1)" >&2
    elif ((seconds % 30 == 0)); then
      say "  … $what ($seconds s) $(progress_of "$log")$log"
    fi
  done
}

# try_step WHAT LOG COMMAND...: runs the command with its output in build/log/LOG.log and returns its status. It gets a process
# group of its own, which a signal to ./dev ends as a whole, and the default handling of SIGINT, which a plain background
# command of a script would not have.
try_step() {
  local what=$1 log=build/log/$2.log status=0 from=$SECONDS
  shift 2
  mkdir -p build/log
  : >"$log"
  set -m
  "$@" >"$log" 2>&1 </dev/null 9>&- &
  step_group=$!
  tick "$what" "$log" 9>&- &
  ticker=$!
  set +m
  wait "$step_group" || status=$?
  step_group=
  kill -- "-$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  ticker=
  [[ ! -t 2 ]] || printf '\r\e[K' >&2
  if ((status == 0)); then
    say "  ✓ $what ($((SECONDS - from)) s)"
  else
    say "  ✗ $what ($((SECONDS - from)) s; exit status $status; all of its output: $log)"
  fi
  return "$status"
}

# step WHAT LOG COMMAND...: the same, but shows the end of the output and ends ./dev if the command fails.
step() {
  try_step "$@" && return
  tail -n 40 "build/log/$2.log" | sed 's/^/    /' >&2
  die "could not finish: $1"
}

# start_beside COMMAND...: runs steps beside the next ones, until await_beside, which ends ./dev if they failed.
start_beside() {
  (
    trap end_step EXIT
    trap 'exit 143' INT TERM HUP
    "$@"
  ) &
  beside=$!
}

await_beside() {
  local status=0
  wait "$beside" || status=$?
  beside=''
  ((status == 0)) || exit "$status"
}

# digest PATH...: one hash of the names and contents of all files below the paths, tests aside; a path need not exist.
digest() {
  { find "$@" -type f -not -name '*.pyc' -not -path '*/tests/*' -print0 2>/dev/null || true; } |
    LC_ALL=C sort -z | xargs -0r sha256sum | sha256sum | cut -c 1-64
}
