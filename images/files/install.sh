#!/bin/bash
# The web server's program, static so that it needs no base. Runs inside the tree.
set -euo pipefail

apt-get update -q
apt-get install -qy --no-install-recommends busybox-static
# grep -q would leave before busybox has said all, which then fails
busybox httpd --help 2>&1 | grep foreground
