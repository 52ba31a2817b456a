{{/* Flags about where images may come from. */}}
{{- define "kupenstack.imageSources.args" -}}
{{- with .Values.imageSources }}
{{- with .allow }}
- --image-sources-allow={{ join "," . }}
{{- end }}
{{- with .deny }}
- --image-sources-deny={{ join "," . }}
{{- end }}
{{- if or .caBundle.configMap .caBundle.secret }}
- --image-sources-ca=/etc/kupenstack/image-sources/{{ .caBundle.key }}
{{- end }}
{{- end }}
{{- end }}

{{/* The proxies. What is in the cluster is reached without them. */}}
{{- define "kupenstack.imageSources.env" -}}
{{- with .Values.imageSources.proxy }}
{{- $secret := .secret }}
{{- range $name, $value := dict "HTTP_PROXY" .http "HTTPS_PROXY" .https }}
{{- if $secret }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ $name }}, optional: true}}
{{- else if $value }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- if or .secret .http .https }}
- name: NO_PROXY
  value: {{ join "," (concat .noProxy (list "localhost" "127.0.0.1" ".svc" ".cluster.local" "$(KUBERNETES_SERVICE_HOST)")) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The source of the volume with the extra certificates, if there is one. */}}
{{- define "kupenstack.imageSources.ca" -}}
{{- with .Values.imageSources.caBundle -}}
{{- if .configMap -}}
configMap: {name: {{ .configMap }}}
{{- else if .secret -}}
secret: {secretName: {{ .secret }}}
{{- end -}}
{{- end -}}
{{- end }}
