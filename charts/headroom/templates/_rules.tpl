{{/* Rules for values that the schema could state only as regular expressions, which Helm would print. */}}
{{- define "headroom.checkValues" -}}
{{- $digest := "empty, or sha256: and 64 hexadecimal digits as docker push prints it" -}}
{{- $interval := "a number with a unit (ms, s or m), such as 15s" -}}
{{- range $rule := list
  (list "tick" .Values.tick "^([2-9][0-9]{2}|[1-5][0-9]{4}|[1-9][0-9]{3})ms$|^([1-9]|[1-5][0-9]|60)s$|^1m$" "a whole number of ms or s from 200ms to 60s, such as 2s")
  (list "image.digest" .Values.image.digest "^(sha256:[0-9a-f]{64})?$" $digest)
  (list "gateway.image.digest" .Values.gateway.image.digest "^(sha256:[0-9a-f]{64})?$" $digest)
  (list "monitoring.serviceMonitor.interval" .Values.monitoring.serviceMonitor.interval "^[0-9]+(ms|s|m)$" $interval)
  (list "monitoring.podMonitor.interval" .Values.monitoring.podMonitor.interval "^[0-9]+(ms|s|m)$" $interval)
}}
{{- include "headroom.check" $rule -}}
{{- end -}}
{{- range $name, $url := .Values.prometheus.sources -}}
{{- include "headroom.check" (list "a name in prometheus.sources" $name "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" "a DNS label: at most 63 lower-case letters, digits and -") -}}
{{- /* Not printed: it may have a password. */}}
{{- if not (regexMatch `^https?://[^/?#@\s]+(/[^?#\s]*)?$` $url) -}}
{{- fail (printf "prometheus.sources.%s must be a URL with only scheme, host, port and path: no credentials, query, fragment or space" $name) -}}
{{- end -}}
{{- end -}}
{{- range $path, $resources := dict "resources" .Values.resources "gateway.resources" .Values.gateway.resources -}}
{{- range $kind, $quantities := $resources -}}
{{- range $name, $value := $quantities -}}
{{- include "headroom.check" (list (printf "%s.%s.%s" $path $kind $name) $value "^[0-9]+(\\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi)?$" "a quantity of at least 0 with a unit of Kubernetes (m, k, Ki, M, Mi, G or Gi) or none, such as 100m or 128Mi") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fails unless a text matches or a number is at least 0; takes (list path value pattern rule). */}}
{{- define "headroom.check" -}}
{{- $value := index . 1 -}}
{{- $good := ternary (regexMatch (index . 2) (toString $value)) (ge (float64 $value) 0.0) (kindIs "string" $value) -}}
{{- if not $good -}}
{{- fail (printf "%s must be %s; got %v" (index . 0) (index . 3) $value) -}}
{{- end -}}
{{- end -}}
