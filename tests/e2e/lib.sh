# shellcheck shell=bash
# What the end-to-end scripts share: counted checks and waiting by watch. Sourced, never run. They work on the
# cluster that KUBECONFIG names, with kubectl on PATH (`eval "$(dev/env)"` gives both).

PASSED=0
FAILED=0
OUTPUT=$(mktemp)
: "${KUBECONFIG:?is not set; run: eval \"\$(dev/env)\"}"

# ok NAME COMMAND...: one check; on failure the end of its output is shown.
ok() {
  local name=$1 start
  shift
  start=$(date +%s%3N)
  if "$@" >"$OUTPUT" 2>&1; then
    PASSED=$((PASSED + 1))
    printf 'ok   %s (%d ms)\n' "$name" $(($(date +%s%3N) - start))
  else
    FAILED=$((FAILED + 1))
    printf 'FAIL %s\n' "$name"
    tail -n 12 "$OUTPUT" | sed 's/^/     /'
  fi
}

# within SECONDS COMMAND...: look again until it succeeds, for what can't be watched.
within() {
  local end=$(($(date +%s) + $1))
  shift
  until "$@"; do
    [ "$(date +%s)" -lt "$end" ] || return 1
    sleep 0.2
  done
}

not() { ! "$@"; }

# prints PATTERN COMMAND...: whether a command succeeds and prints a line that fits. Not by a pipe: grep ends it as soon as it has
# found something, and a command whose output is not read any more fails.
prints() {
  local pattern=$1 printed
  shift
  printed=$("$@") && grep -q "$pattern" <<<"$printed"
}

OPERATOR=kupenstack-system # its namespace

# operator_pod cloud|resources: the one of the replicas that works, as the lease names it (a suffix tells its restarts
# apart); fails while none does.
operator_pod() {
  local holder
  holder=$(kubectl -n "$OPERATOR" get lease "kupenstack-$1" -o 'jsonpath={.spec.holderIdentity}') || return
  [ -n "$holder" ] && echo "${holder%_*}"
}

# is EXPECTED COMMAND...: the command's output is exactly this.
is() {
  local expected=$1 actual
  shift
  actual=$("$@") || return
  [ "$actual" = "$expected" ] || {
    printf 'expected: %s\nactual:   %s\n' "$expected" "$actual"
    return 1
  }
}

# finish: the closing line; the script's result.
finish() {
  rm -f "$OUTPUT"
  printf '%d passed, %d failed\n' "$PASSED" "$FAILED"
  [ "$FAILED" = 0 ]
}
