//! A tiny chart and the real Helm, for the tests of this folder.

use std::fs;
use std::path::Path;

use kupenstack_helm::{ChartRef, Cli, Settings};
use kupenstack_testkit::helm_program;
use tempfile::TempDir;

/// A chart written into a folder of its own.
pub(crate) struct Chart {
    folder: TempDir,
}

impl Chart {
    /// A ConfigMap, a Secret, a Job that is a hook, and what the test adds as file name and text.
    pub(crate) fn new(extra: &[(&str, &str)]) -> Self {
        let chart = Self { folder: tempfile::tempdir().unwrap() };
        chart.write("Chart.yaml", "apiVersion: v2\nname: tiny\nversion: 0.1.0\n");
        chart.write("values.yaml", "greeting: hello\nsecret: none\n");
        chart.write("templates/objects.yaml", OBJECTS);
        for (name, text) in extra {
            chart.write(name, text);
        }
        chart
    }

    pub(crate) fn reference(&self) -> ChartRef {
        ChartRef::Path(self.folder.path().to_owned())
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

const OBJECTS: &str = r#"# Source comments and empty documents are part of what Helm prints.
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  annotations:
    served: {{ .Capabilities.APIVersions.Has "example.com/v1/Thing" | quote }}
    kubernetes: {{ .Capabilities.KubeVersion.Version }}
data:
  greeting: {{ .Values.greeting | quote }}
---
{{- if .Values.nothing }}
kind: Nothing
{{- end }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}
stringData:
  secret: {{ .Values.secret | quote }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations:
    helm.sh/hook: post-install,post-upgrade
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: run, image: none}]
"#;

/// A Helm to test, by its label. `None` where there is none of it; one there has to be.
pub(crate) async fn helm(label: &str, kubeconfig: Option<&Path>) -> Option<Cli> {
    let program = helm_program(label)?;
    let settings = Settings { program, kubeconfig: kubeconfig.map(Path::to_owned), ..Settings::from_env() };
    Some(Cli::new(settings).await.unwrap_or_else(|error| {
        panic!("no usable Helm: set HELM_BIN or put helm in PATH (`./dev/test` does): {error:?}")
    }))
}
