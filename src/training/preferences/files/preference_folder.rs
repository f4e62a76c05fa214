//! Folder of preference pairs in the format of TRL's DPO trainer: `preferences.jsonl` and
//! `images/`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use acem3_experts::prompt::EvaluationFormat;
use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::digest::Digest;
use crate::support::files::atomic_file::{self, is_temporary_name};
use crate::support::files::edited_file::EditedFile;
use crate::support::files::file_form::has_json_line;
use crate::support::files::folder::{create_folder, list_names, remove_other_files};
use crate::training::config::reward_tokens::RewardTokens;
use crate::training::config::stage::negative::Negative;
use crate::training::preferences::negatives::{
    DerivedNegative, EvaluationContent, EvaluationRatings, NegativeCounts, derive_any_negative,
    derive_every_negative, find_obstacle,
};
use crate::training::preferences::prompt_style::PromptStyle;
use crate::training::preferences::prompt_text::prompt_text;

/// File of the preference pairs.
pub(crate) const PREFERENCES_FILE: &str = "preferences.jsonl";
/// Hidden file with the SHA-256 of the pairs. Loaders of data sets ignore hidden files.
const HASH_FILE: &str = ".preferences.sha256";
/// Prefix of the names of copied images.
pub(crate) const COPIED_PREFIX: &str = "given-";
/// Offset of the seed, so that negatives and phantoms use different random numbers.
const NEGATIVE_SEED: u64 = 0x5eed_0fba_d000;

/// Settings of `acem3 data preferences`.
#[derive(Clone, Debug)]
pub struct PreferenceFolderConfig {
    /// Output folder.
    pub out: PathBuf,
    /// Number of phantoms to generate.
    pub cases: u64,
    /// Seed of the phantoms.
    pub seed: u64,
    /// Changes that turn chosen evaluations into rejected ones.
    pub negatives: Vec<Negative>,
    /// True to write all negatives of an evaluation instead of one at random.
    pub writes_every_negative: bool,
    /// Prompts of phantom evaluations and of wrong verdicts.
    pub prompts: PromptStyle,
    /// Tokens that begin the completions; `None` for completions without.
    pub reward_tokens: Option<RewardTokens>,
}

#[cfg(test)]
impl PreferenceFolderConfig {
    /// Returns the settings of a test: all changes of so many phantoms, without reward tokens.
    pub(crate) fn of_phantoms(out: PathBuf, cases: u64) -> Self {
        use acem3_experts::prompt::{PromptLayout, Rubric, RubricDetail};
        let rubric = Rubric::built_in().expect("the built-in rubric is valid");
        Self {
            out,
            cases,
            seed: 3,
            negatives: Negative::ALL.to_vec(),
            writes_every_negative: false,
            prompts: PromptStyle::of_layout(PromptLayout::CaseFirst, RubricDetail::Names, rubric),
            reward_tokens: None,
        }
    }
}

/// Numbers of written and skipped pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenCounts {
    /// Number of written preference pairs.
    pub pairs: u64,
    /// Number of evaluations without a negative.
    pub skipped: u64,
    /// Evaluations to which changes did not apply.
    pub obstacles: NegativeCounts,
    /// The edited pairs of an earlier run under their new name.
    pub edited: Option<EditedFile>,
}

/// Prompt and format of a preference pair.
pub(crate) struct PairPrompt {
    /// Id of the pair.
    pub(crate) id: String,
    /// Name of the member that writes the evaluation; `None` for all members.
    pub(crate) member: Option<String>,
    /// Path of the image, relative to the folder.
    pub(crate) image: Option<String>,
    /// Text of the prompt.
    pub(crate) prompt: String,
    /// Text that begins the completions, before a reward token.
    pub(crate) lead: String,
    /// Format of the completions.
    pub(crate) format: EvaluationFormat,
}

/// Writer of a folder of preference pairs.
pub(crate) struct PreferenceFolder<'a> {
    config: &'a PreferenceFolderConfig,
    lines: String,
    /// File names of the images of the pairs.
    images: BTreeSet<String>,
    counts: WrittenCounts,
}

impl<'a> PreferenceFolder<'a> {
    /// Creates the folder, or checks one of an earlier run. [`PreferenceFolder::finish`] replaces
    /// the earlier pairs.
    pub(crate) fn create(config: &'a PreferenceFolderConfig) -> Result<Self> {
        if config.negatives.is_empty() {
            bail!("--negatives: expected at least one\nhint: omit the flag to use all negatives");
        }
        prepare_folder(&config.out)?;
        Ok(Self {
            config,
            lines: String::new(),
            images: BTreeSet::new(),
            counts: WrittenCounts::default(),
        })
    }

    /// Adds a chosen evaluation with its negatives, or counts it as skipped if no negative can be
    /// derived. `stream` selects the random numbers.
    pub(crate) fn add(
        &mut self,
        prompt: &PairPrompt,
        chosen: &EvaluationContent,
        stream: u64,
    ) -> Result<()> {
        let seed = self.config.seed.wrapping_add(NEGATIVE_SEED);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let changes = &self.config.negatives;
        let negatives = if self.config.writes_every_negative {
            derive_every_negative(changes, chosen, &mut rng)
        } else {
            derive_any_negative(changes, chosen, &mut rng).into_iter().collect()
        };
        for change in changes {
            if let Some(reason) = find_obstacle(*change, chosen, &mut rng) {
                self.counts.obstacles.add(*change, reason);
            }
        }
        self.counts.skipped += u64::from(negatives.is_empty());
        let count = negatives.len();
        for (i, DerivedNegative { ratings, changes }) in negatives.into_iter().enumerate() {
            let id = match count {
                1 => prompt.id.clone(),
                _ => format!("{}-{i}", prompt.id),
            };
            self.write(prompt, &id, [chosen.ratings, &ratings], &json!(changes))?;
        }
        Ok(())
    }

    /// Adds a chosen and a rejected evaluation. `origin`: where the rejected one comes from.
    pub(crate) fn add_pair(
        &mut self,
        prompt: &PairPrompt,
        ratings: [&EvaluationRatings; 2],
        origin: &str,
    ) -> Result<()> {
        self.write(prompt, &prompt.id, ratings, &json!([origin]))
    }

    fn write(
        &mut self,
        prompt: &PairPrompt,
        id: &str,
        [chosen, rejected]: [&EvaluationRatings; 2],
        negatives: &Value,
    ) -> Result<()> {
        let tokens = self.tokens_of(prompt)?;
        let completion = |token: &str, ratings: &EvaluationRatings| {
            let text = prompt_text(&prompt.format.render_pieces(ratings));
            format!("{}{token}{text}", prompt.lead)
        };
        let line = json!({
            "id": id,
            "member": prompt.member,
            "images": prompt.image.iter().collect::<Vec<_>>(),
            "prompt": prompt.prompt,
            "chosen": completion(&tokens[0], chosen),
            "rejected": completion(&tokens[1], rejected),
            "negatives": negatives,
        });
        writeln!(self.lines, "{line}")?;
        let image = prompt.image.as_ref().and_then(|image| Path::new(image).file_name());
        self.images.extend(image.map(|name| name.to_string_lossy().into_owned()));
        self.counts.pairs += 1;
        Ok(())
    }

    /// Returns the token of the chosen and of the rejected evaluation of a pair; empty for none.
    fn tokens_of(&self, prompt: &PairPrompt) -> Result<[String; 2]> {
        let Some(tokens) = &self.config.reward_tokens else {
            return Ok([const { String::new() }; 2]);
        };
        let pair = tokens.of_evaluation(prompt.member.as_deref()).with_context(|| {
            format!(
                "{}: the evaluation is of no member, and the members have different reward tokens\n\
                 hint: add `member` to the line, or use one pair for all members",
                prompt.id
            )
        })?;
        Ok(pair.sides().map(str::to_owned))
    }

    /// Writes the file of the pairs, after all their images exist, and removes images that no pair
    /// has. Keeps edited pairs of an earlier run under another name, and then all images.
    pub(crate) fn finish(self) -> Result<WrittenCounts> {
        let out = &self.config.out;
        let written = fs::read_to_string(out.join(HASH_FILE)).ok();
        let written = written.and_then(|hash| hash.trim().parse().ok());
        let ((), edited) = EditedFile::replace(&out.join(PREFERENCES_FILE), written, || {
            write_pairs(out, &self.lines)
        })?;
        // Edited pairs of any run may need the other images.
        if !list_names(out)?.iter().any(|name| EditedFile::is_kept_name(name, PREFERENCES_FILE)) {
            remove_other_files(&out.join("images"), &self.images)?;
        }
        Ok(WrittenCounts { edited, ..self.counts })
    }
}

/// Writes the file of the pairs and its hash.
fn write_pairs(out: &Path, lines: &str) -> Result<()> {
    let hash = format!("{}\n", Digest::sha256(lines.as_bytes()));
    atomic_file::write_atomic(&out.join(HASH_FILE), hash.as_bytes())?;
    atomic_file::write_atomic(&out.join(PREFERENCES_FILE), lines.as_bytes())
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

/// Creates the folder, or checks that it is one of an earlier run. Leaves a folder with other files
/// unchanged.
fn prepare_folder(out: &Path) -> Result<()> {
    let images_folder = out.join("images");
    let is_earlier_output = is_own_file(&out.join(PREFERENCES_FILE))?;
    let is_image = |name: &str| name.starts_with("phantom-") || name.starts_with(COPIED_PREFIX);
    let is_expected = |name: &str| {
        [PREFERENCES_FILE, HASH_FILE, "images"].contains(&name)
            || is_temporary_name(name)
            || EditedFile::is_kept_name(name, PREFERENCES_FILE)
    };
    let list_if_exists = |folder: &Path| {
        if folder.exists() { list_names(folder) } else { Ok(Vec::new()) }
    };
    let (files, image_files) = (list_if_exists(out)?, list_if_exists(&images_folder)?);
    let is_image = |name: &str| is_image(name) || is_temporary_name(name);
    let other = files.iter().find(|name| !is_expected(name));
    let other = other.or_else(|| image_files.iter().find(|name| !is_image(name)));
    if other.is_some() || !(is_earlier_output || files.is_empty()) {
        bail!(
            "--out {}: expected an empty folder or an earlier output of this command, found {}\n\
             hint: choose a folder that does not exist yet",
            out.display(),
            other.or(files.first()).map_or("other files", String::as_str)
        );
    }
    create_folder(&images_folder)?;
    atomic_file::remove_temporary_files(out)?;
    if is_earlier_output {
        return Ok(());
    }
    // The empty file marks the folder as an output of this command, so that an interrupted run can
    // be repeated.
    write_pairs(out, "")
}
