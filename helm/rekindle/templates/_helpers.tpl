{{- define "rekindle.name" -}}
{{- printf "%s-operator" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "rekindle.serviceAccount" -}}
{{- default (include "rekindle.name" .) .Values.serviceAccount.name -}}
{{- end }}

{{/* Cluster-wide objects carry the namespace, so that two releases do not meet. */}}
{{- define "rekindle.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "rekindle.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "rekindle.image" -}}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}{{ else }}{{ .image.repository }}:{{ default .version .image.tag }}{{ end -}}
{{- end }}

{{- define "rekindle.selector" -}}
app.kubernetes.io/name: rekindle
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rekindle.labels" -}}
{{ include "rekindle.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
