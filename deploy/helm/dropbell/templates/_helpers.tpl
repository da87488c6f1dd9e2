{{- define "dropbell.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* Labels by which the pods of a component are selected; takes (list $ component). */}}
{{- define "dropbell.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "dropbell.labels" -}}
{{- $root := index . 0 -}}
{{ include "dropbell.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "dropbell.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The environment of every program, without what differs between components. */}}
{{- define "dropbell.env" -}}
- name: DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.database.existingSecret | quote }}, key: {{ .Values.database.urlKey | quote }}}}
- name: DATABASE_POOL_MODE
  value: {{ .Values.database.poolMode | quote }}
{{- with .Values.database.sessionURLKey }}
- name: DATABASE_SESSION_URL
  valueFrom: {secretKeyRef: {name: {{ $.Values.database.existingSecret | quote }}, key: {{ . | quote }}}}
{{- end }}
{{- with .Values.database.replicaURLKey }}
- name: DATABASE_REPLICA_URL
  valueFrom: {secretKeyRef: {name: {{ $.Values.database.existingSecret | quote }}, key: {{ . | quote }}}}
{{- end }}
{{- with .Values.database.cellsKey }}
- name: CELLS
  valueFrom: {secretKeyRef: {name: {{ $.Values.database.existingSecret | quote }}, key: {{ . | quote }}}}
{{- end }}
- name: DATABASE_MAX_CONNS
  value: {{ .Values.database.maxConns | quote }}
- name: REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.redis.existingSecret | quote }}, key: {{ .Values.redis.urlKey | quote }}}}
- name: PUBLIC_URL
  value: {{ required "publicURL is required: how browsers reach web, such as https://drops.example.com" .Values.publicURL | quote }}
{{- with .Values.metrics.token }}{{ if .existingSecret }}
- name: METRICS_TOKEN
  valueFrom: {secretKeyRef: {name: {{ .existingSecret | quote }}, key: {{ .key | quote }}}}
{{- end }}{{ end }}
{{- end }}

{{- /* Further variables; takes a list of maps, of which a later one replaces names of an earlier one. */}}
{{- define "dropbell.moreEnv" -}}
{{- $all := dict }}{{ range . }}{{ $all = mergeOverwrite $all (deepCopy (. | default dict)) }}{{ end }}
{{- range $name, $value := $all }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{- define "dropbell.envFrom" -}}
{{- with .Values.secretEnv }}
envFrom:
{{- range . }}
  - secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- /* The part of a pod's spec that all pods share. */}}
{{- define "dropbell.pod" -}}
serviceAccountName: {{ .Values.serviceAccountName }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
volumes:
  # Uploads pass through /tmp.
  - name: tmp
    emptyDir: {}
{{- end }}

{{- /* The part of a container that all containers share. */}}
{{- define "dropbell.container" -}}
image: {{ include "dropbell.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- /* Pods of a component on different zones and machines; takes (list $ component). */}}
{{- define "dropbell.spread" -}}
topologySpreadConstraints:
{{- $component := . }}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "dropbell.selector" $component | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}

{{- /* One pod at a time is moved when machines are drained; takes (list $ component). */}}
{{- define "dropbell.disruption" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "dropbell.fullname" (index . 0) }}-{{ index . 1 }}
  labels: {{ include "dropbell.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{ include "dropbell.selector" . | nindent 6 }}
{{- end }}

{{- /* Each role and each channel needs a worker. */}}
{{- define "dropbell.checkWorkers" -}}
{{- range $role := list "timers" "delivery" "events" "jobs" "gate" "house" }}
{{- $found := false }}
{{- range $group := $.Values.workers }}{{ if $group }}{{ if or (not $group.roles) (has $role $group.roles) }}{{ $found = true }}{{ end }}{{ end }}{{ end }}
{{- if not $found }}{{ fail (printf "no group of workers has the role %s: its work would wait for ever" $role) }}{{ end }}
{{- end }}
{{- range $channel := list "app" "email" "sms" "webpush" "webhook" }}
{{- $found := false }}
{{- range $group := $.Values.workers }}{{ if $group }}
{{- if and (or (not $group.roles) (has "delivery" $group.roles)) (or (not $group.channels) (has $channel $group.channels)) }}{{ $found = true }}{{ end }}
{{- end }}{{ end }}
{{- if not $found }}{{ fail (printf "no group of workers delivers the channel %s: its messages would wait for ever" $channel) }}{{ end }}
{{- end }}
{{- end }}

{{- /* Egress to DNS, PostgreSQL and Redis; takes networkPolicy. */}}
{{- define "dropbell.stores" }}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
- ports:
    {{- range .database.ports }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .database.to }}
  to: {{ toYaml . | nindent 4 }}
  {{- end }}
- ports:
    {{- range .redis.ports }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .redis.to }}
  to: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* Egress to providers; takes networkPolicy. */}}
{{- define "dropbell.outside" }}
- ports:
    {{- range .providers.ports }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  to:
    - ipBlock: {cidr: 0.0.0.0/0, except: [169.254.0.0/16]}
    - ipBlock: {cidr: "::/0", except: ["fe80::/10", "fd00:ec2::254/128"]}
{{- with .egress }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The spec of a Job; takes (list $ name command retries). */}}
{{- define "dropbell.job" }}
{{- $root := index . 0 }}{{ $name := index . 1 }}
backoffLimit: {{ index . 3 }}
# Exit code 2: the environment or the command is wrong, which no retry corrects.
podFailurePolicy:
  rules:
    - action: FailJob
      onExitCodes: {containerName: {{ $name }}, operator: In, values: [2]}
template:
  metadata:
    labels: {{ include "dropbell.labels" (list $root $name) | nindent 6 }}
  spec: {{ include "dropbell.pod" $root | nindent 4 }}
    restartPolicy: Never
    containers:
      - name: {{ $name }}
        command: {{ index . 2 | toJson }}
        {{- include "dropbell.container" $root | nindent 8 }}
        {{- with include "dropbell.envFrom" $root }}{{ . | nindent 8 }}{{ end }}
        env: {{ include "dropbell.env" $root | nindent 10 }}
          {{- with include "dropbell.moreEnv" (list $root.Values.env) }}{{ . | nindent 10 }}{{ end }}
        resources: {{ toYaml $root.Values.migrate.resources | nindent 10 }}
{{- end }}
