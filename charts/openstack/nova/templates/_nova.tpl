{{/* What hypervisors and the control plane share of nova.conf, as JSON of a map of sections. */}}
{{- define "nova.conf.shared" -}}
{{- $computed := include "toolkit.config.pointers" (dict "root" .) | fromJson -}}
{{- $client := include "toolkit.identity.client" . | fromJson -}}
{{- $console := dict "root" . "type" "compute_novnc_proxy" -}}
{{- $_ := set $computed "DEFAULT" (merge (dict "transport_url" (include "toolkit.endpoint.transport" .)) ($computed.DEFAULT | default dict)) -}}
{{- range $section := list "glance" "placement" }}{{ $_ := set $computed $section $client }}{{ end -}}
{{- $_ := set $computed "service_user" (omit $client "valid_interfaces" "region_name") -}}
{{- $_ := set $computed "neutron" (merge (dict "metadata_proxy_shared_secret" (include "toolkit.password" (dict "root" . "path" "endpoints.compute_metadata.auth.proxy.password") | include "toolkit.oslo.secret")) $client) -}}
{{- $_ := set $computed "vnc" (dict "novncproxy_base_url" (include "toolkit.endpoint.uri" (merge (dict "class" "public") $console))) -}}
{{- /* Root already: privileged helpers are started without sudo. */ -}}
{{- range $section := list "nova_sys_admin" "vif_plug_ovs_privileged" "privsep_osbrick" -}}
{{- $_ := set $computed $section (dict "helper_command" "privsep-helper --config-file /etc/nova/nova.conf") -}}
{{- end -}}
{{ toJson $computed }}
{{- end -}}

{{/* nova.conf of the control plane: what the user gave, over what follows from the rest of the values. */}}
{{- define "nova.conf" -}}
{{- $computed := include "nova.conf.shared" . | fromJson -}}
{{- $paths := .Values.endpoints.oslo_db.path -}}
{{- $database := include "toolkit.endpoint.lookup" (dict "map" $paths "class" "nova") -}}
{{- $_ := set $computed "database" (dict "connection" (include "toolkit.endpoint.database" (dict "root" . "user" "nova" "database" $database))) -}}
{{- $_ := set $computed "api_database" (dict "connection" (include "toolkit.endpoint.database" (dict "root" . "user" "nova" "database" $paths.nova_api))) -}}
{{- $_ := set $computed "keystone_authtoken" (include "toolkit.identity.authtoken" . | fromJson) -}}
{{- $conf := include "toolkit.oslo.under" (dict "user" .Values.conf.nova "computed" $computed) | fromJson -}}
{{ include "toolkit.oslo" (dict "conf" $conf "at" "conf.nova") }}
{{- end -}}

{{- define "nova.etc" -}}
{{- $files := include "toolkit.config.common" (dict "root" .) | fromJson -}}
{{- $_ := set $files "nova.conf" (include "nova.conf" .) -}}
{{- $_ := set $files "uwsgi-api.ini" (include "toolkit.oslo" (dict "conf" .Values.conf.nova_api_uwsgi "at" "conf.nova_api_uwsgi")) -}}
{{- $_ := set $files "uwsgi-metadata.ini" (include "toolkit.oslo" (dict "conf" .Values.conf.nova_metadata_uwsgi "at" "conf.nova_metadata_uwsgi")) -}}
{{- with .Values.conf.paste }}{{ $_ := set $files "api-paste.ini" (include "toolkit.oslo" (dict "conf" . "at" "conf.paste")) }}{{ end -}}
{{ toJson $files }}
{{- end -}}

{{/* What hypervisors get to see: no database, which nova-compute refuses to know, and nothing that only an API needs. */}}
{{- define "nova.compute" -}}
{{- $files := include "toolkit.config.common" (dict "root" .) | fromJson -}}
{{- $given := omit .Values.conf.nova "database" "api_database" "keystone_authtoken" "api" "conductor" "scheduler" "filter_scheduler" "oslo_policy" -}}
{{- $computed := omit (include "nova.conf.shared" . | fromJson) "oslo_policy" -}}
{{- $conf := include "toolkit.oslo.under" (dict "user" $given "computed" $computed) | fromJson -}}
{{- $_ := set $files "nova.conf" (include "toolkit.oslo" (dict "conf" $conf "at" "conf.nova")) -}}
{{ toJson (omit $files "policy.yaml") }}
{{- end -}}

{{- define "nova.bin" -}}
{{- $files := .Subcharts.toolkit.Files -}}
{{ toJson (dict "db-init.py" ($files.Get "files/db-init.py") "ks-register.py" ($files.Get "files/ks-register.py") "connected.sh" ($files.Get "files/connected.sh")
  "db-sync.sh" (.Files.Get "files/db-sync.sh") "compute.sh" (.Files.Get "files/compute.sh")
  "ssh-keys.py" (.Files.Get "files/ssh-keys.py") "sshd.sh" (.Files.Get "files/sshd.sh") "identity.py" (.Files.Get "files/identity.py") "serve.py" (.Files.Get "files/serve.py")) }}
{{- end -}}

{{/* Which configuration an API under uwsgi reads: the pipeline first. */}}
{{- define "nova.env.api" -}}
- {name: OS_NOVA_CONFIG_DIR, value: /etc/nova}
- {name: OS_NOVA_CONFIG_FILES, value: "{{ ternary "api-paste.ini" "/opt/openstack/etc/nova/api-paste.ini" (not (empty .Values.conf.paste)) }};nova.conf"}
{{- end -}}

{{/* An option of nova.conf from the environment, which wins over the file. */}}
{{- define "nova.env.compute" -}}
- {name: OS_DEFAULT__HOST, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
{{- range list "OS_DEFAULT__MY_IP" "OS_VNC__SERVER_LISTEN" "OS_VNC__SERVER_PROXYCLIENT_ADDRESS" "OS_LIBVIRT__LIVE_MIGRATION_INBOUND_ADDR" }}
- {name: {{ . }}, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
{{- end }}
- {name: DRIVER, value: {{ .Values.conf.nova.DEFAULT.compute_driver }}}
- {name: VIRT_TYPE, value: {{ .Values.conf.nova.libvirt.virt_type }}}
- {name: LIBVIRT_URI, value: {{ .Values.conf.nova.libvirt.connection_uri | quote }}}
{{- if include "nova.ssh.enabled" . }}
- {name: SSH_CLIENT_DIR, value: /root/.ssh}
- {name: SSH_UID, value: {{ .Values.pod.security_context.nova.pod.runAsUser | int | quote }}}
- {name: SSH_PORT, value: {{ include "nova.ssh.port" . | quote }}}
{{- end }}
{{- end -}}

{{/* Whether hypervisors bring disks to each other: a driver that has no disks needs it not. */}}
{{- define "nova.ssh.enabled" -}}
{{- if and .Values.manifests.daemonset_ssh (hasPrefix "libvirt." .Values.conf.nova.DEFAULT.compute_driver) }}yes{{ end -}}
{{- end -}}

{{/* The Secret that their keys follow from. */}}
{{- define "nova.ssh" -}}
{{ toJson (dict "secret" (include "toolkit.password" (dict "root" . "path" "endpoints.compute_ssh.auth.nova.password"))) }}
{{- end -}}

{{- define "nova.ssh.port" -}}
{{ include "toolkit.endpoint.port" (dict "root" . "type" "compute_ssh" "class" "internal" "port" "ssh") }}
{{- end -}}

{{- define "nova.env.ssh" -}}
- {name: NODE_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
- {name: SSH_PORT, value: {{ include "nova.ssh.port" . | quote }}}
- {name: SSH_SERVER_DIR, value: /keys}
{{- end -}}

{{- define "nova.volumes.ssh" -}}
- {name: keys, mountPath: /keys, readOnly: true, source: {emptyDir: {medium: Memory}}}
- {name: instances, mountPath: /var/lib/nova/instances, source: {hostPath: {path: /var/lib/nova/instances, type: DirectoryOrCreate}}}
{{- end -}}

{{- define "nova.volumes.ssh_secret" -}}
- {name: ssh-secret, mountPath: /etc/ssh-secret, readOnly: true, source: {secret: {secretName: {{ include "toolkit.config.name" (dict "root" . "kind" "ssh") }}, defaultMode: 0440}}}
{{- end -}}

{{- define "nova.volumes.compute" -}}
- {name: nova-data, mountPath: /var/lib/nova, source: {hostPath: {path: /var/lib/nova, type: DirectoryOrCreate}}}
{{- if hasPrefix "libvirt." .Values.conf.nova.DEFAULT.compute_driver }}
- {name: libvirt-run, mountPath: /run/libvirt, source: {hostPath: {path: /run/libvirt, type: DirectoryOrCreate}}}
- {name: openvswitch-run, mountPath: /run/openvswitch, source: {hostPath: {path: /run/openvswitch, type: DirectoryOrCreate}}}
# Consoles are terminals of the node: their log is read only while they are seen.
- {name: terminals, mountPath: /dev/pts, source: {hostPath: {path: /dev/pts}}}
{{- end }}
{{- if include "nova.ssh.enabled" . }}
- {name: ssh, mountPath: /root/.ssh, source: {emptyDir: {medium: Memory}}}
{{ include "nova.volumes.ssh_secret" . }}
{{- end }}
{{- end -}}

{{/*
A worker of the control plane. Takes: root, component, command. Its name in Nova's list of services is the component's: by
default it would be the pod's, and every pod that ever ran would stay in the list as one that is down.
*/}}
{{- define "nova.worker" -}}
{{- if index .root.Values.manifests (printf "deployment_%s" .component) }}
---
{{ include "toolkit.deployment" (dict "root" .root "component" .component "image" (printf "nova_%s" .component) "serviceAccount" "nova-api"
  "command" .command "port" .port "env" .env "mounts" (list "etc" "bin" "tmp" "state")) }}
{{- end }}
{{- end -}}
