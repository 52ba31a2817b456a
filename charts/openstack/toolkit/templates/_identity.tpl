{{/* The keys of a Secret that holds an identity. */}}
{{- define "toolkit.identity.keys" -}}
OS_AUTH_URL OS_REGION_NAME OS_USERNAME OS_PASSWORD OS_PROJECT_NAME OS_USER_DOMAIN_NAME OS_PROJECT_DOMAIN_NAME OS_ROLES
{{- end -}}

{{/* An identity of `endpoints.identity.auth` as a Secret that a client can load. Takes: root, user, name. */}}
{{- define "toolkit.identity.secret" -}}
{{- $auth := index .root.Values.endpoints.identity.auth .user -}}
{{- include "toolkit.secret" (dict "root" .root "name" .name "component" (printf "identity-%s" .user) "data" (dict
  "OS_AUTH_URL" (include "toolkit.endpoint.uri" (dict "root" .root "type" "identity" "class" "internal"))
  "OS_REGION_NAME" $auth.region_name
  "OS_USERNAME" $auth.username
  "OS_PASSWORD" (include "toolkit.password" (dict "root" .root "path" (printf "endpoints.identity.auth.%s.password" .user)))
  "OS_PROJECT_NAME" $auth.project_name
  "OS_USER_DOMAIN_NAME" $auth.user_domain_name
  "OS_PROJECT_DOMAIN_NAME" $auth.project_domain_name
  "OS_ROLES" ($auth.role | default "")
  "OS_INTERFACE" "internal"
  "OS_IDENTITY_API_VERSION" "3"))
-}}
{{- end -}}

{{/* A database user of `endpoints.oslo_db.auth` as a Secret. Takes: root, user, name. */}}
{{- define "toolkit.database.secret" -}}
{{- $urls := dict -}}
{{- range $variable, $database := include "toolkit.endpoint.databases" . | fromJson -}}
{{- $_ := set $urls $variable (include "toolkit.endpoint.database" (dict "root" $.root "user" $.user "database" $database)) -}}
{{- end -}}
{{- include "toolkit.secret" (dict "root" .root "name" .name "component" (printf "oslo-db-%s" .user) "data" $urls) -}}
{{- end -}}

{{/* All Secrets of an API service: database root and user, Keystone admin and user. Takes the root. */}}
{{- define "toolkit.secrets.service" -}}
{{- $root := . -}}
{{- if .Values.manifests.secret_db }}
{{- range $user, $name := .Values.secrets.oslo_db }}
---
{{ include "toolkit.database.secret" (dict "root" $root "user" $user "name" $name) }}
{{- end }}
{{- end }}
{{- if .Values.manifests.secret_keystone }}
{{- range $user, $name := .Values.secrets.identity }}
---
{{ include "toolkit.identity.secret" (dict "root" $root "user" $user "name" $name) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What a service needs to use another one as its own user, as JSON of a map of options. Takes the root. */}}
{{- define "toolkit.identity.client" -}}
{{- $auth := index .Values.endpoints.identity.auth .Chart.Name -}}
{{ toJson (dict
  "auth_type" "password"
  "auth_url" (include "toolkit.endpoint.uri" (dict "root" . "type" "identity" "class" "internal"))
  "region_name" $auth.region_name
  "username" $auth.username
  "password" (include "toolkit.password" (dict "root" . "path" (printf "endpoints.identity.auth.%s.password" .Chart.Name)) | include "toolkit.oslo.secret")
  "project_name" $auth.project_name
  "user_domain_name" $auth.user_domain_name
  "project_domain_name" $auth.project_domain_name
  "valid_interfaces" "internal") }}
{{- end -}}

{{/* [keystone_authtoken] of a service, as JSON of a map of options. Takes the root. */}}
{{- define "toolkit.identity.authtoken" -}}
{{- $auth := index .Values.endpoints.identity.auth .Chart.Name -}}
{{- $keystone := dict "root" . "type" "identity" -}}
{{ toJson (dict
  "www_authenticate_uri" (include "toolkit.endpoint.uri" (merge (dict "class" "public") $keystone))
  "auth_url" (include "toolkit.endpoint.uri" (merge (dict "class" "internal") $keystone))
  "region_name" $auth.region_name
  "username" $auth.username
  "password" (include "toolkit.password" (dict "root" . "path" (printf "endpoints.identity.auth.%s.password" .Chart.Name)) | include "toolkit.oslo.secret")
  "project_name" $auth.project_name
  "user_domain_name" $auth.user_domain_name
  "project_domain_name" $auth.project_domain_name
  "memcached_servers" (include "toolkit.endpoint.address" (dict "root" . "type" "oslo_cache" "class" "internal" "port" "memcache"))
  "memcache_secret_key" (include "toolkit.password" (dict "root" . "path" "endpoints.oslo_cache.auth.memcache_secret_key") | include "toolkit.oslo.secret")) }}
{{- end -}}
