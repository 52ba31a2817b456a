#!/bin/bash
# lock.sh RELEASE...: resolve the services of a release as on its date and write lock-RELEASE.txt beside this file.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

# A date two weeks after the release: the package index as it was then is the set that the release was tested with.
services_of() {
  case $1 in
    2026.1) until=2026-04-15 services=("keystone==29.*" "glance==32.*" "openstack-placement==15.*" "nova==33.*" "neutron==28.*") ;;
    2026.2) until=2026-10-15 services=("keystone==30.*" "glance==33.*" "openstack-placement==16.*" "nova==34.*" "neutron==29.*") ;;
    *) echo "no services are known for release $1" >&2 && return 1 ;;
  esac
}

# Clients, drivers of the database and the cache, and the web server, as a wheel so that no compiler is needed.
# OpenStack is not tested with SQLAlchemy 2.1.
common=(python-openstackclient osc-placement pymysql pymemcache python-memcached pyuwsgi 'sqlalchemy<2.1')

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install -q uv==0.13.9

for release; do
  services_of "$release"
  printf '%s\n' "${services[@]}" "${common[@]}" |
    "$tools/bin/uv" pip compile -q --python-version 3.13 --python-platform x86_64-manylinux_2_40 --exclude-newer "$until" \
      --generate-hashes --no-annotate --no-header - -o "lock-$release.txt"
  echo "lock-$release.txt: $(grep -c == "lock-$release.txt") packages"
done
