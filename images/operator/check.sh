#!/bin/bash
# The programs must run on the base's libraries, not only on those of the machine that built them.
set -euo pipefail

kupenstack --version
helm version --short
for chart in /usr/share/kupenstack/charts/*; do helm show chart "$chart" > /dev/null; done
