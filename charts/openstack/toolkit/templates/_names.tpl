{{/* Labels of an object. Takes: root, component. */}}
{{- define "toolkit.labels" -}}
{{ include "toolkit.selector" . }}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{/* The labels that pods are selected by. They may never change: a workload's selector is immutable. */}}
{{- define "toolkit.selector" -}}
release_group: {{ .root.Values.release_group | default .root.Release.Name }}
application: {{ .root.Chart.Name }}
component: {{ .component }}
{{- end -}}

{{/* Annotations given for one name in `annotations.<kind>`, laid over those for `default`. Takes: root, kind, name. */}}
{{- define "toolkit.annotations" -}}
{{- $all := index (.root.Values.annotations | default dict) .kind | default dict -}}
{{- $found := merge dict (index $all .name | default dict) ($all.default | default dict) -}}
{{- if $found }}{{ toYaml $found }}{{ end -}}
{{- end -}}

{{/* The image of a task. Takes: root, image (a key of `images.tags`). */}}
{{- define "toolkit.image" -}}
{{- $tag := index .root.Values.images.tags .image -}}
{{- if not $tag }}{{ fail (printf "%s: images.tags.%s is not set: name the image of this task" .root.Chart.Name .image) }}{{ end -}}
{{ $tag }}
{{- end -}}

{{/* "db-sync" -> "db_sync": the key of a task in `manifests` and `dependencies.static`. */}}
{{- define "toolkit.key" -}}
{{ . | replace "-" "_" }}
{{- end -}}
