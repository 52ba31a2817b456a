#!/bin/bash
# The backends of a small cloud in one image: MariaDB, RabbitMQ, memcached. Runs inside the tree.
set -euo pipefail

# Charts name these numbers, so they must not depend on the order in which packages are installed.
groupadd --system --gid 101 mysql
useradd --system --uid 100 --gid mysql --home-dir /nonexistent --shell /bin/false mysql
groupadd --system --gid 104 rabbitmq
useradd --system --uid 103 --gid rabbitmq --home-dir /var/lib/rabbitmq --shell /usr/sbin/nologin rabbitmq

apt-get update -q
apt-get install -qy --no-install-recommends mariadb-server mariadb-client rabbitmq-server memcached

# Data and identities are made per cloud, never taken from an image.
rm -rf /var/lib/mysql/* /var/lib/rabbitmq/* /var/lib/rabbitmq/.erlang.cookie /etc/mysql/debian.cnf

# Programs for tables of other engines, benchmarks and the like: a quarter of the size.
(cd /usr/bin && rm aria_{dump_log,ftdump,pack,read_log} myisam_ftdump myisamlog myisampack innochecksum perror replace \
  resolve_stack_dump mariadb-{conv,import,plugin,show,slap,waitpid})

mariadbd --version
memcached --version
test -x /usr/lib/rabbitmq/bin/rabbitmq-server
erl -noshell -eval 'io:format("Erlang ~s~n", [erlang:system_info(otp_release)]), halt().'
[[ $(id -u mysql):$(id -g mysql):$(id -u rabbitmq):$(id -g rabbitmq) == 100:101:103:104 ]]
