{{/* Prefix of all names: 40 characters leave space for suffixes such as "-operator". */}}
{{- define "headroom.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "headroom.operator" -}}
{{ include "headroom.fullname" . }}-operator
{{- end -}}

{{- define "headroom.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "headroom.operator" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "headroom.labels" -}}
app.kubernetes.io/part-of: headroom
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Selector of the operator's pods; immutable, as a Deployment's selector. */}}
{{- define "headroom.operatorSelector" -}}
app.kubernetes.io/name: headroom-operator
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "headroom.operatorLabels" -}}
app.kubernetes.io/name: headroom-operator
{{ include "headroom.labels" . }}
{{- end -}}

{{- define "headroom.image" -}}
{{ include "headroom.imageOf" (list . .Values.image) }}
{{- end -}}

{{/* Image reference from its values; takes (list root image). */}}
{{- define "headroom.imageOf" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default $root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{- define "headroom.priorityClassName" -}}
{{- if .Values.priorityClass.create -}}
{{- default (include "headroom.operator" .) .Values.priorityClass.name -}}
{{- else -}}
{{- .Values.priorityClass.name -}}
{{- end -}}
{{- end -}}

{{/* Rules of a role, read from the plain manifests; takes (list kind name). */}}
{{- define "headroom.rulesOf" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
{{- $name := index . 2 -}}
{{- range splitList "\n---\n" ($root.Files.Get "files/rbac.yaml") -}}
{{- $object := fromYaml . -}}
{{- if and (eq $object.kind $kind) (eq $object.metadata.name $name) -}}
{{ toYaml $object.rules }}
{{- end -}}
{{- end -}}
{{- end -}}
