{{/* The entry for a class of users (public, internal, admin) in a map that may hold only `default`. Takes: map, class. */}}
{{- define "toolkit.endpoint.lookup" -}}
{{- $found := index (.map | default dict) .class | default (index (.map | default dict) "default") -}}
{{- if kindIs "float64" $found }}{{ $found = int64 $found }}{{ end -}}
{{ $found | default "" }}
{{- end -}}

{{/* A name that the cluster's DNS does not make: it is used as it stands and no Service is waited for. Takes: endpoint, class. */}}
{{- define "toolkit.endpoint.foreign_host" -}}
{{- $override := index (.endpoint.host_fqdn_override | default dict) .class | default (index (.endpoint.host_fqdn_override | default dict) "default") -}}
{{- if kindIs "map" $override }}{{ $override = $override.host }}{{ end -}}
{{- $host := include "toolkit.endpoint.lookup" (dict "map" .endpoint.hosts "class" .class) -}}
{{- if $override }}{{ $override }}{{ else if regexMatch "[.:]" $host }}{{ $host }}{{ end -}}
{{- end -}}

{{/* Takes: root, type, class. */}}
{{- define "toolkit.endpoint.host" -}}
{{- $endpoint := index .root.Values.endpoints .type -}}
{{- $foreign := include "toolkit.endpoint.foreign_host" (dict "endpoint" $endpoint "class" .class) -}}
{{- if $foreign }}{{ $foreign }}{{ else -}}
{{ include "toolkit.endpoint.lookup" (dict "map" $endpoint.hosts "class" .class) }}.{{ $endpoint.namespace | default .root.Release.Namespace }}.svc.{{ .root.Values.endpoints.cluster_domain_suffix }}
{{- end -}}
{{- end -}}

{{/* Takes: root, type, class, port (a key of the endpoint's `port`). */}}
{{- define "toolkit.endpoint.port" -}}
{{- $endpoint := index .root.Values.endpoints .type -}}
{{ include "toolkit.endpoint.lookup" (dict "map" (index $endpoint.port .port) "class" .class) }}
{{- end -}}

{{/* host:port. Takes: root, type, class, port. */}}
{{- define "toolkit.endpoint.address" -}}
{{ include "toolkit.endpoint.host" . }}:{{ include "toolkit.endpoint.port" . }}
{{- end -}}

{{/* scheme://host:port/path of an API. Takes: root, type, class. */}}
{{- define "toolkit.endpoint.uri" -}}
{{- $endpoint := index .root.Values.endpoints .type -}}
{{- $scheme := include "toolkit.endpoint.lookup" (dict "map" $endpoint.scheme "class" .class) -}}
{{- $path := include "toolkit.endpoint.lookup" (dict "map" $endpoint.path "class" .class) -}}
{{ $scheme }}://{{ include "toolkit.endpoint.address" (merge (dict "port" "api") .) }}{{ $path }}
{{- end -}}

{{/*
The SQLAlchemy URL of a database user. Takes: root, user (a key of `endpoints.oslo_db.auth`), database (may be "").
The password is percent-encoded: it may hold any character.
*/}}
{{- define "toolkit.endpoint.database" -}}
{{- $db := .root.Values.endpoints.oslo_db -}}
{{- $user := index $db.auth .user -}}
{{- $password := include "toolkit.password" (dict "root" .root "path" (printf "endpoints.oslo_db.auth.%s.password" .user)) -}}
{{- $scheme := include "toolkit.endpoint.lookup" (dict "map" $db.scheme "class" "internal") -}}
{{- $address := include "toolkit.endpoint.address" (dict "root" .root "type" "oslo_db" "class" "internal" "port" "mysql") -}}
{{ $scheme }}://{{ $user.username }}:{{ $password | urlquery | replace "+" "%20" }}@{{ $address }}
{{- if .database }}{{ .database }}?charset=utf8mb4{{ end -}}
{{- end -}}

{{/*
The databases of a user, as JSON of a map of the variable that holds the URL to the database: `path.<user>` is
DB_CONNECTION, `path.<user>_<more>` DB_CONNECTION_<MORE>. The administrator has none. Takes: root, user.
*/}}
{{- define "toolkit.endpoint.databases" -}}
{{- $names := dict -}}
{{- if eq .user "admin" }}{{ $_ := set $names "DB_CONNECTION" "" }}{{ else -}}
{{- with include "toolkit.endpoint.lookup" (dict "map" .root.Values.endpoints.oslo_db.path "class" .user) }}{{ $_ := set $names "DB_CONNECTION" . }}{{ end -}}
{{- range $key, $path := .root.Values.endpoints.oslo_db.path -}}
{{- if hasPrefix (printf "%s_" $.user) $key }}{{ $_ := set $names (printf "DB_CONNECTION_%s" (trimPrefix (printf "%s_" $.user) $key | upper)) $path }}{{ end -}}
{{- end -}}
{{- end -}}
{{ toJson $names }}
{{- end -}}

{{/* The URL of a service's user and virtual host at the message broker, as an oslo.config value. Takes the root. */}}
{{- define "toolkit.endpoint.transport" -}}
{{- $broker := .Values.endpoints.oslo_messaging -}}
{{- $user := index $broker.auth .Chart.Name -}}
{{- $password := include "toolkit.password" (dict "root" . "path" (printf "endpoints.oslo_messaging.auth.%s.password" .Chart.Name)) -}}
{{- $scheme := include "toolkit.endpoint.lookup" (dict "map" $broker.scheme "class" "internal") -}}
{{- $address := include "toolkit.endpoint.address" (dict "root" . "type" "oslo_messaging" "class" "internal" "port" "amqp") -}}
{{ $scheme }}://{{ $user.username }}:{{ $password | urlquery | replace "+" "%20" }}@{{ $address }}{{ include "toolkit.endpoint.lookup" (dict "map" $broker.path "class" .Chart.Name) }}
{{- end -}}

{{/* A password or key that has no default: the render stops with its name. Takes: root, path. */}}
{{- define "toolkit.password" -}}
{{- $at := .root.Values -}}
{{- range splitList "." .path }}{{ $at = index ($at | default dict) . }}{{ end -}}
{{- if not $at -}}
{{- fail (printf "%s: the value %s is not set. Passwords have no defaults: give it in a values file (-f); charts/openstack/make-values.sh writes one with random passwords for all charts" .root.Chart.Name .path) -}}
{{- end -}}
{{- if regexMatch "[[:cntrl:]]" (toString $at) -}}
{{- fail (printf "%s: the value %s holds a line break or control character: it cannot be written to a configuration file" .root.Chart.Name .path) -}}
{{- end -}}
{{- toString $at -}}
{{- end -}}
