#!/bin/bash
# Start the broker. Its data belongs to its name, so the name has to resolve first.
set -euo pipefail

export HOME=/var/lib/rabbitmq
host=${RABBITMQ_NODENAME#*@}

umask 077
install -m 400 /etc/rabbitmq/erlang.cookie "$HOME/.erlang.cookie"
umask 022
until getent hosts "$host" >/dev/null; do
  echo "waiting for the name $host"
  sleep 1
done
exec /usr/lib/rabbitmq/bin/rabbitmq-server
