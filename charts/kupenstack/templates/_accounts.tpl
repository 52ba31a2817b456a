{{/*
What the pods of one account have beside what all have, as YAML: args, env, volumeMounts, volumes, and whether they `keep` the
webhook's certificate or `read` it. One definition per account.
*/}}
{{- define "kupenstack.account.cloud" -}}
webhookCertificate: {{ .Values.webhook.certManager | ternary "read" "keep" }}
{{- end }}

{{- define "kupenstack.account.resources" -}}
webhookCertificate: read
args:
  - --work-dir-size={{ .Values.controllers.resources.workDir.sizeLimit }}
  {{- include "kupenstack.imageSources.args" . | nindent 2 }}
env:
  {{- include "kupenstack.imageSources.env" . | nindent 2 }}
{{- with include "kupenstack.imageSources.ca" . }}
volumeMounts:
  - name: image-sources-ca
    mountPath: /etc/kupenstack/image-sources
    readOnly: true
volumes:
  - name: image-sources-ca
    {{- . | nindent 4 }}
{{- end }}
{{- end }}
