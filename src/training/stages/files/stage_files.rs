//! Files of a stage in the output folder. Each learner of a stage (one member, or all members as
//! one model) has its own files. Only the preference pairs of a stage are shared by its learners.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::training::config::stage::stage_config::StageConfig;
use crate::training::stages::frozen::activation_file::index_path;

/// Extension of the trained weights and optimizer state of a stage in progress.
pub(crate) const RUNNING_EXTENSION: &str = "running.safetensors";
/// Extension of the weights with the lowest validation loss so far.
pub(crate) const BEST_EXTENSION: &str = "best.safetensors";
/// Extension of the step and loss of those weights.
pub(crate) const BEST_STEP_EXTENSION: &str = "best.json";
/// Extension of the reference model's log-likelihoods.
pub(crate) const REFERENCES_EXTENSION: &str = "reference.safetensors";

/// Extension of the evaluations of the panel before a stage that rejects them.
pub(crate) const OWN_EXTENSION: &str = "own.json";
/// Extension of the folder of that panel.
pub(crate) const PANEL_EXTENSION: &str = "panel";

/// Extension of the adapters of a finished stage, which its weights contain merged.
pub(crate) const ADAPTERS_EXTENSION: &str = "adapters.safetensors";

/// Returns the path of the finished weights of a learner.
pub(crate) fn checkpoint_path(out: &Path, name: &str) -> PathBuf {
    stage_file(out, name, "safetensors")
}

/// Returns the path of the frozen-activation cache of a learner, or of the preference pairs of
/// a stage.
pub(crate) fn activation_path(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.rows"))
}

/// Returns the path of a file of a learner.
pub(crate) fn stage_file(out: &Path, name: &str, extension: &str) -> PathBuf {
    out.join(format!("{name}.{extension}"))
}

/// Returns true if the output folder has all checkpoints of a stage.
pub(crate) fn is_finished(stage: &StageConfig, out: &Path) -> bool {
    let mut learners = stage.learners().into_iter();
    learners.all(|learner| checkpoint_path(out, &learner.name).exists())
}

/// Removes the files that are not needed after the checkpoint is complete. This includes files of
/// an earlier process that was killed before it removed them.
pub(crate) fn remove_intermediate(out: &Path, name: &str) -> Result<()> {
    for extension in [
        RUNNING_EXTENSION,
        BEST_EXTENSION,
        BEST_STEP_EXTENSION,
        REFERENCES_EXTENSION,
        OWN_EXTENSION,
    ] {
        remove_if_exists(&stage_file(out, name, extension))?;
    }
    remove_panel(out, name)?;
    let activations = activation_path(out, name);
    remove_if_exists(&index_path(&activations))?;
    remove_if_exists(&activations)
}

/// Removes the panel of the members before a stage.
pub(crate) fn remove_panel(out: &Path, name: &str) -> Result<()> {
    let folder = stage_file(out, name, PANEL_EXTENSION);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn remove_if_exists(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
