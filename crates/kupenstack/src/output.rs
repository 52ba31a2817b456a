//! Where generated text goes.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::Path,
};

use anyhow::Context;

/// Generated files by name.
pub(crate) type Files = BTreeMap<String, String>;

/// Writes the files into `dir`, or all of them to standard output as one YAML stream.
pub(crate) fn write(files: Files, dir: Option<&Path>) -> anyhow::Result<()> {
    let Some(dir) = dir else {
        let texts: Vec<_> = files.into_values().collect();
        return print(&texts.join("---\n"));
    };
    fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// Writes text to standard output. A reader that went away early, such as `head`, is fine.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e).context("write to standard output"),
        _ => Ok(()),
    }
}
