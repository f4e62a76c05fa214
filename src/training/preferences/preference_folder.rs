//! A folder of preference pairs in the format of TRL's DPO trainer: `preferences.jsonl` and `images/`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use acem3_experts::prompt::{Format, Layout};
use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::negative_ratings::{EvaluationRatings, derive_any_negative};
use super::prompt_text::prompt_text;
use crate::checkpoints::panel::definition::MEMBERS;
use crate::support::files::atomic_file;
use crate::support::files::folder::{create_folder, list_names};
use crate::training::config::negative::Negative;
use crate::training::config::reward_token::REWARD_TOKENS;

/// File of the pairs.
pub(super) const FILE: &str = "preferences.jsonl";
/// Prefix of the names of copied images.
pub(super) const COPIED_PREFIX: &str = "given-";
/// Added to the seed, so that negatives and phantoms have different random numbers.
const NEGATIVE_SEED: u64 = 0x5eed_0fba_d000;

/// Settings of `acem3 data preferences`.
#[derive(Clone, Debug)]
pub struct PreferenceFolderConfig {
    /// Output folder.
    pub out: PathBuf,
    /// Number of phantom cases; each gives a pair for each member.
    pub cases: u64,
    /// Seed of the phantoms.
    pub seed: u64,
    /// Changes that make the rejected evaluations.
    pub negatives: Vec<Negative>,
    /// Layout of the prompts.
    pub layout: Layout,
    /// Begins completions with reward tokens.
    pub reward_tokens: bool,
}

/// Numbers of written and skipped pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenCounts {
    /// Written preference pairs.
    pub pairs: u64,
    /// Evaluations without a negative.
    pub skipped: u64,
}

/// A right evaluation.
pub(super) struct ChosenEvaluation {
    /// Id of the pair.
    pub(super) id: String,
    /// Index of the member that writes it.
    pub(super) member: usize,
    /// Image in the folder.
    pub(super) image: Option<String>,
    /// The prompt.
    pub(super) prompt: String,
    /// Format of the completion.
    pub(super) format: Format,
    /// Its ratings.
    pub(super) ratings: EvaluationRatings,
}

/// Writes a folder of preference pairs.
pub(super) struct PreferenceFolder<'a> {
    config: &'a PreferenceFolderConfig,
    lines: String,
    counts: WrittenCounts,
}

impl<'a> PreferenceFolder<'a> {
    /// Creates the folder, or empties an earlier output.
    pub(super) fn create(config: &'a PreferenceFolderConfig) -> Result<Self> {
        if config.negatives.is_empty() {
            bail!("--negatives: expected at least one\nhint: omit the flag to use all negatives");
        }
        prepare_folder(&config.out)?;
        Ok(Self {
            config,
            lines: String::new(),
            counts: WrittenCounts::default(),
        })
    }

    /// Adds an evaluation with a negative, or counts it as skipped if it has none. `stream` selects its random numbers.
    pub(super) fn add(&mut self, chosen: &ChosenEvaluation, stream: u64) -> Result<()> {
        let seed = self.config.seed.wrapping_add(NEGATIVE_SEED);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let negatives = &self.config.negatives;
        let Some(negative) = derive_any_negative(negatives, &chosen.ratings, &mut rng) else {
            self.counts.skipped += 1;
            return Ok(());
        };
        let tokens = if self.config.reward_tokens {
            REWARD_TOKENS
        } else {
            ["", ""]
        };
        let completion = |token: &str, ratings| {
            let text = prompt_text(&chosen.format.pieces(ratings));
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

    /// Writes the file of the pairs. It comes last, so that all images exist.
    pub(super) fn finish(self) -> Result<WrittenCounts> {
        atomic_file::write(&self.config.out.join(FILE), self.lines.as_bytes())?;
        Ok(self.counts)
    }
}

/// Creates the folder, or removes the images of an earlier output. A folder with other files is left unchanged.
fn prepare_folder(out: &Path) -> Result<()> {
    let images = out.join("images");
    let is_output = out.join(FILE).is_file();
    let is_image = |name: &str| name.starts_with("phantom-") || name.starts_with(COPIED_PREFIX);
    let is_expected = |name: &str| [FILE, "preferences.part", "images"].contains(&name);
    let names = |folder: &Path| {
        if folder.exists() {
            list_names(folder)
        } else {
            Ok(Vec::new())
        }
    };
    let (files, image_files) = (names(out)?, names(&images)?);
    let has_other_files = !files.iter().all(|name| is_expected(name))
        || !image_files.iter().all(|name| is_image(name));
    if has_other_files || !(is_output || files.is_empty()) {
        bail!(
            "--out {}: expected an empty folder or an earlier output of this command\n\
             hint: choose a folder that does not exist yet",
            out.display()
        );
    }
    for name in image_files {
        let path = images.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    create_folder(&images)?;
    // Marks the folder as an output of this command, so that an interrupted run can be repeated.
    atomic_file::write(&out.join(FILE), b"")
}
