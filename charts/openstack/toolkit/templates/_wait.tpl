{{/*
What a component waits for, from `dependencies.static.<component>`. A job that this release does not run is not waited
for, nor a service outside the cluster. JSON of {jobs: [name], services: ["namespace:name"]}. Takes: root, component.
*/}}
{{- define "toolkit.wait.list" -}}
{{- $root := .root -}}
{{- $static := index $root.Values.dependencies.static (include "toolkit.key" .component) | default dict -}}
{{- $jobs := list -}}
{{- range $static.jobs -}}
{{- $own := printf "%s-" $root.Chart.Name -}}
{{- if or (not (hasPrefix $own .)) (include "toolkit.job.enabled" (dict "root" $root "job" (trimPrefix $own .))) }}{{ $jobs = append $jobs . }}{{ end -}}
{{- end -}}
{{- $services := list -}}
{{- range $static.services -}}
{{- $endpoint := index $root.Values.endpoints .service -}}
{{- if not (include "toolkit.endpoint.foreign_host" (dict "endpoint" $endpoint "class" .endpoint)) -}}
{{- $host := include "toolkit.endpoint.lookup" (dict "map" $endpoint.hosts "class" .endpoint) -}}
{{- $services = append $services (printf "%s:%s" ($endpoint.namespace | default $root.Release.Namespace) $host) -}}
{{- end -}}
{{- end -}}
{{ toJson (dict "jobs" $jobs "services" $services) }}
{{- end -}}

{{/* Not empty when there is anything to wait for. */}}
{{- define "toolkit.wait.any" -}}
{{- $list := include "toolkit.wait.list" . | fromJson -}}
{{- if or $list.jobs $list.services }}yes{{ end -}}
{{- end -}}

{{/* The only container of a pod that gets a token of the Kubernetes API. */}}
{{- define "toolkit.wait.container" -}}
{{- $list := include "toolkit.wait.list" . | fromJson -}}
name: init
image: {{ include "toolkit.image" (dict "root" .root "image" "dep_check") }}
imagePullPolicy: {{ .root.Values.images.pull_policy }}
command: [kubernetes-entrypoint]
env:
  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
  - {name: DEPENDENCY_SERVICE, value: {{ join "," $list.services | quote }}}
  - {name: DEPENDENCY_JOBS, value: {{ join "," $list.jobs | quote }}}
  - {name: COMMAND, value: "true"}
securityContext:
  {{- include "toolkit.container.security" (dict "root" .root "container" "init") | nindent 2 }}
{{- with include "toolkit.resources" (dict "root" .root "settings" "job") }}
resources:
  {{- . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- include "toolkit.token.mount" . | nindent 2 }}
{{- end -}}

{{- define "toolkit.token.mount" -}}
- name: init-token
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end -}}

{{- define "toolkit.token.volume" -}}
- name: init-token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end -}}

{{/* The accounts of pods and jobs, and the right to look at what they wait for. Takes the root. */}}
{{- define "toolkit.wait.rbac" -}}
{{- $service := .Chart.Name -}}
{{- if .Values.manifests.service_accounts }}
{{- $labels := include "toolkit.labels" (dict "root" . "component" "wait") -}}
{{- range list "api" "jobs" }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $service }}-{{ . }}
  labels:
    {{- $labels | nindent 4 }}
automountServiceAccountToken: false
{{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $service }}-wait
  labels:
    {{- $labels | nindent 4 }}
rules:
  - {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [services, endpoints, pods], verbs: [get, list, watch]}
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $service }}-wait
  labels:
    {{- $labels | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $service }}-wait}
subjects:
  - {kind: ServiceAccount, name: {{ $service }}-api, namespace: {{ .Release.Namespace }}}
  - {kind: ServiceAccount, name: {{ $service }}-jobs, namespace: {{ .Release.Namespace }}}
{{- end }}
{{- end -}}
