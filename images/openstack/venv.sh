#!/bin/bash
# venv.sh LOCK: every service of a release in /opt/openstack, the only folder kept. Runs inside the tree.
set -euo pipefail

lock=$1 venv=/opt/openstack
export UV_CACHE_DIR=/srv/uv UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never PIP_CACHE_DIR=/srv/pip

apt-get update -q
apt-get install -qy --no-install-recommends python3-venv
python3 -m venv /root/uv
/root/uv/bin/pip install --disable-pip-version-check uv==0.13.9
uv=/root/uv/bin/uv

"$uv" venv --python /usr/bin/python3 "$venv"
# The few packages without wheels are built with the tools that the lock names, not with whatever is newest.
VIRTUAL_ENV=$venv "$uv" pip install --require-hashes --build-constraints "$lock" -r "$lock"

# A quarter of the files and of the size, and imported by no service.
find "$venv/lib" -type d -name tests -prune -exec rm -r {} +

# Not by file times, which packing cuts to one date.
"$venv/bin/python" -m compileall -q -j 0 --invalidation-mode unchecked-hash "$venv/lib"

# A broken wheel or a missing library shows here, not in a cluster.
export PATH=$venv/bin:$PATH
for command in keystone-manage glance-manage placement-manage nova-manage openstack uwsgi; do
  printf '%s ' "$command"
  "$command" --version
done
neutron-db-manage --help > /dev/null
python -c 'import keystone.wsgi, glance.wsgi, placement.wsgi, nova.wsgi, neutron.wsgi, pymemcache, pymysql'
