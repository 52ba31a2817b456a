{{/* placement.conf: what the user gave, over what follows from the rest of the values. */}}
{{- define "placement.conf" -}}
{{- $computed := include "toolkit.config.pointers" (dict "root" .) | fromJson -}}
{{- $database := include "toolkit.endpoint.lookup" (dict "map" .Values.endpoints.oslo_db.path "class" "placement") -}}
{{- $_ := set $computed "placement_database" (dict "connection" (include "toolkit.endpoint.database" (dict "root" . "user" "placement" "database" $database))) -}}
{{- $_ := set $computed "keystone_authtoken" (include "toolkit.identity.authtoken" . | fromJson) -}}
{{- $conf := include "toolkit.oslo.under" (dict "user" .Values.conf.placement "computed" $computed) | fromJson -}}
{{ include "toolkit.oslo" (dict "conf" $conf "at" "conf.placement") }}
{{- end -}}

{{- define "placement.etc" -}}
{{- $files := include "toolkit.config.common" (dict "root" .) | fromJson -}}
{{- $_ := set $files "placement.conf" (include "placement.conf" .) -}}
{{- $_ := set $files "uwsgi.ini" (include "toolkit.oslo" (dict "conf" .Values.conf.placement_api_uwsgi "at" "conf.placement_api_uwsgi")) -}}
{{ toJson $files }}
{{- end -}}

{{- define "placement.bin" -}}
{{- $files := .Subcharts.toolkit.Files -}}
{{ toJson (dict "db-init.py" ($files.Get "files/db-init.py") "ks-register.py" ($files.Get "files/ks-register.py")) }}
{{- end -}}
