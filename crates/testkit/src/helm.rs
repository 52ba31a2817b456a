use std::env;
use std::path::PathBuf;

/// The Helm programs to test with, each with a label for messages: `helm` is the one that `HELM_BIN` names, else that in
/// `PATH`, and the one our operator brings along; `helm3` is the one that `HELM3_BIN` names, if it does.
pub fn helm_programs() -> Vec<(&'static str, PathBuf)> {
    let helm = env::var_os("HELM_BIN").map_or_else(|| PathBuf::from("helm"), PathBuf::from);
    let helm3 = env::var_os("HELM3_BIN").map(|path| ("helm3", PathBuf::from(path)));
    [("helm", helm)].into_iter().chain(helm3).collect()
}

/// The one of [`helm_programs`] with that label. A test that gets `None` has nothing to test; `./dev/test` has both.
pub fn helm_program(label: &str) -> Option<PathBuf> {
    helm_programs().into_iter().find(|(known, _)| *known == label).map(|(_, path)| path)
}
