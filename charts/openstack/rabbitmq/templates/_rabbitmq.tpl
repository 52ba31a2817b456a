{{/* rabbitmq.conf: options of one level, a list as option.1, option.2. */}}
{{- define "rabbitmq.conf" -}}
{{- $definitions := dict "definitions.import_backend" "local_filesystem" "definitions.local.path" "/etc/rabbitmq/definitions.json" -}}
{{- range $option, $value := merge dict (.Values.conf.rabbitmq | default dict) $definitions -}}
{{- if kindIs "slice" $value -}}
{{- range $index, $item := $value }}
{{ $option }}.{{ add1 $index }} = {{ include "toolkit.oslo.scalar" (dict "value" $item "at" (printf "conf.rabbitmq.%s" $option)) }}
{{- end -}}
{{- else if not (kindIs "invalid" $value) }}
{{ $option }} = {{ include "toolkit.oslo.scalar" (dict "value" $value "at" (printf "conf.rabbitmq.%s" $option)) }}
{{- end -}}
{{- end }}
{{ end -}}

{{/* Users, virtual hosts and rights, which the server imports at each start: a changed password holds from then on. */}}
{{- define "rabbitmq.definitions" -}}
{{- $root := . -}}
{{- $messaging := .Values.endpoints.oslo_messaging -}}
{{- $users := list -}}{{- $hosts := list -}}{{- $rights := list -}}
{{- range $key, $account := omit $messaging.auth "erlang_cookie" -}}
{{- if $account -}}
{{- $host := index $messaging.path $key | default "/" -}}
{{- if ne $host "/" }}{{ $host = trimPrefix "/" $host }}{{ end -}}
{{- $password := include "toolkit.password" (dict "root" $root "path" (printf "endpoints.oslo_messaging.auth.%s.password" $key)) -}}
{{- $users = append $users (dict "name" $account.username "password" $password "tags" (list)) -}}
{{- $hosts = append $hosts (dict "name" $host) -}}
{{- $rights = append $rights (dict "user" $account.username "vhost" $host "configure" ".*" "write" ".*" "read" ".*") -}}
{{- end -}}
{{- end -}}
{{ toJson (dict "users" $users "vhosts" ($hosts | uniq) "permissions" $rights) }}
{{- end -}}

{{- define "rabbitmq.etc" -}}
{{ toJson (dict "rabbitmq.conf" (include "rabbitmq.conf" . | trimPrefix "\n") "enabled_plugins" "[].\n" "definitions.json" (include "rabbitmq.definitions" .)
  "erlang.cookie" (include "toolkit.password" (dict "root" . "path" "endpoints.oslo_messaging.auth.erlang_cookie"))) }}
{{- end -}}

{{- define "rabbitmq.bin" -}}
{{ toJson (dict "start.sh" (.Files.Get "files/start.sh") "ping.sh" (.Files.Get "files/ping.sh")) }}
{{- end -}}

{{/* The server's name holds its pod's, so it finds its data again. "data" has no source: the claim is made for each pod. */}}
{{- define "rabbitmq.env" -}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: RABBITMQ_USE_LONGNAME, value: "true"}
- {name: RABBITMQ_NODENAME, value: "rabbit@$(POD_NAME).rabbitmq-nodes.{{ .Release.Namespace }}.svc.{{ .Values.endpoints.cluster_domain_suffix }}"}
- {name: RABBITMQ_LOGS, value: "-"}
- {name: RABBITMQ_CONFIG_FILE, value: /etc/rabbitmq/rabbitmq.conf}
- {name: RABBITMQ_ENABLED_PLUGINS_FILE, value: /etc/rabbitmq/enabled_plugins}
# Two schedulers that sleep when there is nothing to do: by default there is one per core, and each spins.
- {name: RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS, value: "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"}
{{- end -}}

{{- define "rabbitmq.volumes" -}}
- {name: data, mountPath: /var/lib/rabbitmq}
- {name: log, mountPath: /var/log/rabbitmq, source: {emptyDir: {}}}
{{- end -}}
