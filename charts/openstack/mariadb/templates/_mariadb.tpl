{{- define "mariadb.etc" -}}
{{ toJson (dict "my.cnf" (include "toolkit.oslo" (dict "conf" .Values.conf.mariadb "at" "conf.mariadb"))) }}
{{- end -}}

{{- define "mariadb.bin" -}}
{{ toJson (dict "start.sh" (.Files.Get "files/start.sh")) }}
{{- end -}}

{{/* "data" has no source: the claim is made for each pod of the set. */}}
{{- define "mariadb.volumes" -}}
- {name: data, mountPath: /var/lib/mysql}
- {name: run, mountPath: /run/mysqld, source: {emptyDir: {}}}
- name: root
  mountPath: /secrets
  readOnly: true
  source: {secret: {secretName: {{ .Values.secrets.oslo_db.admin }}, defaultMode: 0440}}
{{- end -}}
