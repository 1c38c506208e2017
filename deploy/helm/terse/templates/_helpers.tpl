{{/* The labels of every object. */}}
{{- define "terse.labels" -}}
app.kubernetes.io/part-of: terse
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* What every container may: nothing beyond its own files. */}}
{{- define "terse.locked" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The user of every pod. */}}
{{- define "terse.user" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "terse.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{/* The names by which clients reach coordinator and authority. */}}
{{- define "terse.hosts" -}}
terse-coordinator terse-coordinator.{{ .Release.Namespace }}.svc terse-coordinator.{{ .Release.Namespace }}.svc.cluster.local
{{- range .Values.coordinator.extraHosts }} {{ . }}{{ end }}
{{- end }}

{{- define "terse.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}
