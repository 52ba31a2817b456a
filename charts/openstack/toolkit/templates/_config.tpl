{{/*
The name of a configuration object carries the hash of its content: pods roll exactly when what they mount changed,
and a running pod keeps what it started with. Takes: root, kind ("etc", "bin", or another one where some pods of the
service must not see what is in "etc").
Each service chart defines `<chart>.etc` and `<chart>.bin`: the files, as JSON of a map of name to text.
*/}}
{{- define "toolkit.config.name" -}}
{{ .root.Chart.Name }}-{{ .kind }}-{{ include (printf "%s.%s" .root.Chart.Name .kind) .root | sha256sum | trunc 8 }}
{{- end -}}

{{/*
The object itself: a ConfigMap for "bin", a Secret for all others (they hold passwords). It is kept when an upgrade no longer
names it, since pods of the former ReplicaSet, and those of a rollback, still mount it. Takes: root, kind.
*/}}
{{- define "toolkit.config" -}}
{{- $secret := ne .kind "bin" -}}
{{- if index .root.Values.manifests (printf "configmap_%s" .kind) -}}
apiVersion: v1
kind: {{ ternary "Secret" "ConfigMap" $secret }}
metadata:
  name: {{ include "toolkit.config.name" . }}
  labels:
    {{- include "toolkit.labels" (dict "root" .root "component" .kind) | nindent 4 }}
    kupenstack.io/config: {{ .root.Chart.Name }}
  annotations:
    helm.sh/resource-policy: keep
immutable: true
data:
{{- range $file, $text := include (printf "%s.%s" .root.Chart.Name .kind) .root | fromJson }}
  {{- if $secret }}
  {{ $file }}: {{ $text | b64enc }}
  {{- else }}
  {{ $file }}: |
    {{- $text | trim | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* What every service's etc holds besides its own files: policy and logging, when given. JSON of a map. Takes: root. */}}
{{- define "toolkit.config.common" -}}
{{- $files := dict -}}
{{- with .root.Values.conf.policy }}{{ $_ := set $files "policy.yaml" (toYaml .) }}{{ end -}}
{{- with .root.Values.conf.logging }}{{ $_ := set $files "logging.conf" (include "toolkit.oslo" (dict "conf" . "at" "conf.logging")) }}{{ end -}}
{{ toJson $files }}
{{- end -}}

{{/* The options that point at those files. JSON of a map of sections. Takes: root. */}}
{{- define "toolkit.config.pointers" -}}
{{- $conf := dict -}}
{{- if .root.Values.conf.policy }}{{ $_ := set $conf "oslo_policy" (dict "policy_file" (printf "/etc/%s/policy.yaml" .root.Chart.Name)) }}{{ end -}}
{{- if .root.Values.conf.logging }}{{ $_ := set $conf "DEFAULT" (dict "log_config_append" (printf "/etc/%s/logging.conf" .root.Chart.Name)) }}{{ end -}}
{{ toJson $conf }}
{{- end -}}

{{/* A Secret with fixed name whose values are given as a map. Takes: root, name, component, data. */}}
{{- define "toolkit.secret" -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .name }}
  labels:
    {{- include "toolkit.labels" . | nindent 4 }}
  {{- with include "toolkit.annotations" (dict "root" .root "kind" "secret" "name" .component) }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
data:
{{- range $key, $value := .data }}
  {{ $key }}: {{ $value | b64enc }}
{{- end }}
{{- end -}}
