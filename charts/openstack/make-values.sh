#!/bin/bash
# make-values.sh FILE: write the passwords that the charts need, random, into a new file that serves all of them.
set -euo pipefail

random() { head -c 24 /dev/urandom | base64 -w0 | tr '+/' '-_'; }

values() {
  cat <<YAML
# Passwords of one cloud, for every chart of this folder. Keep it: an upgrade needs the same ones.
endpoints:
  oslo_db:
    auth:
      admin: {password: "$(random)"}
      keystone: {password: "$(random)"}
      glance: {password: "$(random)"}
      placement: {password: "$(random)"}
      neutron: {password: "$(random)"}
      nova: {password: "$(random)"}
  identity:
    auth:
      admin: {password: "$(random)"}
      glance: {password: "$(random)"}
      placement: {password: "$(random)"}
      neutron: {password: "$(random)"}
      nova: {password: "$(random)"}
  oslo_cache:
    auth: {memcache_secret_key: "$(random)"}
  oslo_messaging:
    auth:
      erlang_cookie: "$(random)"
      neutron: {password: "$(random)"}
      nova: {password: "$(random)"}
  compute_metadata:
    auth:
      proxy: {password: "$(random)"}
  compute_ssh:
    auth:
      nova: {password: "$(random)"}
YAML
}

main() {
  local file=${1:?usage: make-values.sh FILE}
  [[ ! -e $file ]] || { echo "$file exists: it may hold the passwords of a running cloud" >&2; exit 1; }
  (umask 077 && values > "$file")
  echo "passwords are in $file"
}

main "$@"
