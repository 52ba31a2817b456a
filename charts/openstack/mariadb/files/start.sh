#!/bin/bash
# Start the server. Its data folder appears whole or not at all: the first start prepares it beside its place and
# renames it, so one that is cut short begins again.
set -euo pipefail

volume=/var/lib/mysql
data=$volume/data
new=$volume/data.new

quoted() { # text for a SQL string
  local text=$1
  text=${text//\\/\\\\}
  printf "'%s'" "${text//\'/\\\'}"
}

# Over the network the administrator has a password; inside the pod the server's own system user needs none, for it can
# read all the files anyway.
accounts() {
  local password
  password=$(quoted "$(cat /secrets/password)")
  cat <<SQL
FLUSH PRIVILEGES;
DELETE FROM mysql.global_priv WHERE User NOT IN ('mariadb.sys');
FLUSH PRIVILEGES;
CREATE USER '$ROOT_USER'@'%' IDENTIFIED BY $password;
GRANT ALL PRIVILEGES ON *.* TO '$ROOT_USER'@'%' WITH GRANT OPTION;
CREATE USER '$(id -un)'@'localhost' IDENTIFIED VIA unix_socket;
GRANT ALL PRIVILEGES ON *.* TO '$(id -un)'@'localhost' WITH GRANT OPTION;
SQL
}

prepare() {
  echo "first start: preparing the data folder"
  rm -rf "$new"
  mariadb-install-db --no-defaults --datadir="$new" --skip-test-db --skip-name-resolve >/dev/null
  accounts | mariadbd --no-defaults --datadir="$new" --bootstrap --skip-name-resolve
  sync -f "$volume"
  mv -T "$new" "$data"
  sync -f "$volume"
  echo "first start: the data folder is complete"
}

# After a forced deletion the former pod may still be writing. The server inherits the lock and holds it while it lives.
exec 9>"$volume/lock"
flock --nonblock 9 || echo "waiting for the former server to end"
flock 9
[[ -d $data ]] || prepare
exec mariadbd --defaults-file=/etc/mariadb/my.cnf
