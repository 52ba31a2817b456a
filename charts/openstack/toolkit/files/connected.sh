#!/bin/bash
# connected.sh PORT: is there a connection from this pod to PORT of another one? For workers, which nobody can ask.
printf -v port '%04X' "$1"
exec grep -qsE "^ *[0-9]+: [0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:$port 01 " /proc/net/tcp /proc/net/tcp6
