#!/bin/bash
# Take disks of VMs that other hypervisors bring. As a user that may write to VMs' folders and nothing else on the node.
set -euo pipefail

name=$(id -un 2>/dev/null) || name=
if [[ $name != nova ]]; then
  echo "user $(id -u) is not nova in this image, who it is that other hypervisors connect as." \
    "Set pod.security_context.nova.pod.runAsUser to nova's number in the image" >&2
  exit 1
fi

cat >/tmp/sshd_config <<CONFIG
ListenAddress $NODE_IP
Port $SSH_PORT
HostKey $SSH_SERVER_DIR/host_key
AuthorizedKeysFile $SSH_SERVER_DIR/authorized_keys
AuthenticationMethods publickey
# Its folder is not its own.
StrictModes no
UsePAM no
PidFile none
DisableForwarding yes
PermitTTY no
PermitUserRC no
Subsystem sftp internal-sftp
# Probes connect and say nothing.
LogLevel ERROR
CONFIG
exec /usr/sbin/sshd -D -e -f /tmp/sshd_config
