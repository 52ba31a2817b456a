#!/bin/bash
# run.sh [NAME...]: the charts without a cluster: rendering, values, scripts. Needs helm (on PATH, or HELM) and Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export HELM=${HELM:-$(command -v helm || true)}
[[ -x $HELM ]] || { echo "error: helm is not on PATH; run: eval \"\$(dev/env)\"" >&2; exit 1; }
exec python3 -B runner.py "$@"
