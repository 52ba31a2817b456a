{{/*
A Deployment, `<service>-<component>` unless `name` is given. Takes what `toolkit.pod` takes, but for `container`: that has the
component's name.
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
  replicas: {{ index $root.Values.pod.replicas (include "toolkit.key" $component) }}
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

{{/*
A DaemonSet, `<service>-<component>`. Takes what `toolkit.pod` takes. Its pods are replaced as
`pod.lifecycle.upgrades.daemonsets` says: OnDelete where a restart is felt by the VMs of the node.
*/}}
{{- define "toolkit.daemonset" -}}
{{- $root := .root -}}
{{- $labels := dict "root" $root "component" .component -}}
{{- $upgrades := $root.Values.pod.lifecycle.upgrades.daemonsets -}}
{{- $strategy := (index $upgrades (include "toolkit.key" (.like | default .component)) | default dict).pod_replacement_strategy | default $upgrades.pod_replacement_strategy -}}
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {{ .name | default (printf "%s-%s" $root.Chart.Name .component) }}
  labels:
    {{- include "toolkit.labels" $labels | nindent 4 }}
spec:
  selector:
    matchLabels:
      {{- include "toolkit.selector" $labels | nindent 6 }}
  revisionHistoryLimit: {{ $upgrades.revision_history }}
  updateStrategy:
    type: {{ $strategy }}
    {{- if eq $strategy "RollingUpdate" }}
    rollingUpdate:
      maxUnavailable: 1
    {{- end }}
  template:
    {{- include "toolkit.template" (merge . (dict "daemon" true)) | nindent 4 }}
{{- end -}}

{{/*
A StatefulSet with one volume per pod, `<service>-<component>`. Takes what `toolkit.pod` takes, and: volume (a map like
`volume` of the values), claim (the volume's name among `volumes`), nodes (the headless Service).
*/}}
{{- define "toolkit.statefulset" -}}
{{- $root := .root -}}
{{- $labels := dict "root" $root "component" .component -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .name | default (printf "%s-%s" $root.Chart.Name .component) }}
  labels:
    {{- include "toolkit.labels" $labels | nindent 4 }}
spec:
  serviceName: {{ .nodes }}
  replicas: {{ index $root.Values.pod.replicas (include "toolkit.key" .component) }}
  selector:
    matchLabels:
      {{- include "toolkit.selector" $labels | nindent 6 }}
  template:
    {{- include "toolkit.template" . | nindent 4 }}
  volumeClaimTemplates:
    - metadata:
        name: {{ .claim }}
        labels:
          {{- include "toolkit.selector" $labels | nindent 10 }}
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .volume.class_name }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests:
            storage: {{ .volume.size }}
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
{{- $network := index (.root.Values.network | default dict) (include "toolkit.key" .component) | default dict -}}
{{- $nodePort := $network.node_port | default dict -}}
{{- $loadBalancer := $network.load_balancer | default dict -}}
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
  {{- else if $loadBalancer.enabled }}
  type: LoadBalancer
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
{{- $budget := index .root.Values.pod.lifecycle.disruption_budget (include "toolkit.key" .component) -}}
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
