{{/* neutron.conf: what the user gave, over what follows from the rest of the values. */}}
{{- define "neutron.conf" -}}
{{- $computed := include "toolkit.config.pointers" (dict "root" .) | fromJson -}}
{{- $database := include "toolkit.endpoint.lookup" (dict "map" .Values.endpoints.oslo_db.path "class" "neutron") -}}
{{- $_ := set $computed "database" (dict "connection" (include "toolkit.endpoint.database" (dict "root" . "user" "neutron" "database" $database))) -}}
{{- $_ := set $computed "keystone_authtoken" (include "toolkit.identity.authtoken" . | fromJson) -}}
{{- $client := include "toolkit.identity.client" . | fromJson -}}
{{- $_ := set $computed "nova" (set (omit $client "valid_interfaces") "endpoint_type" "internal") -}}
{{- $_ := set $computed "placement" $client -}}
{{- $_ := set $computed "DEFAULT" (merge (dict "transport_url" (include "toolkit.endpoint.transport" .)) ($computed.DEFAULT | default dict)) -}}
{{- $conf := include "toolkit.oslo.under" (dict "user" .Values.conf.neutron "computed" $computed) | fromJson -}}
{{- if .Values.conf.paste }}{{ $_ := set $conf.DEFAULT "api_paste_config" "/etc/neutron/api-paste.ini" }}{{ end -}}
{{ include "toolkit.oslo" (dict "conf" $conf "at" "conf.neutron") }}
{{- end -}}

{{- define "neutron.etc" -}}
{{- $files := include "toolkit.config.common" (dict "root" .) | fromJson -}}
{{- $_ := set $files "neutron.conf" (include "neutron.conf" .) -}}
{{- $_ := set $files "ml2_conf.ini" (include "toolkit.oslo" (dict "conf" .Values.conf.plugins.ml2_conf "at" "conf.plugins.ml2_conf")) -}}
{{- $_ := set $files "uwsgi.ini" (include "toolkit.oslo" (dict "conf" .Values.conf.neutron_api_uwsgi "at" "conf.neutron_api_uwsgi")) -}}
{{- with .Values.conf.paste }}{{ $_ := set $files "api-paste.ini" (include "toolkit.oslo" (dict "conf" . "at" "conf.paste")) }}{{ end -}}
{{ toJson $files }}
{{- end -}}

{{/* What the agent on each hypervisor gets to see: no database, no broker, no identity. */}}
{{- define "neutron.agent" -}}
{{- $metadata := dict "root" . "type" "compute_metadata" "class" "internal" -}}
{{- $computed := dict "DEFAULT" (dict
  "nova_metadata_host" (include "toolkit.endpoint.host" $metadata)
  "nova_metadata_port" (include "toolkit.endpoint.port" (merge (dict "port" "metadata") $metadata))
  "metadata_proxy_shared_secret" (include "toolkit.password" (dict "root" . "path" "endpoints.compute_metadata.auth.proxy.password") | include "toolkit.oslo.secret")) -}}
{{- $conf := include "toolkit.oslo.under" (dict "user" .Values.conf.ovn_metadata_agent "computed" $computed) | fromJson -}}
{{ toJson (dict "ovn_metadata_agent.ini" (include "toolkit.oslo" (dict "conf" $conf "at" "conf.ovn_metadata_agent"))) }}
{{- end -}}

{{- define "neutron.bin" -}}
{{- $files := .Subcharts.toolkit.Files -}}
{{ toJson (dict "db-init.py" ($files.Get "files/db-init.py") "ks-register.py" ($files.Get "files/ks-register.py") "connected.sh" ($files.Get "files/connected.sh")
  "with-ovn.sh" (.Files.Get "files/with-ovn.sh") "clean-node.sh" (.Files.Get "files/clean-node.sh")) }}
{{- end -}}

{{/* Where OVN's databases are, for with-ovn.sh: HOST PORT. */}}
{{- define "neutron.env" -}}
{{- range $name, $type := dict "OVN_NB" "ovn_ovsdb_nb" "OVN_SB" "ovn_ovsdb_sb" }}
- {name: {{ $name }}, value: "{{ include "toolkit.endpoint.host" (dict "root" $ "type" $type "class" "internal") }} {{ include "toolkit.endpoint.port" (dict "root" $ "type" $type "class" "internal" "port" "ovsdb") }}"}
{{- end }}
{{- end -}}

{{/* A worker. Takes: root, component, command. */}}
{{- define "neutron.worker" -}}
{{- if index .root.Values.manifests (printf "deployment_%s" (include "toolkit.key" .component)) }}
---
{{ include "toolkit.deployment" (dict "root" .root "component" .component "placement" "api" "image" (printf "neutron_%s" (include "toolkit.key" .component)) "serviceAccount" "neutron-api"
  "command" (list "bash" "/scripts/with-ovn.sh" .command "--config-file" "/etc/neutron/neutron.conf" "--config-file" "/etc/neutron/ml2_conf.ini")
  "env" (include "neutron.env" .root | fromYamlArray)
  "mounts" (list "etc" "bin" "tmp" "state")) }}
{{- end }}
{{- end -}}

{{- define "neutron.volumes.agent" -}}
- {name: openvswitch-run, mountPath: /run/openvswitch, source: {hostPath: {path: /run/openvswitch, type: DirectoryOrCreate}}}
# Namespaces made here must be there for the next pod.
- {name: netns, mountPath: /run/netns, mountPropagation: Bidirectional, source: {hostPath: {path: /run/netns, type: DirectoryOrCreate}}}
{{- end -}}
