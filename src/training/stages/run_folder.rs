//! The folder of a training: what its checkpoints were made with.
//!
//! Until there is a checkpoint nothing has been learned, and nothing is lost with another configuration
//! or other data: a first start that failed does not stand in the way of the mended one.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::checkpoints::panel::spec::TOKENIZER_FILE;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::support::files::folder::{FolderLock, create_folder, list_names};
use crate::training::config::stage_config::StageConfig;
use crate::training::config::train_config::TrainConfig;

/// The configuration that was trained with.
const CONFIG: &str = "train.toml";
/// The file that tells which data were learned from.
const DATA: &str = "data.sha256";

/// Takes a folder for the training of a configuration, which it keeps beside the checkpoints; it is made
/// if need be.
///
/// # Errors
/// A folder of something else, another process that trains there, and checkpoints of another
/// configuration: stages that are finished would be taken for the new one's.
pub(crate) fn take(config: &TrainConfig, out: &Path) -> Result<FolderLock> {
    create_folder(out)?;
    // Before anything is written: what is somebody's own stays as it is.
    check_own(out)?;
    let lock = FolderLock::acquire(out)?;
    let text = toml::to_string_pretty(config).context("cannot write the configuration")?;
    let path = out.join(CONFIG);
    if may_go_on(out, config, &list_names(out)?) {
        atomic_file::write(&path, text.as_bytes())?;
        return Ok(lock);
    }
    same(&path, &text, |_| {
        "the checkpoints beside it are of another configuration\n\
         hint: name another folder with --out, or move this one away; a stage that has not begun may be changed, of one \
         in progress its rate, warmup, clip and validate_every, and all of it when the files that begin with its name and \
         a point are removed"
            .to_owned()
    })?;
    Ok(lock)
}

/// Whether a configuration differs from that of the checkpoints in stages alone of which there is nothing yet, and in the
/// pace of the one in progress. A rate may have been too high, and what was learned before is not lost.
fn may_go_on(out: &Path, config: &TrainConfig, names: &[String]) -> bool {
    let before = fs::read_to_string(out.join(CONFIG)).ok();
    let before = before.and_then(|text| toml::from_str::<TrainConfig>(&text).ok());
    let Some(mut before) = before.filter(|_| names.iter().any(|name| is_learned(name))) else {
        return false;
    };
    let begun = |name: &str| {
        let beginning = format!("{name}.");
        names.iter().any(|file| file.starts_with(&beginning))
    };
    let stages = std::mem::replace(&mut before.stages, config.stages.clone());
    let text = |config: &TrainConfig| toml::to_string(config).ok();
    let stage = |stage: &StageConfig| toml::to_string(stage).ok();
    let mut kept = stages
        .iter()
        .zip(&config.stages)
        .take_while(|(old, new)| stage(old) == stage(new))
        .count();
    if let (Some(old), Some(new)) = (stages.get(kept), config.stages.get(kept)) {
        let at_its_pace = stage(&old.at_the_pace_of(new)) == stage(new);
        kept += usize::from(at_its_pace && !new.is_finished(out));
    }
    let mut changed = stages[kept..].iter().chain(&config.stages[kept..]);
    changed.all(|stage| !begun(&stage.name)) && text(&before) == text(config)
}

/// Keeps the hash of all that is learned from beside the checkpoints, and refuses to go on with
/// other data: half of the stages would have learned from something else.
pub(crate) fn same_data(data: Option<Digest>, out: &Path) -> Result<()> {
    let text = data.map_or_else(|| "none\n".to_owned(), |digest| format!("{digest}\n"));
    same(&out.join(DATA), &text, |before| {
        format!(
            "the checkpoints beside it learned from {}, this run from {}\n\
             hint: give the same --data, or name another folder with --out",
            named(before),
            named(&text)
        )
    })
}

/// Writes what the checkpoints beside a file are made with, or finds that it says the same; `other` is
/// what is said of checkpoints that were made with something else.
fn same(path: &Path, text: &str, other: impl Fn(&str) -> String) -> Result<()> {
    match fs::read_to_string(path) {
        Ok(before) if before == text => return Ok(()),
        Ok(before) => {
            let out = path.parent().unwrap_or(Path::new(""));
            if list_names(out)?.iter().any(|name| is_learned(name)) {
                bail!("{}: {}", path.display(), other(&before));
            }
            forget(out)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    }
    atomic_file::write(path, text.as_bytes())
}

/// Whether a file holds weights.
fn is_learned(name: &str) -> bool {
    name.ends_with(".safetensors")
}

/// Removes what a start that learned nothing has left: it would be taken for that of the next one.
fn forget(out: &Path) -> Result<()> {
    let left = |name: &String| {
        let ends = [".metrics.jsonl", ".rows", ".rows.json"];
        [DATA, TOKENIZER_FILE].contains(&name.as_str()) || ends.iter().any(|e| name.ends_with(e))
    };
    for name in list_names(out)?.into_iter().filter(left) {
        let path = out.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Refuses a folder that holds anything else than a training, or the beginning of one.
fn check_own(out: &Path) -> Result<()> {
    let begun = |name: &String| {
        let cut_off = [".part", ".partial"].iter().any(|end| name.ends_with(end));
        cut_off || name == FolderLock::FILE
    };
    let names = list_names(out)?;
    if !names.iter().any(|name| name == CONFIG) && !names.iter().all(begun) {
        bail!(
            "--out {}: it holds files that are no training's\n\
             hint: name a folder that is empty or does not exist",
            out.display()
        );
    }
    Ok(())
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

    fn config() -> TrainConfig {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        TrainConfig::read(&path).unwrap()
    }

    fn refusal<T>(result: Result<T>) -> String {
        result.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn another_configuration_is_refused_beside_checkpoints() {
        let mut config = config();
        let out = tempfile::tempdir().unwrap();
        take(&config, out.path()).unwrap();
        fs::write(out.path().join("encoder.running.safetensors"), "learned").unwrap();
        take(&config, out.path()).unwrap();
        config.stages[0].rate *= 2.0;
        take(&config, out.path()).unwrap();
        config.stages[0].batch *= 2;
        let error = refusal(take(&config, out.path()));
        assert!(error.contains("train.toml: the checkpoints"), "{error}");
        assert!(error.contains("hint: name another folder"), "{error}");
    }

    /// What is wrong with a later stage can be mended without losing those before it.
    #[test]
    fn a_stage_that_has_not_begun_may_be_changed() {
        let mut config = config();
        let out = tempfile::tempdir().unwrap();
        take(&config, out.path()).unwrap();
        for name in ["encoder.safetensors", "encoder.metrics.jsonl"] {
            fs::write(out.path().join(name), "learned").unwrap();
        }
        config.stages[1].rate /= 2.0;
        take(&config, out.path()).unwrap();
        let kept = fs::read_to_string(out.path().join(CONFIG)).unwrap();
        assert_eq!(kept, toml::to_string_pretty(&config).unwrap());
        assert!(out.path().join("encoder.safetensors").exists());
        let changed = |change: fn(&mut TrainConfig)| {
            let mut config = config.clone();
            change(&mut config);
            refusal(take(&config, out.path()))
        };
        let first = changed(|config| config.stages[0].rate /= 2.0);
        assert!(first.contains("of another configuration"), "{first}");
        let seed = changed(|config| config.seed += 1);
        assert!(seed.contains("of another configuration"), "{seed}");
        fs::write(out.path().join("align.running.safetensors"), "half").unwrap();
        let begun = changed(|config| config.stages[1].real /= 2.0);
        assert!(begun.contains("when the files that begin"), "{begun}");
    }

    #[test]
    fn a_start_that_learned_nothing_gives_way_to_the_mended_one() {
        let mut config = config();
        let out = tempfile::tempdir().unwrap();
        take(&config, out.path()).unwrap();
        same_data(None, out.path()).unwrap();
        let left = [TOKENIZER_FILE, "encoder.metrics.jsonl"].map(|name| out.path().join(name));
        for path in &left {
            fs::write(path, "of the first start").unwrap();
        }
        config.stages[0].rate *= 2.0;
        take(&config, out.path()).unwrap();
        let kept = fs::read_to_string(out.path().join(CONFIG)).unwrap();
        assert_eq!(kept, toml::to_string_pretty(&config).unwrap());
        assert!(left.iter().all(|path| !path.exists()));
        same_data(Some(Digest::of(b"questions")), out.path()).unwrap();
    }

    #[test]
    fn what_a_cut_off_start_left_is_no_stranger_s() {
        let out = tempfile::tempdir().unwrap();
        for name in [FolderLock::FILE, "train.part", "train.partial"] {
            fs::write(out.path().join(name), "").unwrap();
        }
        take(&config(), out.path()).unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("thesis.txt"), "years of work").unwrap();
        let error = refusal(take(&config(), other.path()));
        assert!(error.contains("no training's"), "{error}");
        assert_eq!(list_names(other.path()).unwrap(), ["thesis.txt"]);
    }

    #[test]
    fn nothing_is_written_beside_another_process() {
        let out = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(out.path()).unwrap();
        let error = refusal(take(&config(), out.path()));
        assert!(error.contains("another run is writing here"), "{error}");
        assert!(!out.path().join(CONFIG).exists());
        drop(lock);
    }

    #[test]
    fn other_data_are_refused_beside_checkpoints() {
        let out = tempfile::tempdir().unwrap();
        let data = Digest::of(b"questions");
        same_data(Some(data), out.path()).unwrap();
        fs::write(out.path().join("encoder.safetensors"), "learned").unwrap();
        same_data(Some(data), out.path()).unwrap();
        let error = refusal(same_data(None, out.path()));
        assert!(error.contains("this run from phantoms alone"), "{error}");
        assert!(error.contains("hint: give the same --data"), "{error}");
    }
}
