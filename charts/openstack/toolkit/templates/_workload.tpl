{{/*
The Deployment of an API under uwsgi, `<service>-<component>`. Takes what `toolkit.pod` takes; `component` is "api" when
not given, the container has its name.
*/}}
{{- define "toolkit.deployment" -}}
{{- $root := .root -}}
{{- $component := .component -}}
{{- $lifecycle := $root.Values.pod.lifecycle -}}
{{- $labels := dict "root" $root "component" $component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name | default (printf "%s-%s" $root.Chart.Name $component) }}
  labels:
    {{- include "toolkit.labels" $labels | nindent 4 }}
spec:
  replicas: {{ index $root.Values.pod.replicas $component }}
  selector:
    matchLabels:
      {{- include "toolkit.selector" $labels | nindent 6 }}
  {{- with $lifecycle.upgrades.deployments }}
  revisionHistoryLimit: {{ .revision_history }}
  strategy:
    type: {{ .pod_replacement_strategy }}
    {{- if eq .pod_replacement_strategy "RollingUpdate" }}
    rollingUpdate:
      maxUnavailable: {{ .rolling_update.max_unavailable }}
      maxSurge: {{ .rolling_update.max_surge }}
    {{- end }}
  {{- end }}
  template:
    {{- include "toolkit.template" . | nindent 4 }}
{{- end -}}

{{/* The pod template of a workload. */}}
{{- define "toolkit.template" -}}
metadata:
  labels:
    {{- include "toolkit.labels" (dict "root" .root "component" .component) | nindent 4 }}
  {{- with include "toolkit.annotations" (dict "root" .root "kind" "pod" "name" .component) }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  {{- include "toolkit.pod" (merge . (dict "container" .component)) | nindent 2 }}
{{- end -}}

{{/* Takes: root, component, name, port {name, number}; headless (optional). */}}
{{- define "toolkit.service" -}}
{{- $nodePort := (index (.root.Values.network | default dict) .component | default dict).node_port | default dict -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  labels:
    {{- include "toolkit.labels" . | nindent 4 }}
spec:
  {{- if .headless }}
  clusterIP: None
  publishNotReadyAddresses: true
  {{- else if $nodePort.enabled }}
  type: NodePort
  {{- end }}
  selector:
    {{- include "toolkit.selector" . | nindent 4 }}
  ports:
    - name: {{ .port.name }}
      port: {{ .port.number }}
      targetPort: {{ .port.name }}
      {{- if and $nodePort.enabled $nodePort.port (not .headless) }}
      nodePort: {{ $nodePort.port }}
      {{- end }}
{{- end -}}

{{/* Takes: root, component, name. */}}
{{- define "toolkit.pdb" -}}
{{- $budget := index .root.Values.pod.lifecycle.disruption_budget .component -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels:
    {{- include "toolkit.labels" . | nindent 4 }}
spec:
  {{- if kindIs "invalid" $budget.min_available }}
  maxUnavailable: {{ $budget.max_unavailable }}
  {{- else }}
  minAvailable: {{ $budget.min_available }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "toolkit.selector" . | nindent 6 }}
{{- end -}}

{{/* Objects of the user's own, a map of name to object; text in them is a template. Takes the root. */}}
{{- define "toolkit.extra_objects" -}}
{{- range $name, $object := .Values.extraObjects }}
{{- if $object }}
---
{{ tpl (toYaml $object) $ }}
{{- end }}
{{- end }}
{{- end -}}
