#!/bin/bash
# The switch's database. It lies on the node: bridges and the node's identity outlive pods.
set -euo pipefail

file=/etc/openvswitch/conf.db
schema=/usr/share/openvswitch/vswitch.ovsschema

if [[ ! -e $file ]]; then
  rm -f "$file.new"
  ovsdb-tool create "$file.new" "$schema"
  mv -T "$file.new" "$file"
elif [[ $(ovsdb-tool needs-conversion "$file" "$schema") == yes ]]; then
  ovsdb-tool convert "$file" "$schema"
fi
exec ovsdb-server --remote=punix:/run/openvswitch/db.sock --unixctl=/run/openvswitch/ovsdb-server.ctl \
  --pidfile=/run/openvswitch/ovsdb-server.pid "$file"
