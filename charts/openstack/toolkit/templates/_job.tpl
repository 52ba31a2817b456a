{{/*
A job of a service, `<service>-<job>`. It is a hook: by hand Helm runs it after the objects are there, in the order of
weights; the operator runs it before them. Takes what `toolkit.pod` takes, and: job, weight.
*/}}
{{- define "toolkit.job" -}}
{{- $root := .root -}}
{{- $labels := dict "root" $root "component" .job -}}
{{- if include "toolkit.job.enabled" . -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $root.Chart.Name }}-{{ .job }}
  labels:
    {{- include "toolkit.labels" $labels | nindent 4 }}
  annotations:
    helm.sh/hook: post-install,post-upgrade
    helm.sh/hook-weight: {{ .weight | quote }}
    helm.sh/hook-delete-policy: before-hook-creation
    {{- with include "toolkit.annotations" (dict "root" $root "kind" "job" "name" (include "toolkit.key" .job)) }}
    {{- . | nindent 4 }}
    {{- end }}
spec:
  # A job that gives up takes its pod, and the log that tells why, with it.
  backoffLimit: 1000
  template:
    metadata:
      labels:
        {{- include "toolkit.labels" $labels | nindent 8 }}
    spec:
      {{- $pod := dict "component" .job "container" .job "settings" "job" "restartPolicy" "OnFailure" "serviceAccount" (printf "%s-jobs" $root.Chart.Name) }}
      {{- include "toolkit.pod" (merge . $pod) | nindent 6 }}
{{- end -}}
{{- end -}}

{{/* Not empty when this release runs the job. Takes: root, job. */}}
{{- define "toolkit.job.enabled" -}}
{{- $asked := or (ne .job "bootstrap") .root.Values.bootstrap.enabled -}}
{{- if and $asked (index .root.Values.manifests (printf "job_%s" (include "toolkit.key" .job))) }}yes{{ end -}}
{{- end -}}

{{/* Makes the service's databases and their user. Takes the root. */}}
{{- define "toolkit.job.db_init" -}}
{{- $root := . -}}
{{- $env := list (include "toolkit.env.secret" (dict "name" "ROOT_DB_CONNECTION" "secret" .Values.secrets.oslo_db.admin "key" "DB_CONNECTION") | fromYaml) -}}
{{- range $variable, $_ := include "toolkit.endpoint.databases" (dict "root" . "user" .Chart.Name) | fromJson -}}
{{- $env = append $env (include "toolkit.env.secret" (dict "name" $variable "secret" (index $root.Values.secrets.oslo_db $root.Chart.Name) "key" $variable) | fromYaml) -}}
{{- end -}}
{{- include "toolkit.job" (dict "root" . "job" "db-init" "weight" -5 "image" "db_init" "mounts" (list "bin" "tmp")
  "command" (list "python3" "/scripts/db-init.py") "env" $env)
-}}
{{- end -}}

{{/*
Makes the service's user, service and endpoints in Keystone. Takes: root, type (a key of `endpoints`), limits (what every
project may use, by resource; optional).
*/}}
{{- define "toolkit.job.ks_register" -}}
{{- $root := .root -}}
{{- $identity := $root.Values.secrets.identity -}}
{{- $urls := dict -}}
{{- range list "public" "internal" "admin" }}{{ $_ := set $urls . (include "toolkit.endpoint.uri" (dict "root" $root "type" $.type "class" .)) }}{{ end -}}
{{- $env := list
  (dict "name" "SERVICE_NAME" "value" (index $root.Values.endpoints .type).name)
  (dict "name" "SERVICE_TYPE" "value" .type)
  (dict "name" "SERVICE_ENDPOINTS" "value" (toJson $urls)) -}}
{{- with .limits }}{{ $env = append $env (dict "name" "SERVICE_LIMITS" "value" (toJson .)) }}{{ end -}}
{{- range $key := splitList " " (include "toolkit.identity.keys" "") -}}
{{- $env = append $env (include "toolkit.env.secret" (dict "name" $key "secret" $identity.admin "key" $key) | fromYaml) -}}
{{- $env = append $env (include "toolkit.env.secret" (dict "name" (printf "SERVICE_%s" $key) "secret" (index $identity $root.Chart.Name) "key" $key) | fromYaml) -}}
{{- end -}}
{{- include "toolkit.job" (dict "root" $root "job" "ks-register" "weight" -3 "image" "ks_register" "mounts" (list "bin" "tmp")
  "command" (list "python3" "/scripts/ks-register.py") "env" $env)
-}}
{{- end -}}

{{/* One environment variable from a Secret. Takes: name, secret, key. */}}
{{- define "toolkit.env.secret" -}}
name: {{ .name }}
valueFrom: {secretKeyRef: {name: {{ .secret }}, key: {{ .key }}}}
{{- end -}}
