{{- define "ovn.bin" -}}
{{- $files := dict -}}
{{- range $path, $_ := .Files.Glob "files/*" }}{{ $_ := set $files (base $path) ($.Files.Get $path) }}{{ end -}}
{{ toJson $files }}
{{- end -}}

{{/* One database of OVN, its address and its budget. Takes: root, database (nb or sb), port. */}}
{{- define "ovn.database" -}}
{{- $root := .root -}}
{{- $component := printf "ovsdb-%s" .database -}}
{{- $endpoint := index $root.Values.endpoints (printf "ovn_ovsdb_%s" .database) -}}
{{- $key := include "toolkit.key" $component -}}
{{- if index $root.Values.manifests (printf "statefulset_%s" $key) }}
---
{{ include "toolkit.statefulset" (dict "root" $root "component" $component "image" (printf "ovn_%s" $key)
  "command" (list "bash" "/scripts/ovsdb.sh" .database (toString .port))
  "port" (dict "name" "ovsdb" "number" .port)
  "nodes" $endpoint.hosts.default "claim" "data" "volume" $root.Values.volume
  "mounts" (list "bin" "tmp")
  "volumes" (list (dict "name" "data" "mountPath" "/var/lib/ovn") (dict "name" "run" "mountPath" "/run/ovn" "source" (dict "emptyDir" dict)))) }}
{{- end }}
{{- if index $root.Values.manifests (printf "service_%s" $key) }}
---
{{ include "toolkit.service" (dict "root" $root "component" $component "name" $endpoint.hosts.default
  "port" (dict "name" "ovsdb" "number" $endpoint.port.ovsdb.default)) }}
{{- end }}
{{- if index $root.Values.manifests (printf "pdb_%s" $key) }}
---
{{ include "toolkit.pdb" (dict "root" $root "component" $component "name" (printf "ovn-%s" $component)) }}
{{- end }}
{{- end -}}

{{/* Where the databases are: HOST PORT, since the programs of OVN can't look up a name of the cluster. */}}
{{- define "ovn.env.databases" -}}
{{- range $name, $type := dict "OVN_NB" "ovn_ovsdb_nb" "OVN_SB" "ovn_ovsdb_sb" }}
- {name: {{ $name }}, value: "{{ include "toolkit.endpoint.host" (dict "root" $ "type" $type "class" "internal") }} {{ include "toolkit.endpoint.port" (dict "root" $ "type" $type "class" "internal" "port" "ovsdb") }}"}
{{- end }}
{{- end -}}

{{- define "ovn.env.node" -}}
- {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
- {name: NODE_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
- {name: INTEGRATION_BRIDGE, value: {{ .Values.conf.ovn_bridge }}}
- {name: DATAPATH, value: {{ .Values.conf.ovn_bridge_datapath_type }}}
- {name: BRIDGE_MAPPINGS, value: {{ .Values.conf.ovn_bridge_mappings | default "" | quote }}}
- {name: TUNNEL_CARD, value: {{ .Values.network.interface.tunnel | default "" | quote }}}
- {name: ENCAPSULATION, value: {{ .Values.conf.ovn_encap_type }}}
# BRIDGE=CARD, separated by spaces
- {name: BRIDGE_CARDS, value: "{{ range $bridge, $card := .Values.conf.auto_bridge_add }}{{ with $card }}{{ $bridge }}={{ . }} {{ end }}{{ end }}"}
{{- end -}}

{{/* The folders of the node that all programs of the switch share. */}}
{{- define "ovn.volumes.node" -}}
- {name: openvswitch-run, mountPath: /run/openvswitch, source: {hostPath: {path: /run/openvswitch, type: DirectoryOrCreate}}}
- {name: openvswitch-data, mountPath: /etc/openvswitch, source: {hostPath: {path: /var/lib/openvswitch, type: DirectoryOrCreate}}}
- {name: ovn-run, mountPath: /run/ovn, source: {hostPath: {path: /run/ovn, type: DirectoryOrCreate}}}
{{- end -}}

{{- define "ovn.volumes.switch" -}}
{{ include "ovn.volumes.node" . }}
{{- if eq .Values.conf.ovn_bridge_datapath_type "system" }}
- {name: modules, mountPath: /lib/modules, readOnly: true, source: {hostPath: {path: /lib/modules}}}
{{- end }}
{{- end -}}

{{/* Gateways have a DaemonSet of their own when they are some nodes only. Takes: root, gateway (true or false), name. */}}
{{- define "ovn.controller" -}}
{{- $root := .root -}}
{{- $conf := $root.Values.conf -}}
{{- $options := ternary $conf.ovn_cms_options_gw_enabled ($conf.ovn_cms_options | default "") .gateway -}}
{{- $env := concat (include "ovn.env.databases" $root | fromYamlArray) (include "ovn.env.node" $root | fromYamlArray) (list (dict "name" "CMS_OPTIONS" "value" $options)) -}}
{{ include "toolkit.daemonset" (merge (dict "root" $root "component" .component "like" "ovn-controller" "container" "ovn-controller" "image" "ovn_controller"
  "host" (list "network")
  "command" (list "bash" "/scripts/controller.sh") "env" $env
  "preStop" (list "bash" "/scripts/controller-stop.sh")
  "mounts" (list "bin" "tmp") "volumes" (include "ovn.volumes.node" $root | fromYamlArray))
  (dict "affinity" .affinity)) }}
{{- end -}}

{{/* Node affinity that holds, or does not hold, for gateways. Takes: root, operator (In or NotIn). */}}
{{- define "ovn.gateways" -}}
{{- $label := .root.Values.labels.ovn_controller_gw -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - {key: {{ $label.node_selector_key }}, operator: {{ .operator }}, values: [{{ $label.node_selector_value | default "" | quote }}]}
{{- end -}}
