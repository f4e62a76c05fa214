//! Folder of preference pairs in the format of TRL's DPO trainer: `preferences.jsonl` and
//! `images/`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use acem3_experts::prompt::{EvaluationFormat, PromptLayout};
use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::support::files::atomic_file::{self, is_temporary_name};
use crate::support::files::file_form::has_json_line;
use crate::support::files::folder::{create_folder, list_names};
use crate::training::config::stage::negative::Negative;
use crate::training::config::stage::reward_token::REWARD_TOKENS;
use crate::training::preferences::negative_ratings::{EvaluationRatings, derive_any_negative};
use crate::training::preferences::prompt_text::prompt_text;

/// File of the preference pairs.
pub(crate) const PREFERENCES_FILE: &str = "preferences.jsonl";
/// Prefix of the names of copied images.
pub(crate) const COPIED_PREFIX: &str = "given-";
/// Offset of the seed, so that negatives and phantoms use different random numbers.
const NEGATIVE_SEED: u64 = 0x5eed_0fba_d000;

/// Settings of `acem3 data preferences`.
#[derive(Clone, Debug)]
pub struct PreferenceFolderConfig {
    /// Output folder.
    pub out: PathBuf,
    /// Number of phantom cases. Each case gives a preference pair for each member.
    pub cases: u64,
    /// Seed of the phantoms.
    pub seed: u64,
    /// Changes that turn chosen evaluations into rejected ones.
    pub negatives: Vec<Negative>,
    /// Layout of the prompts.
    pub layout: PromptLayout,
    /// True to begin completions with reward tokens.
    pub has_reward_tokens: bool,
}

/// Numbers of written and skipped pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenCounts {
    /// Number of written preference pairs.
    pub pairs: u64,
    /// Number of evaluations without a negative.
    pub skipped: u64,
}

/// Chosen evaluation of a preference pair.
pub(crate) struct ChosenEvaluation {
    /// Id of the pair.
    pub(crate) id: String,
    /// Index of the member that writes the evaluation.
    pub(crate) member: usize,
    /// Path of the image, relative to the folder.
    pub(crate) image: Option<String>,
    /// Text of the prompt.
    pub(crate) prompt: String,
    /// Format of the completion.
    pub(crate) format: EvaluationFormat,
    /// Ratings of the completion.
    pub(crate) ratings: EvaluationRatings,
}

/// Writer of a folder of preference pairs.
pub(crate) struct PreferenceFolder<'a> {
    config: &'a PreferenceFolderConfig,
    lines: String,
    counts: WrittenCounts,
}

impl<'a> PreferenceFolder<'a> {
    /// Creates the folder, or empties one of an earlier run.
    pub(crate) fn create(config: &'a PreferenceFolderConfig) -> Result<Self> {
        if config.negatives.is_empty() {
            bail!("--negatives: expected at least one\nhint: omit the flag to use all negatives");
        }
        prepare_folder(&config.out)?;
        Ok(Self { config, lines: String::new(), counts: WrittenCounts::default() })
    }

    /// Adds an evaluation with a negative, or counts the evaluation as skipped if no negative can
    /// be derived. `stream` selects the random numbers.
    pub(crate) fn add(&mut self, chosen: &ChosenEvaluation, stream: u64) -> Result<()> {
        let seed = self.config.seed.wrapping_add(NEGATIVE_SEED);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let negatives = &self.config.negatives;
        let Some(negative) = derive_any_negative(negatives, &chosen.ratings, &mut rng) else {
            self.counts.skipped += 1;
            return Ok(());
        };
        let tokens = if self.config.has_reward_tokens { REWARD_TOKENS } else { ["", ""] };
        let completion = |token: &str, ratings| {
            let text = prompt_text(&chosen.format.render_pieces(ratings));
            format!("{token}{text}")
        };
        let line = json!({
            "id": chosen.id,
            "member": MEMBERS[chosen.member],
            "images": chosen.image.iter().collect::<Vec<_>>(),
            "prompt": chosen.prompt,
            "chosen": completion(tokens[0], &chosen.ratings),
            "rejected": completion(tokens[1], &negative.ratings),
            "negatives": negative.changes,
        });
        writeln!(self.lines, "{line}")?;
        self.counts.pairs += 1;
        Ok(())
    }

    /// Writes the file of the pairs, after all images exist.
    pub(crate) fn finish(self) -> Result<WrittenCounts> {
        atomic_file::write_atomic(&self.config.out.join(PREFERENCES_FILE), self.lines.as_bytes())?;
        Ok(self.counts)
    }
}

/// Returns true if a file was written by this command: it is empty, or its pairs have the fields of
/// this writer.
fn is_own_file(path: &Path) -> Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let context = || format!("cannot read {}", path.display());
    let mut file = File::open(path).with_context(context)?;
    let fields = ["id", "member", "images", "prompt", "chosen", "rejected", "negatives"];
    let is_empty = file.metadata().with_context(context)?.len() == 0;
    Ok(is_empty || has_json_line(&mut file, &fields).with_context(context)?)
}

/// Creates the folder, or removes the images of an earlier run. Leaves a folder with other files
/// unchanged.
fn prepare_folder(out: &Path) -> Result<()> {
    let images_folder = out.join("images");
    let is_earlier_output = is_own_file(&out.join(PREFERENCES_FILE))?;
    let is_image = |name: &str| name.starts_with("phantom-") || name.starts_with(COPIED_PREFIX);
    let is_expected =
        |name: &str| [PREFERENCES_FILE, "images"].contains(&name) || is_temporary_name(name);
    let list_if_exists = |folder: &Path| {
        if folder.exists() { list_names(folder) } else { Ok(Vec::new()) }
    };
    let (files, image_files) = (list_if_exists(out)?, list_if_exists(&images_folder)?);
    let is_image = |name: &str| is_image(name) || is_temporary_name(name);
    let has_other_files = !files.iter().all(|name| is_expected(name))
        || !image_files.iter().all(|name| is_image(name));
    if has_other_files || !(is_earlier_output || files.is_empty()) {
        bail!(
            "--out {}: expected an empty folder or an earlier output of this command\n\
             hint: choose a folder that does not exist yet",
            out.display()
        );
    }
    for name in image_files {
        let path = images_folder.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    create_folder(&images_folder)?;
    atomic_file::remove_temporary_files(out)?;
    // The empty file marks the folder as an output of this command, so that an interrupted run can
    // be repeated.
    atomic_file::write_atomic(&out.join(PREFERENCES_FILE), b"")
}
