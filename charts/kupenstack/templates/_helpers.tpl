{{/* Labels of an object; argument: list $ COMPONENT */}}
{{- define "kupenstack.labels" -}}
{{- $root := index . 0 -}}
{{ include "kupenstack.selector" . }}
app.kubernetes.io/part-of: kupenstack
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{/* Labels that select the pods of a component; argument: list $ COMPONENT */}}
{{- define "kupenstack.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: kupenstack
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "kupenstack.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Whether API servers ask the operator for anything: empty if they do not. */}}
{{- define "kupenstack.serves" -}}
{{- if or .Values.webhook.enabled .Values.consoleLog.enabled }}yes{{ end -}}
{{- end }}

{{/* The names under which they do, as a YAML list. */}}
{{- define "kupenstack.names" -}}
{{- if .Values.webhook.enabled }}
- kupenstack-webhook.{{ .Release.Namespace }}.svc
{{- end }}
{{- if .Values.consoleLog.enabled }}
- kupenstack-subresources.{{ .Release.Namespace }}.svc
{{- end }}
{{- end }}
