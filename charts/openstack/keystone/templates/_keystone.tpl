{{/* keystone.conf: what the user gave, over what follows from the rest of the values. */}}
{{- define "keystone.conf" -}}
{{- $computed := include "toolkit.config.pointers" (dict "root" .) | fromJson -}}
{{- $_ := set $computed "database" (dict "connection" (include "toolkit.endpoint.database" (dict "root" . "user" "keystone" "database" (include "toolkit.endpoint.lookup" (dict "map" .Values.endpoints.oslo_db.path "class" "keystone"))))) -}}
{{- $_ := set $computed "cache" (dict "memcache_servers" (include "toolkit.endpoint.address" (dict "root" . "type" "oslo_cache" "class" "internal" "port" "memcache"))) -}}
{{- $conf := include "toolkit.oslo.under" (dict "user" .Values.conf.keystone "computed" $computed) | fromJson -}}
{{ include "toolkit.oslo" (dict "conf" $conf "at" "conf.keystone") }}
{{- end -}}

{{- define "keystone.etc" -}}
{{- $files := include "toolkit.config.common" (dict "root" .) | fromJson -}}
{{- $_ := set $files "keystone.conf" (include "keystone.conf" .) -}}
{{- $_ := set $files "uwsgi.ini" (include "toolkit.oslo" (dict "conf" .Values.conf.keystone_api_uwsgi "at" "conf.keystone_api_uwsgi")) -}}
{{ toJson $files }}
{{- end -}}

{{- define "keystone.bin" -}}
{{ toJson (dict "db-init.py" (.Subcharts.toolkit.Files.Get "files/db-init.py") "create-keys.py" (.Files.Get "files/create-keys.py") "api.py" (.Files.Get "files/api.py")) }}
{{- end -}}

{{/* Both key repositories. They are not below /etc/keystone: nothing can be mounted inside a read-only volume. */}}
{{- define "keystone.keys" -}}
{{- range $kind, $secret := .Values.secrets.keys }}
- name: {{ $kind }}-keys
  mountPath: /var/lib/keystone/{{ $kind }}-keys
  readOnly: true
  source: {secret: {secretName: {{ $secret }}, defaultMode: 0440}}
{{- end }}
{{- end -}}

{{/* A job that creates the Secret of one key repository. Takes: root, kind (fernet or credential). */}}
{{- define "keystone.job.keys" -}}
{{- include "toolkit.job" (dict "root" .root "job" (printf "%s-setup" .kind) "weight" -5
  "image" (printf "keystone_%s_setup" .kind) "mounts" (list "bin" "tmp") "serviceAccount" "keystone-keys" "apiAccess" true
  "command" (list "python3" "/scripts/create-keys.py")
  "env" (list
    (dict "name" "SECRET_NAME" "value" (index .root.Values.secrets.keys .kind))
    (dict "name" "NAMESPACE" "value" .root.Release.Namespace)))
-}}
{{- end -}}

{{/* What `keystone-manage bootstrap` reads from its environment. */}}
{{- define "keystone.bootstrap.env" -}}
{{- $admin := .Values.endpoints.identity.auth.admin -}}
- {name: OS_BOOTSTRAP_USERNAME, value: {{ $admin.username | quote }}}
- {name: OS_BOOTSTRAP_PROJECT_NAME, value: {{ $admin.project_name | quote }}}
- {name: OS_BOOTSTRAP_SERVICE_NAME, value: {{ .Values.endpoints.identity.name | quote }}}
- {name: OS_BOOTSTRAP_REGION_ID, value: {{ $admin.region_name | quote }}}
{{- range list "admin" "internal" "public" }}
- {name: OS_BOOTSTRAP_{{ upper . }}_URL, value: {{ include "toolkit.endpoint.uri" (dict "root" $ "type" "identity" "class" .) | quote }}}
{{- end }}
- {{ include "toolkit.env.secret" (dict "name" "OS_BOOTSTRAP_PASSWORD" "secret" .Values.secrets.identity.admin "key" "OS_PASSWORD") | indent 2 | trim }}
{{- end -}}
