//! The folder of a training: what its checkpoints were made with.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::config::TrainConfig;
use crate::key::Digest;
use crate::whole_file;

/// The file that tells which data were learned from.
const DATA: &str = "data.sha256";

/// Keeps the configuration beside its checkpoints, and refuses to go on with another one: stages
/// that are finished would be taken for the new configuration's.
pub(super) fn same_training(config: &TrainConfig, out: &Path) -> Result<()> {
    let path = out.join("train.toml");
    let text = toml::to_string_pretty(config).context("cannot write the configuration")?;
    match std::fs::read_to_string(&path) {
        Ok(before) if before == text => Ok(()),
        Ok(_) => bail!(
            "{}: the checkpoints beside it are of another configuration\n\
             hint: name another folder with --out, or move this one away",
            path.display()
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            empty(out)?;
            whole_file::write(&path, text.as_bytes())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Refuses a folder that holds anything else than a training.
fn empty(out: &Path) -> Result<()> {
    let mut entries =
        std::fs::read_dir(out).with_context(|| format!("cannot read {}", out.display()))?;
    if entries.next().is_some() {
        bail!(
            "--out {}: it holds files that are no training's\n\
             hint: name a folder that is empty or does not exist",
            out.display()
        );
    }
    Ok(())
}

/// Keeps the hash of all that is learned from beside the checkpoints, and refuses to go on with
/// other data: half of the stages would have learned from something else.
pub(super) fn same_data(data: Option<Digest>, out: &Path) -> Result<()> {
    let path = out.join(DATA);
    let text = data.map_or_else(|| "none\n".to_owned(), |digest| format!("{digest}\n"));
    match std::fs::read_to_string(&path) {
        Ok(before) if before == text => Ok(()),
        Ok(before) => bail!(
            "{}: the checkpoints beside it learned from {}, this run from {}\n\
             hint: give the same --data, or name another folder with --out",
            path.display(),
            named(&before),
            named(&text)
        ),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            whole_file::write(&path, text.as_bytes())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn named(data: &str) -> String {
    match data.trim() {
        "none" => "phantoms alone".to_owned(),
        digest => format!("data {}", digest.get(..8).unwrap_or(digest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_configuration_is_refused_in_a_used_folder() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let mut config = TrainConfig::read(&path).unwrap();
        let out = tempfile::tempdir().unwrap();
        same_training(&config, out.path()).unwrap();
        same_training(&config, out.path()).unwrap();
        config.stages[0].rate *= 2.0;
        let error = same_training(&config, out.path()).unwrap_err().to_string();
        assert!(error.contains("train.toml: the checkpoints"), "{error}");
        assert!(error.contains("hint: name another folder"), "{error}");
    }

    #[test]
    fn other_data_are_refused_in_a_used_folder() {
        let out = tempfile::tempdir().unwrap();
        let data = Digest::of(b"questions");
        same_data(Some(data), out.path()).unwrap();
        same_data(Some(data), out.path()).unwrap();
        let error = same_data(None, out.path()).unwrap_err().to_string();
        assert!(error.contains("this run from phantoms alone"), "{error}");
        assert!(error.contains("hint: give the same --data"), "{error}");
    }
}
