#!/bin/bash
# ovsdb.sh nb|sb PORT: one database of OVN. Its file appears whole or not at all.
set -euo pipefail

name=$1 port=$2
file=/var/lib/ovn/$name.db
schema=/usr/share/ovn/ovn-$name.ovsschema

if [[ ! -e $file ]]; then
  rm -f "$file.new"
  ovsdb-tool create "$file.new" "$schema"
  mv -T "$file.new" "$file"
elif [[ $(ovsdb-tool needs-conversion "$file" "$schema") == yes ]]; then
  echo "the schema is older than this version's: converting"
  ovsdb-tool convert "$file" "$schema"
fi
exec ovsdb-server --remote="ptcp:$port:0.0.0.0" --unixctl=/run/ovn/ovsdb.ctl "$file"
