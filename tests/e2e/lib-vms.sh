# shellcheck shell=bash
# Text in single quotes is for the shell in the client pod.
# shellcheck disable=SC2016
#
# VMs by the openstack command, on a cluster of dev/k8s/up.sh whose namespace NS has an OpenStack of release RELEASE. The
# machine reaches their virtual networks through node 1. DISK is the VMs' image. Sourced after lib.sh, dev/lib.sh and
# dev/k8s/cluster.sh, never run.

# What runs on every node with VMs.
ON_NODES=(libvirt:libvirt nova:compute nova:ssh ovn:openvswitch-db ovn:openvswitch-vswitchd ovn:controller-gw neutron:ovn-metadata-agent)

k() { kubectl -n "$NS" "$@"; }
in_client() { timeout 300 kubectl -n "$NS" exec client -- bash -euc "$1"; }

# What is replaced on demand only has no rollout that kubectl could follow.
nodes_ready() {
  k get daemonsets -o 'jsonpath={range .items[*]}{.status.desiredNumberScheduled} {.status.numberReady}{"\n"}{end}' |
    awk '$1 != $2 {exit 1}'
}
rolled_out() {
  k get deployments,statefulsets -o name | xargs -n 1 kubectl -n "$NS" rollout status --timeout=300s || return
  within 300 nodes_ready
}

client() {
  k apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
    - name: client
      image: kupenstack.local/openstack:$RELEASE
      command: [sleep, infinity]
      env: [{name: HOME, value: /tmp}]
      envFrom: [{secretRef: {name: keystone-keystone-admin}}]
YAML
  k wait --for=condition=Ready pod/client --timeout=60s
  kubectl -n "$NS" exec -i client -- bash -c 'cat >/tmp/tiny.qcow2' <"$DISK"
}

hypervisors() { in_client 'openstack hypervisor list -f value -c "Hypervisor Hostname" -c State | sort | tr "\n" " "'; }
wanted_hypervisors() { for n in $(running_nodes); do printf 'node%s up ' "$n"; done; }
all_hypervisors() { [ "$(hypervisors)" = "$(wanted_hypervisors)" ]; }

way_outside() { within 60 lead_outside; }
no_way_outside() { ip route del "$OUTSIDE.0/24" 2>/dev/null || true; }

networks() {
  in_client '
    openstack image create --disk-format qcow2 --container-format bare --file /tmp/tiny.qcow2 tiny -f value -c status
    openstack flavor create --ram 128 --vcpus 1 --disk 1 tiny -f value -c id
    openstack network create --external --provider-network-type flat --provider-physical-network public public -f value -c id
    openstack subnet create --network public --subnet-range '$OUTSIDE'.0/24 --gateway '$OUTSIDE'.1 --no-dhcp \
      --allocation-pool start='$OUTSIDE'.50,end='$OUTSIDE'.200 public -f value -c id
    openstack network create demo -f value -c id
    openstack subnet create --network demo --subnet-range 10.77.0.0/24 demo -f value -c id
    openstack router create --external-gateway public demo -f value -c id
    openstack router add subnet demo demo
    openstack security group create demo -f value -c id
    openstack security group rule create --protocol icmp demo -f value -c id
    openstack security group rule create --protocol tcp --dst-port 80 demo -f value -c id'
}

# server N [USER-DATA]: VM N on node N.
server() {
  in_client "
    printf '%s' '${2:-:}' >/tmp/user-data
    openstack server create --flavor tiny --image tiny --network demo --security-group demo --user-data /tmp/user-data \
      --os-compute-api-version 2.95 --host node$1 --wait vm$1 -f value -c status | grep -x ACTIVE"
}

floating_ip() { # sets FIP
  FIP=$(in_client 'ip=$(openstack floating ip create public -f value -c floating_ip_address)
    openstack server add floating ip vm1 $ip; echo $ip')
  [[ $FIP == "$OUTSIDE".* ]]
}

http() { curl -sf -m 2 --noproxy "*" "http://$FIP/"; }
answers() { prints '^hello from vm1' http; }
metadata() { prints '"name": "vm1"' http; }
console() { prints 'TINY: metadata ok' in_client 'openstack console log show vm1'; }
console_page() {
  local url
  url=$(in_client 'openstack console url show vm1 -f value -c url') || return
  in_client "curl -sf -m 5 -o /dev/null '$url'"
}
sibling_ip() { in_client 'openstack server show vm1 -f value -c addresses' | grep -o '10\.77\.0\.[0-9]*'; }
other_node_reached() { prints 'PEER: hello from vm1' in_client 'openstack console log show vm2'; }

# Nova brings a VM with its disk to the other node, where it is to be kept.
moved() {
  in_client '
    from=$(openstack server show vm2 -f value -c OS-EXT-SRV-ATTR:host)
    openstack server migrate --wait vm2
    openstack server migration confirm vm2
    until [ "$(openstack server show vm2 -f value -c status)" = ACTIVE ]; do sleep 1; done
    to=$(openstack server show vm2 -f value -c OS-EXT-SRV-ATTR:host)
    [ "$from" != "$to" ] && echo "from $from to $to"'
}
boots_again() { [ "$(in_client 'openstack console log show vm2' | grep -c "TINY: metadata ok")" -ge 1 ]; }

vm_processes() { pgrep -f 'qemu-system.* -name guest=' | sort || true; }
pods_of_nodes() {
  local pair
  for pair in "${ON_NODES[@]}"; do k get pods -l "application=${pair%%:*},component=${pair#*:}" -o name; done
}

# Ask five times a second while what runs beneath the VM is replaced.
survive() {
  local before asked=0 lost=0 end
  before=$(vm_processes)
  mapfile -t pods < <(pods_of_nodes)
  k delete --wait=false "${pods[@]}"
  end=$((SECONDS + 45))
  while [ $SECONDS -lt $end ]; do
    asked=$((asked + 1))
    curl -sf -m 1 --noproxy '*' -o /dev/null "http://$FIP/" || lost=$((lost + 1))
    sleep 0.2
  done
  echo "$lost of $asked requests lost" >&3
  rolled_out && [ "$before" = "$(vm_processes)" ] && within 20 answers
}

reboot_hard() { in_client 'openstack server reboot --hard --wait vm1' && within 60 answers; }
services_up() { is '' in_client 'openstack compute service list -f value -c State -c Binary | grep -v "^.* up$" || true'; }

servers_gone() { in_client 'for vm in $(openstack server list -f value -c ID); do openstack server delete --wait $vm; done'; }

left_on_nodes() {
  local n
  for n in $(running_nodes); do
    in_node "$n" ip -brief link | awk '/^(br-|ovs-|tap|genev)/ {print $1}'
    in_node "$n" ip netns list | grep ovnmeta- || true
    in_node "$n" find /var/lib/nova /var/lib/libvirt /var/lib/openvswitch -mindepth 1
    grep -q "$TUNNEL_NET" <<<"$(in_node "$n" ip -4 -oneline addr show dev eth1)" || echo "node$n: eth1 has lost its address"
  done
  vm_processes
}

# Hypervisors hold what is the cloud's; only their own pods can take it away.
clean_nodes() {
  local pair pod
  for pair in neutron:ovn-metadata-agent libvirt:libvirt ovn:openvswitch-vswitchd; do
    for pod in $(k get pods -l "application=${pair%%:*},component=${pair#*:}" -o name); do
      k exec "$pod" -- bash /scripts/clean-node.sh || return
    done
  done
}

# Checks: what a cloud with its services up is for.
check_vms() {
  ok "a client pod" client
  ok "every labelled node is a hypervisor" within 90 all_hypervisors
  ok "a way to the network outside" way_outside
  ok "image, flavor, networks, router" networks
  ok "a VM" server 1
  ok "a floating IP" floating_ip
  ok "the VM answers HTTP through it" within 60 answers
  ok "it knows its metadata" metadata
  ok "its console has a log" console
  ok "its console has a page" console_page
  if [ "$(running_nodes | wc -l)" -gt 1 ]; then
    ok "a VM on the second node" server 2 "echo PEER: \$(wget -q -T 5 -O - http://$(sibling_ip)/ | head -n 1)"
    ok "it reaches the first one" within 60 other_node_reached
    ok "it is moved to another node" moved
    ok "where it boots from the disk that it had" within 60 boots_again
  fi
}

message() { k get "$1" "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}'; }
reason() { k get "$1" "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}'; }
says() { grep -qF "$2" <<<"$(message "$1")"; }
compute_pods() { k get pods -l application=nova,component=compute -o name | sort; }
# At every look, one pod at most of those on nodes is away or not ready.
one_at_a_time() {
  local away
  away=$(k get daemonsets -o 'jsonpath={range .items[*]}{.status.desiredNumberScheduled} {.status.numberReady}{"\n"}{end}' |
    awk '{away += $1 - $2} END {print away + 0}')
  [ "$away" -le 1 ] || { echo "$away pods are away" && return 1; }
}
replaced_on_demand() {
  local before deadline=$((SECONDS + 600))
  before=$(compute_pods)
  k annotate nova nova --overwrite "kupenstack.io/replace-pods=$(k get nova nova -o 'jsonpath={.status.revision}')" || return
  until [ "$(reason nova)" = Ready ] && not says nova 'earlier version'; do
    one_at_a_time || return
    [ "$SECONDS" -lt "$deadline" ] || { message nova && return 1; }
  done
  is '' comm -12 <(echo "$before") <(compute_pods)
}
