#!/bin/bash
# run.sh: the operator's chart without a cluster. Needs helm (on PATH, or HELM) and Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export HELM=${HELM:-$(command -v helm || true)}
[[ -x $HELM ]] || { echo "error: helm is not on PATH; run: eval \"\$(dev/env)\"" >&2; exit 1; }
PYTHONPATH=$PWD exec python3 -B ../charts/runner.py test_operator
