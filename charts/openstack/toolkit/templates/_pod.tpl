{{/*
The spec of a pod with one container. Takes:
  root, component   whose replicas, resources, probes, labels and dependencies apply
  container         the container's name
  image             a key of `images.tags`
  command           a list
  args              a list (optional)
  env               a list of environment entries (optional)
  mounts            a list of the standard volumes: etc, bin, tmp, state
  etc               which configuration is mounted as etc; "etc" when not given
  volumes           a list of {name, mountPath, readOnly, mountPropagation, source} of its own (optional)
  port              {name, number} (optional)
  settings          the key of `pod.resources` and `labels`: the component itself, or "job"
  placement         the key of `labels`, when it is another one
  like              the component whose settings apply, when it is another one
  daemon            true for a pod of a DaemonSet, which has no replicas to keep apart
  serviceAccount    the account that the init container waits with (optional: without it nothing is waited for)
  apiAccess         true when the container itself talks to the Kubernetes API
  restartPolicy     (optional)
  preStop           a command that runs before the container is ended (optional; `pod.lifecycle.pre_stop_pause` wins)
  prepare           what runs before in a container of its own: {command, env, volumes}; it has the standard volumes too (optional)
  host              what the pod shares with its node: a list of network, pid (optional)
  shareProcesses    true when the container leaves children behind that somebody has to reap
  affinity          in place of keeping replicas apart (optional)
Keys of values are the component with _ for -.
*/}}
{{- define "toolkit.pod" -}}
{{- $root := .root -}}
{{- $pod := $root.Values.pod -}}
{{- $like := .like | default .component -}}
{{- $settings := include "toolkit.key" (.settings | default $like) -}}
{{- $component := include "toolkit.key" $like -}}
{{- $host := .host | default list -}}
{{- $waits := and .serviceAccount (include "toolkit.wait.any" .) -}}
{{- $volumes := concat (include "toolkit.pod.standard_volumes" . | fromYamlArray) (.volumes | default list) -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- if or $waits .apiAccess }}
serviceAccountName: {{ .serviceAccount }}
{{- end }}
{{- with .restartPolicy }}
restartPolicy: {{ . }}
{{- end }}
{{- if has "network" $host }}
hostNetwork: true
# Names of Services are looked up all the same.
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- if has "pid" $host }}
hostPID: true
{{- end }}
{{- if .shareProcesses }}
shareProcessNamespace: true
{{- end }}
{{- with index ($pod.lifecycle.termination_grace_period | default dict) $component }}
terminationGracePeriodSeconds: {{ .timeout }}
{{- end }}
{{- with index ($pod.priorityClassName | default dict) $component }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- include "toolkit.pod.security" $root | nindent 2 }}
{{- with include "toolkit.pod.placement" (dict "root" $root "component" .component "settings" $settings "placement" (include "toolkit.key" (.placement | default $settings)) "affinity" .affinity "daemon" .daemon) }}
{{ . }}
{{- end }}
{{- if or $waits .prepare }}
initContainers:
  {{- if $waits }}
  - {{ include "toolkit.wait.container" . | indent 4 | trim }}
  {{- end }}
  {{- if .prepare }}
  - {{ include "toolkit.prepare.container" . | indent 4 | trim }}
  {{- end }}
{{- end }}
containers:
  - name: {{ .container }}
    image: {{ include "toolkit.image" . }}
    imagePullPolicy: {{ $root.Values.images.pull_policy }}
    command:
      {{- toYaml .command | nindent 6 }}
    {{- with .args }}
    args:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    env:
      - {name: HOME, value: /tmp}
      {{- with .env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with .port }}
    ports:
      - name: {{ .name }}
        containerPort: {{ .number }}
    {{- end }}
    {{- with include "toolkit.probes" . }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- $pause := index ($pod.lifecycle.pre_stop_pause | default dict) $component }}
    {{- if $pause }}
    lifecycle:
      preStop: {sleep: {seconds: {{ $pause.seconds }}}}
    {{- else if .preStop }}
    lifecycle:
      preStop: {exec: {command: {{ toJson .preStop }}}}
    {{- end }}
    securityContext:
      {{- include "toolkit.container.security" (dict "root" $root "container" .container) | nindent 6 }}
    {{- with include "toolkit.resources" (dict "root" $root "settings" $settings) }}
    resources:
      {{- . | nindent 6 }}
    {{- end }}
    {{- if $volumes }}
    volumeMounts:
      {{- range $volumes }}
      - name: {{ .name }}
        mountPath: {{ .mountPath }}
        {{- if .readOnly }}
        readOnly: true
        {{- end }}
        {{- with .mountPropagation }}
        mountPropagation: {{ . }}
        {{- end }}
      {{- end }}
      {{- if .apiAccess }}
      {{- include "toolkit.token.mount" . | nindent 6 }}
      {{- end }}
    {{- end }}
volumes:
  {{- range concat $volumes (dig "volumes" list (.prepare | default dict)) }}
  {{- if .source }}
  - name: {{ .name }}
    {{- toYaml .source | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- if or $waits .apiAccess }}
  {{- include "toolkit.token.volume" . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* What runs before the pod's container and may see what that must not. */}}
{{- define "toolkit.prepare.container" -}}
name: prepare
image: {{ include "toolkit.image" . }}
imagePullPolicy: {{ .root.Values.images.pull_policy }}
command:
  {{- toYaml .prepare.command | nindent 2 }}
env:
  - {name: HOME, value: /tmp}
  {{- with .prepare.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
securityContext:
  {{- include "toolkit.container.security" (dict "root" .root "container" "prepare") | nindent 2 }}
{{- with include "toolkit.resources" (dict "root" .root "settings" "job") }}
resources:
  {{- . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- range concat (include "toolkit.pod.standard_volumes" . | fromYamlArray) .prepare.volumes }}
  - {name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: {{ .readOnly | default false }}}
  {{- end }}
{{- end -}}

{{/* The volumes that most pods share, by name in `mounts`. */}}
{{- define "toolkit.pod.standard_volumes" -}}
{{- $service := .root.Chart.Name -}}
{{- if has "etc" .mounts }}
- name: etc
  mountPath: /etc/{{ $service }}
  readOnly: true
  source: {secret: {secretName: {{ include "toolkit.config.name" (dict "root" .root "kind" (.etc | default "etc")) }}, defaultMode: 0440}}
{{- end }}
{{- if has "bin" .mounts }}
- name: bin
  mountPath: /scripts
  readOnly: true
  source: {configMap: {name: {{ include "toolkit.config.name" (dict "root" .root "kind" "bin") }}}}
{{- end }}
{{- if has "tmp" .mounts }}
- {name: tmp, mountPath: /tmp, source: {emptyDir: {}}}
{{- end }}
{{- if has "state" .mounts }}
- {name: state, mountPath: /var/lib/{{ $service }}, source: {emptyDir: {}}}
{{- end }}
{{- end -}}

{{/* The hardened pod context, with what `pod.security_context.<service>.pod` changes. Takes the root. */}}
{{- define "toolkit.pod.security" -}}
{{- $given := index (.Values.pod.security_context | default dict) .Chart.Name | default dict -}}
{{- $context := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- range $key, $value := $given.pod }}{{ $_ := set $context $key $value }}{{ end -}}
{{ toYaml $context }}
{{- end -}}

{{/* The same for a container: `pod.security_context.<service>.container.<name>`. Takes: root, container. */}}
{{- define "toolkit.container.security" -}}
{{- $given := index (.root.Values.pod.security_context | default dict) .root.Chart.Name | default dict -}}
{{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- range $key, $value := index ($given.container | default dict) (include "toolkit.key" .container) }}{{ $_ := set $context $key $value }}{{ end -}}
{{ toYaml $context }}
{{- end -}}

{{/* Node selector, tolerations and spreading. Takes: root, component, settings, placement, affinity, daemon. */}}
{{- define "toolkit.pod.placement" -}}
{{- $pod := .root.Values.pod -}}
{{- $placement := dict -}}
{{- with index (.root.Values.labels | default dict) .placement -}}
{{- if .node_selector_key }}{{ $_ := set $placement "nodeSelector" (dict .node_selector_key (toString (.node_selector_value | default ""))) }}{{ end -}}
{{- end -}}
{{- $tolerations := $pod.tolerations | default dict -}}
{{- with index $tolerations .placement | default (index $tolerations .root.Chart.Name) -}}
{{- if .enabled }}{{ $_ := set $placement "tolerations" .tolerations }}{{ end -}}
{{- end -}}
{{- if .affinity }}{{ $_ := set $placement "affinity" .affinity -}}
{{- else if not (or (eq .settings "job") .daemon) }}{{ $_ := set $placement "affinity" (include "toolkit.pod.spread" . | fromYaml) }}{{ end -}}
{{- if $placement }}{{ toYaml $placement }}{{ end -}}
{{- end -}}

{{/* Replicas keep away from each other, as `pod.affinity.anti` says. */}}
{{- define "toolkit.pod.spread" -}}
{{- $anti := .root.Values.pod.affinity.anti -}}
{{- $soft := eq $anti.type.default "preferredDuringSchedulingIgnoredDuringExecution" -}}
{{- $term := dict "topologyKey" $anti.topologyKey.default "labelSelector" (dict "matchLabels" (include "toolkit.selector" . | fromYaml)) -}}
{{- if $soft }}{{ $term = dict "weight" $anti.weight.default "podAffinityTerm" $term }}{{ end -}}
{{ toYaml (dict "podAntiAffinity" (dict $anti.type.default (list $term))) }}
{{- end -}}

{{/* Takes: root, settings. */}}
{{- define "toolkit.resources" -}}
{{- $resources := .root.Values.pod.resources -}}
{{- if $resources.enabled }}{{ with index $resources (ternary "jobs" .settings (eq .settings "job")) }}{{ toYaml . }}{{ end }}{{ end -}}
{{- end -}}

{{/* The probes of `pod.probes.<component>.<container>`; jobs have none. Takes: root, component, container. */}}
{{- define "toolkit.probes" -}}
{{- $result := dict -}}
{{- range $kind, $probe := index (index (.root.Values.pod.probes | default dict) (include "toolkit.key" (.like | default .component)) | default dict) (include "toolkit.key" .container) -}}
{{- if $probe.enabled }}{{ $_ := set $result (printf "%sProbe" $kind) $probe.params }}{{ end -}}
{{- end -}}
{{- if $result }}{{ toYaml $result }}{{ end -}}
{{- end -}}
