{{/*
A map of sections as an oslo.config file (also right for uwsgi, my.cnf, paste and logging files).
Takes: conf (the map), at (its name in the values, for messages).
*/}}
{{- define "toolkit.oslo" -}}
{{ include "toolkit.oslo.sections" . | trim }}
{{ end -}}

{{- define "toolkit.oslo.sections" -}}
{{- $at := .at -}}
{{- range $section, $options := .conf -}}
{{- if not (or (kindIs "map" $options) (kindIs "invalid" $options)) }}{{ fail (printf "%s.%s must be a map of options, it is a %s" $at $section (kindOf $options)) }}{{ end -}}
{{- if regexMatch "[\\]\\[\\n]" $section }}{{ fail (printf "%s: %q is no section name" $at $section) }}{{ end -}}
{{- if $options }}
[{{ $section }}]
{{- range $option, $value := $options -}}
{{- include "toolkit.oslo.option" (dict "option" $option "value" $value "at" (printf "%s.%s.%s" $at $section $option)) -}}
{{- end }}
{{ end -}}
{{- end -}}
{{- end -}}

{{/* The lines of one option. Takes: option, value, at. */}}
{{- define "toolkit.oslo.option" -}}
{{- if not (regexMatch "^[^=:#;\\s\\[\\]]([^=\\n]*[^=\\s])?$" .option) }}{{ fail (printf "%s: %q is no option name" .at .option) }}{{ end -}}
{{- if kindIs "map" .value -}}
{{- if eq (.value.type | default "") "multistring" -}}
{{- range .value.values }}
{{ $.option }} = {{ include "toolkit.oslo.scalar" (dict "value" . "at" $.at) }}
{{- end -}}
{{- else if eq (.value.type | default "") "csv" }}
{{ .option }} = {{ include "toolkit.oslo.list" (dict "value" .value.values "at" .at) }}
{{- else }}{{ fail (printf "%s is a map: an option is a scalar, a list or {type: multistring, values: [...]}" .at) }}{{ end -}}
{{- else if kindIs "slice" .value }}
{{ .option }} = {{ include "toolkit.oslo.list" . }}
{{- else if not (kindIs "invalid" .value) }}
{{ .option }} = {{ include "toolkit.oslo.scalar" . }}
{{- end -}}
{{- end -}}

{{- define "toolkit.oslo.list" -}}
{{- $words := list -}}
{{- range .value -}}
{{- $word := include "toolkit.oslo.scalar" (dict "value" . "at" $.at) -}}
{{- if contains "," $word }}{{ fail (printf "%s: the list item %q holds a comma: use {type: multistring} or write the option as one string" $.at $word) }}{{ end -}}
{{- $words = append $words $word -}}
{{- end -}}
{{ join "," $words }}
{{- end -}}

{{/* Numbers are printed as they were written: Go's own format turns 1000000 into 1e+06. Takes: value, at. */}}
{{- define "toolkit.oslo.scalar" -}}
{{- if or (kindIs "map" .value) (kindIs "slice" .value) }}{{ fail (printf "%s: a %s cannot be nested here" .at (kindOf .value)) }}{{ end -}}
{{- if kindIs "float64" .value -}}
{{- if or (gt .value 9007199254740991.0) (lt .value -9007199254740991.0) }}{{ fail (printf "%s: a number this large loses digits: put it in quotes" .at) }}{{ end -}}
{{ toJson .value }}
{{- else -}}
{{- $text := toString .value -}}
{{- /* an indented line goes on with the value; any other, and an empty one, would end it */ -}}
{{- if regexMatch "\\r|\\n([^ \\t]|[ \\t]*(\\n|$))" $text }}{{ fail (printf "%s holds a line break: it would start a new option" .at) }}{{ end -}}
{{ $text }}
{{- end -}}
{{- end -}}

{{/*
A secret as an option's value that means itself: oslo.config substitutes `$name`, and drops quotes around a value.
*/}}
{{- define "toolkit.oslo.secret" -}}
"{{ . | replace "$" "$$" }}"
{{- end -}}

{{/* Options that the chart knows, laid under those the user gave, as JSON. Takes: user, computed (both maps of sections). */}}
{{- define "toolkit.oslo.under" -}}
{{- $result := deepCopy (.user | default dict) -}}
{{- range $section, $options := .computed -}}
{{- $have := index $result $section | default dict -}}
{{- range $option, $value := $options -}}
{{- if not (hasKey $have $option) }}{{ $_ := set $have $option $value }}{{ end -}}
{{- end -}}
{{- $_ := set $result $section $have -}}
{{- end -}}
{{ toJson $result }}
{{- end -}}
