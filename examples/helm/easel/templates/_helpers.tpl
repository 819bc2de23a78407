{{- define "easel.selector" -}}
app.kubernetes.io/name: easel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "easel.labels" -}}
{{ include "easel.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "easel.image" -}}
image: {{ printf "%s:%v" .Values.image.repository .Values.image.tag | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}

{{- /* A normal user without rights; what Easel writes goes to volumes. */}}
{{- define "easel.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false # its variables EASEL_PORT and EASEL_SERVICE_HOST would be taken for settings
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "easel.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets/easel, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  - {name: data, mountPath: /var/lib/easel}
{{- end }}
