#!/bin/bash
# Before the chart is removed, and with no VM left: take the metadata agent's namespaces from the node. To be run in its
# pod. The agent makes anew what it needs.
set -euo pipefail

for namespace in $(ip netns list | awk '/^ovnmeta-/ {print $1}'); do
  echo "namespace $namespace goes"
  ip netns delete "$namespace"
done
