{{/* Labels of an object; pods are selected by them. Takes: root, component. */}}
{{- define "kit.labels" -}}
release_group: {{ .root.Values.release_group | default .root.Release.Name }}
application: {{ .root.Chart.Name }}
component: {{ .component }}
{{- end -}}

{{/* Sections of an INI file. Takes the map. */}}
{{- define "kit.ini" -}}
{{- range $section, $options := . }}
[{{ $section }}]
{{- range $option, $value := $options }}
{{ $option }} = {{ $value }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The init container that waits, by its environment. Takes: root, component. */}}
{{- define "kit.entrypoint" -}}
{{- $root := .root -}}
{{- $waits := index $root.Values.dependencies.static (.component | replace "-" "_") | default dict -}}
{{- $services := list -}}
{{- range $waits.services }}{{ $services = append $services (printf "%s:%s" $root.Release.Namespace .) }}{{ end -}}
- name: init
  image: {{ $root.Values.images.tags.dep_check }}
  command: [kubernetes-entrypoint]
  env:
    - {name: POD_NAME, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.name}}}
    - {name: NAMESPACE, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}}
    - {name: INTERFACE_NAME, value: eth0}
    - {name: PATH, value: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin/"}
    - {name: DEPENDENCY_SERVICE, value: {{ join "," $services | quote }}}
    - {name: DEPENDENCY_JOBS, value: {{ join "," $waits.jobs | quote }}}
    - {name: DEPENDENCY_DAEMONSET, value: ""}
    - {name: DEPENDENCY_CONTAINER, value: ""}
    - {name: DEPENDENCY_POD_JSON, value: {{ $waits.pod | default list | toJson | quote }}}
    - {name: DEPENDENCY_CUSTOM_RESOURCE, value: ""}
    - {name: COMMAND, value: "echo done"}
{{- end -}}

{{/* Whether this release has the object. Takes: root, name (of the manifest). */}}
{{- define "kit.has" -}}
{{- if index .root.Values.manifests (.name | replace "-" "_") }}yes{{ end -}}
{{- end -}}

{{/*
A pod: scripts and configuration are single files of objects with fixed names, whose hashes are annotations, so that a
change of them makes another pod. Takes: root, component, image; restart, key Secrets (both optional).
*/}}
{{- define "kit.template" -}}
{{- $name := .root.Chart.Name -}}
metadata:
  labels:
    {{- include "kit.labels" . | nindent 4 }}
  annotations:
    configmap-bin-hash: {{ include (printf "%s.bin" $name) .root | sha256sum }}
    configmap-etc-hash: {{ include (printf "%s.etc" $name) .root | sha256sum }}
spec:
  serviceAccountName: {{ $name }}
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  initContainers:
    {{- include "kit.entrypoint" . | nindent 4 }}
  containers:
    - name: {{ $name }}-{{ .component }}
      image: {{ index .root.Values.images.tags .image }}
      command: [/tmp/{{ .component }}.sh]
      volumeMounts:
        - {name: scripts, mountPath: /tmp/{{ .component }}.sh, subPath: {{ .component }}.sh, readOnly: true}
        - {name: etc, mountPath: /etc/{{ $name }}/{{ $name }}.conf, subPath: {{ $name }}.conf, readOnly: true}
        {{- range .keys }}
        - {name: {{ . }}, mountPath: /etc/{{ $name }}/{{ . }}/}
        {{- end }}
  volumes:
    - {name: scripts, configMap: {name: {{ $name }}-bin, defaultMode: 0555}}
    - {name: etc, secret: {secretName: {{ $name }}-etc, defaultMode: 0444}}
    {{- range .keys }}
    - {name: {{ . }}, secret: {secretName: {{ $name }}-{{ . }}}}
    {{- end }}
{{- end -}}

{{/* The account of the pods, and what the waiting container may look at. Takes the root. */}}
{{- define "kit.account" -}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Chart.Name }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: {{ .Chart.Name }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: {{ .Chart.Name }}, namespace: {{ .Release.Namespace }}}]
{{- end -}}

{{/* A Job; with a weight it is a hook. Takes what `kit.template` takes, and: weight (a text, optional). */}}
{{- define "kit.job" -}}
{{- if include "kit.has" (dict "root" .root "name" (printf "job_%s" .component)) }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .root.Chart.Name }}-{{ .component }}
  labels:
    {{- include "kit.labels" . | nindent 4 }}
  {{- with .weight }}
  annotations:
    helm.sh/hook: post-install,post-upgrade
    helm.sh/hook-weight: {{ . | quote }}
  {{- end }}
spec:
  backoffLimit: 1000
  template:
    {{- include "kit.template" (merge . (dict "restart" "OnFailure")) | nindent 4 }}
{{- end }}
{{- end -}}

{{/* Account, scripts and configuration. Each chart defines `<chart>.bin` and `<chart>.etc`, the text of the objects' data. */}}
{{- define "kit.config" -}}
{{ include "kit.account" . }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Chart.Name }}-bin}
data:
  {{- include (printf "%s.bin" .Chart.Name) . | nindent 2 }}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Chart.Name }}-etc}
type: Opaque
data:
  {{ .Chart.Name }}.conf: {{ include (printf "%s.etc" .Chart.Name) . | b64enc }}
{{- end -}}

{{/* Scripts by name. Takes the list of names. */}}
{{- define "kit.scripts" -}}
{{- range . }}
{{ . }}.sh: |
  #!/bin/sh
  exec echo {{ . }}
{{- end }}
{{- end -}}

{{/* Takes: root, component, port; name (optional). */}}
{{- define "kit.service" -}}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name | default (printf "%s-%s" .root.Chart.Name .component) }}
spec:
  ports: [{name: main, port: {{ .port }}}]
  selector:
    {{- include "kit.labels" . | nindent 4 }}
{{- end -}}

{{/* The Deployment of an API. Takes what `kit.template` takes. */}}
{{- define "kit.deployment" -}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .root.Chart.Name }}-{{ .component }}
  labels:
    {{- include "kit.labels" . | nindent 4 }}
spec:
  replicas: {{ index .root.Values.pod.replicas .component }}
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      {{- include "kit.labels" . | nindent 6 }}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 3}}
  template:
    {{- include "kit.template" . | nindent 4 }}
{{- end -}}

{{/* The StatefulSet of a backend. Takes what `kit.template` takes, and: service. */}}
{{- define "kit.statefulset" -}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .root.Chart.Name }}-{{ .component }}
  labels:
    {{- include "kit.labels" . | nindent 4 }}
spec:
  serviceName: {{ .service }}
  podManagementPolicy: Parallel
  replicas: {{ index .root.Values.pod.replicas .component }}
  selector:
    matchLabels:
      {{- include "kit.labels" . | nindent 6 }}
  template:
    {{- include "kit.template" . | nindent 4 }}
{{- end -}}
