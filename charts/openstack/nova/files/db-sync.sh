#!/bin/bash
# The schemas of all databases, and the two cells: cell0, which holds VMs that no cell took, and cell1, which runs them.
# A cell is stored as a pattern that is filled from nova.conf, so that it follows a changed password or host.
set -euo pipefail

database() { echo "{scheme}://{username}:{password}@{hostname}:{port}/$1?{query}"; }
broker='{scheme}://{username}:{password}@{hostname}:{port}/{path}'

# An empty list of cells, or a table of them: UUIDs are what begins a row.
cell() { nova-manage cell_v2 list_cells 2>/dev/null | awk -F ' *[|] *' -v name="$1" '$2 == name {print $3}'; }

nova-manage api_db sync
nova-manage cell_v2 map_cell0 --database_connection "$(database "${CELL0#/}")"
uuid=$(cell cell1)
if [[ $uuid ]]; then
  nova-manage cell_v2 update_cell --cell_uuid "$uuid" --name cell1 --database_connection "$(database '{path}')" --transport-url "$broker"
else
  nova-manage cell_v2 create_cell --name cell1 --database_connection "$(database '{path}')" --transport-url "$broker"
fi
nova-manage db sync
