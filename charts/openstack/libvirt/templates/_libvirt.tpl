{{/* Options in libvirt's own syntax. Takes: conf, at. */}}
{{- define "libvirt.options" -}}
{{- range $option, $value := .conf -}}
{{- if kindIs "slice" $value }}
{{ $option }} = {{ toJson $value }}
{{- else if kindIs "string" $value }}
{{ $option }} = {{ include "toolkit.oslo.scalar" (dict "value" $value "at" (printf "%s.%s" $.at $option)) | quote }}
{{- else if kindIs "bool" $value }}
{{ $option }} = {{ ternary 1 0 $value }}
{{- else if not (kindIs "invalid" $value) }}
{{ $option }} = {{ toJson $value }}
{{- end -}}
{{- end }}
{{ end -}}

{{- define "libvirt.etc" -}}
{{ toJson (dict "libvirtd.conf" (include "libvirt.options" (dict "conf" .Values.conf.libvirt "at" "conf.libvirt") | trimPrefix "\n")
  "qemu.conf" (include "libvirt.options" (dict "conf" .Values.conf.qemu "at" "conf.qemu") | trimPrefix "\n")) }}
{{- end -}}

{{- define "libvirt.bin" -}}
{{ toJson (dict "start.sh" (.Files.Get "files/start.sh") "clean-node.sh" (.Files.Get "files/clean-node.sh")) }}
{{- end -}}

{{/* What VMs need of the node, and what the next libvirtd needs to find them. */}}
{{- define "libvirt.volumes" -}}
{{- $secret := include "toolkit.config.name" (dict "root" . "kind" "etc") -}}
- {name: given, mountPath: /given, readOnly: true, source: {secret: {secretName: {{ $secret }}, defaultMode: 0400}}}
- {name: etc, mountPath: /etc/libvirt, source: {emptyDir: {}}}
- {name: log, mountPath: /var/log/libvirt, source: {emptyDir: {}}}
- {name: cache, mountPath: /var/cache/libvirt, source: {emptyDir: {}}}
- {name: libvirt-run, mountPath: /run/libvirt, source: {hostPath: {path: /run/libvirt, type: DirectoryOrCreate}}}
- {name: libvirt-data, mountPath: /var/lib/libvirt, source: {hostPath: {path: /var/lib/libvirt, type: DirectoryOrCreate}}}
- {name: nova-data, mountPath: /var/lib/nova, source: {hostPath: {path: /var/lib/nova, type: DirectoryOrCreate}}}
- {name: openvswitch-run, mountPath: /run/openvswitch, source: {hostPath: {path: /run/openvswitch, type: DirectoryOrCreate}}}
# A serial console is a terminal here, which the next pod and nova-compute look for under the same name.
- {name: terminals, mountPath: /dev/pts, source: {hostPath: {path: /dev/pts}}}
- {name: cgroups, mountPath: /sys/fs/cgroup, source: {hostPath: {path: /sys/fs/cgroup}}}
{{- end -}}
