{{/* glance-api.conf: what the user gave, over what follows from the rest of the values. */}}
{{- define "glance.conf" -}}
{{- $computed := include "toolkit.config.pointers" (dict "root" .) | fromJson -}}
{{- $database := include "toolkit.endpoint.lookup" (dict "map" .Values.endpoints.oslo_db.path "class" "glance") -}}
{{- $_ := set $computed "database" (dict "connection" (include "toolkit.endpoint.database" (dict "root" . "user" "glance" "database" $database))) -}}
{{- $_ := set $computed "keystone_authtoken" (include "toolkit.identity.authtoken" . | fromJson) -}}
{{- $_ := set $computed "oslo_limit" (merge (include "toolkit.identity.client" . | fromJson) (dict
  "endpoint_service_type" "image"
  "endpoint_interface" "internal"
  "endpoint_region_name" .Values.endpoints.identity.auth.glance.region_name)) -}}
{{- $conf := include "toolkit.oslo.under" (dict "user" .Values.conf.glance "computed" $computed) | fromJson -}}
{{- if .Values.conf.paste }}{{ $_ := set $conf.paste_deploy "config_file" "/etc/glance/glance-api-paste.ini" }}{{ end -}}
{{ include "toolkit.oslo" (dict "conf" $conf "at" "conf.glance") }}
{{- end -}}

{{- define "glance.etc" -}}
{{- $files := include "toolkit.config.common" (dict "root" .) | fromJson -}}
{{- $_ := set $files "glance-api.conf" (include "glance.conf" .) -}}
{{- $_ := set $files "uwsgi.ini" (include "toolkit.oslo" (dict "conf" .Values.conf.glance_api_uwsgi "at" "conf.glance_api_uwsgi")) -}}
{{- with .Values.conf.paste }}{{ $_ := set $files "glance-api-paste.ini" (include "toolkit.oslo" (dict "conf" . "at" "conf.paste")) }}{{ end -}}
{{ toJson $files }}
{{- end -}}

{{- define "glance.bin" -}}
{{- $files := .Subcharts.toolkit.Files -}}
{{ toJson (dict "db-init.py" ($files.Get "files/db-init.py") "ks-register.py" ($files.Get "files/ks-register.py")) }}
{{- end -}}

{{/* Images, staging and tasks in one place: an import moves between them. */}}
{{- define "glance.images" -}}
- name: images
  mountPath: /var/lib/glance
  {{- if eq .Values.storage "pvc" }}
  source: {persistentVolumeClaim: {claimName: glance-images}}
  {{- else }}
  source: {emptyDir: {}}
  {{- end }}
{{- end -}}
