# shellcheck shell=bash
# What a user declares in a namespace, on a cloud with Nova and Neutron: it comes, is what is declared, is not touched again,
# and goes with the namespace. Sourced after lib-vms.sh, never run.

SHOP=shop
EXAMPLES=$HERE/../../examples

shop() { kubectl -n "$SHOP" "$@"; }

# What others are needed for comes first.
shop_opens() {
  kubectl create namespace "$SHOP" && kubectl apply -f "$EXAMPLES/flavor.yaml" || return
  shop apply -f "$EXAMPLES/port.yaml" -f "$EXAMPLES/subnet.yaml" -f "$EXAMPLES/security-group.yaml" || return
  shop apply -f - <<'YAML'
apiVersion: kupenstack.io/v1
kind: Subnet
metadata: {name: six}
spec: {network: network-sample, cidr: "fd00:77::/64", ipv6Mode: SLAAC}
---
apiVersion: kupenstack.io/v1
kind: Subnet
metadata: {name: full}
spec:
  network: network-sample
  cidr: 10.20.0.0/24
  gateway: 10.20.0.9
  dhcp: false
  dnsServers: [10.9.9.9, 10.8.8.8]
  allocationPools: [{start: 10.20.0.50, end: 10.20.0.60}, {start: 10.20.0.20, end: 10.20.0.30}]
  hostRoutes: [{destination: 10.99.0.0/16, nextHop: 10.20.0.7}]
---
apiVersion: kupenstack.io/v1
kind: SecurityGroup
metadata: {name: db}
spec: {ingress: [{protocol: TCP, port: 3306, group: web}, {group: all-sorts, ipFamily: IPv4}]}
---
apiVersion: kupenstack.io/v1
kind: SecurityGroup
metadata: {name: all-sorts}
spec:
  description: every way to write a rule
  stateful: false
  ingress:
    - {protocol: ICMP}
    - {protocol: ICMP, icmpType: 8, icmpCode: 0, ipFamily: IPv4}
    - {protocol: "47", cidr: 10.1.0.0/16}
    - {protocol: TCP, port: 1, endPort: 65535, cidr: 10.0.0.0/8}
    - {protocol: "17", cidr: 0.0.0.0/0}
    - {protocol: SCTP, port: 36412, group: db, ipFamily: IPv6}
  egress:
    - {protocol: UDP, port: 53, endPort: 60, cidr: "fd00::/8"}
    - {cidr: "::/0"}
YAML
}
no_network() {
  shop wait subnet/full --timeout=60s --for='jsonpath={.status.conditions[?(@.type=="Ready")].message}=Network network-sample does not exist'
}
network_comes() { shop apply -f "$EXAMPLES/network.yaml"; }
shop_ready() {
  kubectl wait --for=condition=Ready flavor/small --timeout=120s &&
    shop wait --for=condition=Ready network --all --timeout=120s &&
    shop wait --for=condition=Ready subnet --all --timeout=120s &&
    shop wait --for=condition=Ready securitygroup --all --timeout=120s &&
    shop wait --for=condition=Ready port.kupenstack.io --all --timeout=120s
}

rules_in_neutron() {
  in_client "openstack security group rule list $(shop get securitygroup "$1" -o 'jsonpath={.status.id}') -f value -c ID | wc -l"
}
rule_goes() {
  shop patch securitygroup web --type json -p '[{"op": "remove", "path": "/spec/ingress/0"}]'
  shop wait --for=jsonpath='{.status.rules}'=6 securitygroup/web --timeout=60s && is 6 rules_in_neutron web
}

# has SHOWN PART...: what Neutron shows, without blanks, has all of the parts.
has() {
  local shown=$1 part
  shift
  for part; do grep -qF "$part" <<<"$shown" || { echo "$shown lacks $part" && return 1; }; done
}
subnet_shows() { in_client "openstack subnet show $(shop get subnet full -o 'jsonpath={.status.id}') -f json" | tr -d ' \n'; }
subnet_is() {
  has "$(subnet_shows)" '"gateway_ip":"10.20.0.9"' '"enable_dhcp":false' '"start":"10.20.0.20","end":"10.20.0.30"' \
    '"destination":"10.99.0.0/16"' '"dns_nameservers":["10.9.9.9","10.8.8.8"]'
}
subnet_changes() {
  shop patch subnet full --type merge \
    -p '{"spec": {"gateway": "None", "dhcp": null, "hostRoutes": null, "allocationPools": [{"start": "10.20.0.50", "end": "10.20.0.70"}]}}'
  within 60 subnet_is_changed
}
subnet_is_changed() {
  has "$(subnet_shows)" '"gateway_ip":null' '"enable_dhcp":true' '"host_routes":[]' \
    '"allocation_pools":[{"start":"10.20.0.50","end":"10.20.0.70"}]'
}
port() { shop get port.kupenstack.io port-sample -o "jsonpath={.status.$1}"; }
port_is() {
  local shown
  shown=$(in_client "openstack port show $(port id) -f json" | tr -d ' \n') || return
  has "$shown" "\"mac_address\":\"$(port macAddress)\"" "\"ip_address\":\"$(port 'addresses[0]')\"" \
    "\"security_group_ids\":[\"$(shop get securitygroup web -o 'jsonpath={.status.id}')\"]"
}
# A VM of the command line at a port of Kubernetes, which is kept while there is the VM. Nova takes a port of the VM's own
# project only.
vm_at_port() {
  in_client "openstack role add --user admin --project $SHOP member; openstack image set --public tiny"
  in_client "openstack --os-project-name $SHOP server create --flavor tiny --image tiny --port $(port id) --wait vm-at-port -f value -c status | grep -x ACTIVE" &&
    shop wait port.kupenstack.io/port-sample --for='jsonpath={.status.state}=ACTIVE' --timeout=120s || return
  shop delete port.kupenstack.io port-sample --wait=false
  shop wait port.kupenstack.io/port-sample --timeout=60s --for='jsonpath={.status.conditions[?(@.type=="Ready")].reason}=InUse' &&
    in_client "openstack --os-project-name $SHOP server delete --wait vm-at-port" &&
    shop wait --for=delete port.kupenstack.io/port-sample --timeout=120s
}
port_comes_again() { shop apply -f "$EXAMPLES/port.yaml" && shop wait port.kupenstack.io/port-sample --for=condition=Ready --timeout=60s; }
network_in_use() {
  shop delete network network-sample --wait=false
  shop wait network/network-sample --timeout=60s --for='jsonpath={.status.conditions[?(@.type=="Ready")].reason}=InUse' &&
    shop get network network-sample -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}' |
    grep -Fx 'used by Port port-sample, Subnet full, Subnet six, Subnet subnet-sample'
}

no_repairs() {
  local told
  told=$(shop get events -o 'jsonpath={range .items[*]}{.reason}{"\n"}{end}') || return
  grep -qx Ready <<<"$told" && not grep -x DriftRepaired <<<"$told"
}
shop_closes() {
  kubectl delete namespace "$SHOP" --timeout=180s && kubectl delete flavor small --timeout=60s || return
  is '' in_client 'openstack network list --name network-sample -f value; openstack flavor list --all -f value -c Name | grep -x small || true
    openstack subnet list -f value -c Name | grep -x -e full -e six -e subnet-sample || true
    openstack security group list -f value -c Name | grep -x -e web -e all-sorts -e db || true'
}
shop_cleans_up() { kubectl delete namespace "$SHOP" --ignore-not-found --wait=false >/dev/null || true; }

check_shop_opens() {
  ok "a namespace declares a flavor, subnets, security groups" shop_opens
  ok "subnets wait for their network, by its name" no_network
  ok "which comes" network_comes
  ok "and so does everything" shop_ready
  ok "Neutron has the rules, one for each family" is 8 rules_in_neutron web
  ok "of all sorts" is 9 rules_in_neutron all-sorts
  ok "and those for other groups" is 5 rules_in_neutron db
  ok "a rule that is declared no more goes" rule_goes
  ok "a subnet has what is declared" subnet_is
  ok "and what is declared then" subnet_changes
  ok "a port has its MAC, its address and its group" port_is
  ok "a port that a VM is at stays until the VM is gone" vm_at_port
  ok "and can be made anew" port_comes_again
}
check_shop_closes() {
  ok "k-orc 852: nothing that is declared was made right again" no_repairs
  ok "a network with subnets is kept, and names them" network_in_use
  ok "what was declared goes with its namespace" shop_closes
}
