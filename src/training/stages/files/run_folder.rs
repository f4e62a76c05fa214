//! Output folder of a training: checks that its checkpoints have the same configuration and data.
//!
//! A folder without checkpoints contains no results. After a failed start, the user may run again
//! with another configuration or other data.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::checkpoints::panel::spec::TOKENIZER_FILE;
use crate::support::files::atomic_file;
use crate::support::files::folder::{FolderLock, create_folder, list_names};
use crate::support::text::json_difference::describe_json_differences;
use crate::training::config::stage::stage_config::StageConfig;
use crate::training::config::train_config::TrainConfig;
use crate::training::stages::files::data_digests::DataDigests;
use crate::training::stages::files::stage_files::{OWN_EXTENSION, is_finished};

/// File with the configuration of the checkpoints.
const CONFIG_FILE: &str = "train.toml";
/// File with the hashes of the training data.
const DATA_FILE: &str = "data.sha256";

/// Creates and locks the output folder of a training, and writes the configuration to it.
///
/// # Errors
/// If the folder contains other files, another process trains in it, or its checkpoints have
/// another configuration. Finished stages of another configuration must not become part of this
/// training.
pub(crate) fn claim_folder(config: &TrainConfig, out: &Path) -> Result<FolderLock> {
    create_folder(out)?;
    // This check comes before the first write, so that a folder with other files stays unchanged.
    check_is_training_folder(out)?;
    let lock = FolderLock::acquire(out)?;
    atomic_file::remove_temporary_files(out)?;
    let text = toml::to_string_pretty(config).context("cannot write the configuration")?;
    let path = out.join(CONFIG_FILE);
    if is_same_config(&path, &text) {
        return Ok(lock);
    }
    let stale = stale_stages(out, config, &list_names(out)?);
    if stale.as_ref().is_some_and(Vec::is_empty) {
        atomic_file::write_atomic(&path, text.as_bytes())?;
        return Ok(lock);
    }
    write_or_check_equal(&path, &text, |old| describe_conflict(old, config, stale.as_deref()))?;
    Ok(lock)
}

/// Describes how the configuration of the checkpoints differs from that of this run. `stale`: see
/// [`stale_stages`].
fn describe_conflict(old: &str, config: &TrainConfig, stale: Option<&[String]>) -> String {
    let old = match toml::from_str::<TrainConfig>(old) {
        Ok(old) => serde_json::to_value(old),
        Err(error) => {
            return format!(
                "cannot be read as a configuration: {}\n\
                 hint: restore the file; if another version of acem3 wrote it, continue with that version; or choose \
                 another folder with --out",
                error.message()
            );
        }
    };
    let changes = match old.ok().zip(serde_json::to_value(config).ok()) {
        Some((old, new)) => format!(": {}", describe_json_differences(&old, &new).join("; ")),
        None => String::new(),
    };
    let delete = match stale {
        Some(stages) if !stages.is_empty() => {
            let names: Vec<String> = stages.iter().map(|name| format!("`{name}.`")).collect();
            format!(
                "; to train again with this configuration, delete the files whose names begin with {}",
                names.join(" or ")
            )
        }
        _ => String::new(),
    };
    format!(
        "the checkpoints in this folder have another configuration{changes}\n\
         hint: choose another folder with --out, or move this one; you may change any stage that has not started, and \
         rate, warmup, clip and validate_every of the stage in progress{delete}"
    )
}

/// Returns true if a file has this configuration, in the form that this program writes or in
/// another one, for example with comments of the user.
fn is_same_config(path: &Path, text: &str) -> bool {
    let old = fs::read_to_string(path).ok();
    let old = old.and_then(|old| toml::from_str::<TrainConfig>(&old).ok());
    old.is_some_and(|old| toml::to_string_pretty(&old).is_ok_and(|old| old == text))
}

/// Returns the started stages from the first changed one on. Their files do not belong to this configuration. The
/// schedule of the stage in progress may change, because a stage can fail if its learning rate is too high. Returns
/// `None` if there is no checkpoint, or if settings outside the stages differ.
fn stale_stages(out: &Path, config: &TrainConfig, files: &[String]) -> Option<Vec<String>> {
    let old = fs::read_to_string(out.join(CONFIG_FILE)).ok();
    let old = old.and_then(|text| toml::from_str::<TrainConfig>(&text).ok());
    let mut old = old.filter(|_| files.iter().any(|name| is_checkpoint(name)))?;
    let has_started = |stage: &StageConfig| {
        let prefix = format!("{}.", stage.name);
        files.iter().any(|file| file.starts_with(&prefix))
    };
    let old_stages = std::mem::replace(&mut old.stages, config.stages.clone());
    let text = |config: &TrainConfig| toml::to_string(config).ok();
    let stage_text = |stage: &StageConfig| toml::to_string(stage).ok();
    let mut unchanged = old_stages
        .iter()
        .zip(&config.stages)
        .take_while(|(old, new)| stage_text(old) == stage_text(new))
        .count();
    if let (Some(old), Some(new)) = (old_stages.get(unchanged), config.stages.get(unchanged)) {
        let differs_only_in_schedule = stage_text(&old.with_schedule_of(new)) == stage_text(new);
        unchanged += usize::from(differs_only_in_schedule && !is_finished(new, out));
    }
    if text(&old) != text(config) {
        return None;
    }
    let mut stale: Vec<String> = Vec::new();
    let changed = old_stages[unchanged..].iter().chain(&config.stages[unchanged..]);
    for stage in changed.filter(|stage| has_started(stage)) {
        if !stale.contains(&stage.name) {
            stale.push(stage.name.clone());
        }
    }
    Some(stale)
}

/// Writes the hashes of the training data, or checks that the checkpoints were trained on the same data: all
/// stages on the same data sets, and each started stage on the same file.
pub(crate) fn check_same_data(data: &DataDigests, out: &Path) -> Result<()> {
    let (path, text) = (out.join(DATA_FILE), data.to_string());
    let names = list_names(out)?;
    let old = fs::read_to_string(&path).ok().and_then(|old| DataDigests::parse(&old));
    if let Some(old) = old.filter(|old| old.data_sets == data.data_sets)
        && names.iter().any(|name| is_checkpoint(name))
    {
        let has_started = |stage: &str| {
            let prefix = format!("{stage}.");
            names.iter().any(|name| name.starts_with(&prefix))
        };
        if let Some(stage) = data.first_change(&old, has_started) {
            bail!(
                "stage {stage}: its file changed after the stage had started\n\
                 hint: restore the file, choose another folder with --out, or delete the files in {} whose names \
                 begin with `{stage}.`",
                out.display()
            );
        }
        return atomic_file::write_atomic(&path, text.as_bytes());
    }
    write_or_check_equal(&path, &text, |old_text| {
        format!(
            "the checkpoints in this folder were trained on {}, this run uses {}\n\
             hint: pass the same --data, or choose another folder with --out",
            describe_data(old_text),
            describe_data(&text)
        )
    })
}

/// Writes a file, or checks that it already has this content. If it has other content and the
/// folder has checkpoints, `conflict` receives the old content and describes the error.
fn write_or_check_equal(path: &Path, text: &str, conflict: impl Fn(&str) -> String) -> Result<()> {
    match fs::read_to_string(path) {
        Ok(old_text) if old_text == text => return Ok(()),
        Ok(old_text) => {
            let out = path.parent().unwrap_or(Path::new(""));
            if list_names(out)?.iter().any(|name| is_checkpoint(name)) {
                bail!("{}: {}", path.display(), conflict(&old_text));
            }
            remove_failed_start(out)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    }
    atomic_file::write_atomic(path, text.as_bytes())
}

fn is_checkpoint(name: &str) -> bool {
    name.ends_with(".safetensors")
}

/// Removes the files of a start that failed before its first checkpoint, so that the next start
/// does not use them.
fn remove_failed_start(out: &Path) -> Result<()> {
    let is_leftover = |name: &String| {
        let extensions = [".metrics.jsonl", ".rows", ".rows.json", &format!(".{OWN_EXTENSION}")];
        [DATA_FILE, TOKENIZER_FILE].contains(&name.as_str())
            || extensions.iter().any(|e| name.ends_with(e))
    };
    for name in list_names(out)?.into_iter().filter(is_leftover) {
        let path = out.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Returns an error if the folder contains anything except a training or an interrupted first write
/// of one. A training folder has a lock file, or a configuration as this program writes it: without
/// comments, and with all fields.
fn check_is_training_folder(out: &Path) -> Result<()> {
    let is_temporary = |name: &String| {
        let is_partial = [".part", ".partial"].iter().any(|end| name.ends_with(end));
        is_partial || name == FolderLock::FILE
    };
    let names = list_names(out)?;
    let has = |file: &str| names.iter().any(|name| name == file);
    let has_written_config = || {
        let path = out.join(CONFIG_FILE);
        fs::read_to_string(&path).is_ok_and(|text| is_same_config(&path, &text))
    };
    let is_training = has(CONFIG_FILE) && (has(FolderLock::FILE) || has_written_config());
    if !is_training && !names.iter().all(is_temporary) {
        bail!(
            "--out {}: the folder contains files that do not belong to a training\n\
             hint: choose an empty folder or one that does not exist",
            out.display()
        );
    }
    Ok(())
}

fn describe_data(data: &str) -> String {
    match data.lines().next().unwrap_or_default() {
        "none" => "phantoms only".to_owned(),
        digest => format!("data {}", digest.get(..8).unwrap_or(digest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::digest::Digest;

    fn config() -> TrainConfig {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        TrainConfig::read(&path).unwrap()
    }

    fn error_text<T>(result: Result<T>) -> String {
        result.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn other_configuration_is_rejected_with_checkpoints() {
        let mut config = config();
        let out = tempfile::tempdir().unwrap();
        claim_folder(&config, out.path()).unwrap();
        fs::write(out.path().join("encoder.running.safetensors"), "learned").unwrap();
        claim_folder(&config, out.path()).unwrap();
        config.stages[0].learning_rate *= 2.0;
        claim_folder(&config, out.path()).unwrap();
        config.stages[0].batch *= 2;
        let error = error_text(claim_folder(&config, out.path()));
        assert!(error.contains("train.toml: the checkpoints"), "{error}");
        assert!(error.contains("hint: choose another folder"), "{error}");
    }

    #[test]
    fn unstarted_stage_may_change() {
        let mut config = config();
        let out = tempfile::tempdir().unwrap();
        claim_folder(&config, out.path()).unwrap();
        for name in ["encoder.safetensors", "encoder.metrics.jsonl"] {
            fs::write(out.path().join(name), "learned").unwrap();
        }
        config.stages[1].learning_rate /= 2.0;
        claim_folder(&config, out.path()).unwrap();
        let saved = fs::read_to_string(out.path().join(CONFIG_FILE)).unwrap();
        assert_eq!(saved, toml::to_string_pretty(&config).unwrap());
        assert!(out.path().join("encoder.safetensors").exists());
        let change_error = |change: fn(&mut TrainConfig)| {
            let mut config = config.clone();
            change(&mut config);
            error_text(claim_folder(&config, out.path()))
        };
        let finished = change_error(|config| config.stages[0].learning_rate /= 2.0);
        assert!(finished.contains("have another configuration"), "{finished}");
        let seed = change_error(|config| config.seed += 1);
        assert!(seed.contains("have another configuration: seed was "), "{seed}");
        fs::write(out.path().join("align.running.safetensors"), "half").unwrap();
        let started = change_error(|config| config.stages[1].data_set_proportion /= 2.0);
        assert!(started.contains("begin with `align.`"), "{started}");
        // Files of later stages would not belong to the changed one.
        assert!(finished.contains("begin with `encoder.`"), "{finished}");
        let both = change_error(|config| config.stages[0].learning_rate /= 2.0);
        assert!(both.contains("begin with `encoder.` or `align.`"), "{both}");
        fs::write(out.path().join(CONFIG_FILE), "garbage").unwrap();
        let unreadable = error_text(claim_folder(&config, out.path()));
        assert!(unreadable.contains("cannot be read as a configuration"), "{unreadable}");
    }

    #[test]
    fn start_without_checkpoints_may_change() {
        let mut config = config();
        let out = tempfile::tempdir().unwrap();
        claim_folder(&config, out.path()).unwrap();
        check_same_data(&DataDigests::new(None, Vec::new()), out.path()).unwrap();
        let leftovers = [TOKENIZER_FILE, "encoder.metrics.jsonl"].map(|name| out.path().join(name));
        for path in &leftovers {
            fs::write(path, "of the first start").unwrap();
        }
        config.stages[0].learning_rate *= 2.0;
        claim_folder(&config, out.path()).unwrap();
        let saved = fs::read_to_string(out.path().join(CONFIG_FILE)).unwrap();
        assert_eq!(saved, toml::to_string_pretty(&config).unwrap());
        assert!(leftovers.iter().all(|path| !path.exists()));
        check_same_data(&questions(), out.path()).unwrap();
    }

    #[test]
    fn only_training_folders_are_accepted() {
        let out = tempfile::tempdir().unwrap();
        for name in [FolderLock::FILE, "train.part", "train.partial"] {
            fs::write(out.path().join(name), "").unwrap();
        }
        claim_folder(&config(), out.path()).unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("thesis.txt"), "years of work").unwrap();
        let error = error_text(claim_folder(&config(), other.path()));
        assert!(error.contains("do not belong to a training"), "{error}");
        assert_eq!(list_names(other.path()).unwrap(), ["thesis.txt"]);
        // The user's own configuration and tokenizer are no output of a training.
        let own = tempfile::tempdir().unwrap();
        let text = format!("# mine\n{}", toml::to_string_pretty(&config()).unwrap());
        for (name, text) in [(CONFIG_FILE, text.as_str()), (TOKENIZER_FILE, "mine")] {
            fs::write(own.path().join(name), text).unwrap();
        }
        let error = error_text(claim_folder(&config(), own.path()));
        assert!(error.contains("do not belong to a training"), "{error}");
        assert_eq!(fs::read_to_string(own.path().join(TOKENIZER_FILE)).unwrap(), "mine");
    }

    #[test]
    fn comments_of_the_user_are_kept() {
        let out = tempfile::tempdir().unwrap();
        drop(claim_folder(&config(), out.path()).unwrap());
        let path = out.path().join(CONFIG_FILE);
        let text = format!("# mine\n{}", fs::read_to_string(&path).unwrap());
        fs::write(&path, &text).unwrap();
        claim_folder(&config(), out.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn locked_folder_is_left_unchanged() {
        let out = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(out.path()).unwrap();
        let error = error_text(claim_folder(&config(), out.path()));
        assert!(error.contains("another run is writing here"), "{error}");
        assert!(!out.path().join(CONFIG_FILE).exists());
        drop(lock);
    }

    fn questions() -> DataDigests {
        DataDigests::new(Some(Digest::sha256(b"questions")), Vec::new())
    }

    #[test]
    fn files_of_unstarted_stages_may_change() {
        let out = tempfile::tempdir().unwrap();
        let check = |files: &[(&str, &str)]| {
            let files = files.iter().map(|(stage, file)| ((*stage).to_owned(), (*file).to_owned()));
            check_same_data(&DataDigests::new(None, files.collect()), out.path())
        };
        check(&[("first", "1")]).unwrap();
        fs::write(out.path().join("first.safetensors"), "learned").unwrap();
        check(&[("first", "1"), ("second", "2")]).unwrap();
        check(&[("first", "1"), ("second", "3")]).unwrap();
        let error = error_text(check(&[("first", "2"), ("second", "3")]));
        assert!(error.contains("stage first: its file changed"), "{error}");
        fs::write(out.path().join("second.running.safetensors"), "half").unwrap();
        let error = error_text(check(&[("first", "1"), ("second", "4")]));
        assert!(error.contains("stage second: its file changed"), "{error}");
        check(&[("first", "1"), ("second", "3")]).unwrap();
    }

    #[test]
    fn other_data_are_rejected_with_checkpoints() {
        let out = tempfile::tempdir().unwrap();
        check_same_data(&questions(), out.path()).unwrap();
        fs::write(out.path().join("encoder.safetensors"), "learned").unwrap();
        check_same_data(&questions(), out.path()).unwrap();
        let error = error_text(check_same_data(&DataDigests::new(None, Vec::new()), out.path()));
        assert!(error.contains("this run uses phantoms only"), "{error}");
        assert!(error.contains("hint: pass the same --data"), "{error}");
    }
}
