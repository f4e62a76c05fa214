//! Preferences as a folder that TRL's DPO trainer reads: `preferences.jsonl` and `images/`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use acem3_experts::prompt::{Format, Layout, Piece};
use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::REWARD_TOKENS;
use super::negative::{EvaluationRatings, Negative, negative};
use crate::checkpoints::panel::definition::MEMBERS;
use crate::support::files::atomic_file;
use crate::support::files::folder::{create_folder, list_names};

pub(super) const FILE: &str = "preferences.jsonl";
/// What stands for the image in a prompt's text.
pub(crate) const IMAGE: &str = "<image>";
/// What the names of copied images begin with.
pub(super) const COPIED: &str = "given-";
/// Added to the seed, so that the dice of negatives are not those of phantoms.
const SEED: u64 = 0x5eed_0fba_d000;

/// What to write.
#[derive(Clone, Debug)]
pub struct PreferenceFolderConfig {
    /// The folder.
    pub out: PathBuf,
    /// How many phantoms; each gives a preference for each member.
    pub n: u64,
    /// The phantoms' seed.
    pub seed: u64,
    /// What makes evaluations worse.
    pub ways: Vec<Negative>,
    /// The prompts' layout.
    pub layout: Layout,
    /// Whether continuations begin with reward tokens.
    pub reward_tokens: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenCounts {
    /// Preferences.
    pub pairs: u64,
    /// Evaluations that none of the ways makes worse.
    pub left_out: u64,
}

/// A prompt or evaluation as one text, an image being [`IMAGE`].
pub(crate) fn prompt_text(pieces: &[Piece]) -> String {
    let text = pieces.iter().map(|piece| match piece {
        Piece::Fixed(text) | Piece::Free(text) => text.as_str(),
        Piece::Image => IMAGE,
    });
    text.collect()
}

/// A right evaluation.
pub(super) struct ChosenEvaluation {
    /// What the pair is called.
    pub(super) id: String,
    /// The place of the member that writes it.
    pub(super) member: usize,
    /// The image in the folder.
    pub(super) image: Option<String>,
    /// What it answers.
    pub(super) prompt: String,
    /// Its form.
    pub(super) format: Format,
    /// What it says.
    pub(super) right: EvaluationRatings,
}

/// The pairs of a folder on their way to it.
pub(super) struct PreferenceFolder<'a> {
    plan: &'a PreferenceFolderConfig,
    lines: String,
    written: WrittenCounts,
}

impl<'a> PreferenceFolder<'a> {
    /// Makes room for them.
    pub(super) fn begin(plan: &'a PreferenceFolderConfig) -> Result<Self> {
        if plan.ways.is_empty() {
            bail!("no --negatives: nothing would be worse\nhint: leave it out for all ways");
        }
        make_room(&plan.out)?;
        Ok(Self {
            plan,
            lines: String::new(),
            written: WrittenCounts::default(),
        })
    }

    /// Sets an evaluation beside a worse one, where any of the ways makes it worse; `number` tells its dice from those of
    /// others.
    pub(super) fn add(&mut self, positive: &ChosenEvaluation, number: u64) -> Result<()> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.plan.seed.wrapping_add(SEED));
        rng.set_stream(number);
        let ChosenEvaluation { format, right, .. } = positive;
        let Some((wrong, ways)) = negative(&self.plan.ways, right, &mut rng) else {
            self.written.left_out += 1;
            return Ok(());
        };
        let leads = if self.plan.reward_tokens {
            REWARD_TOKENS
        } else {
            ["", ""]
        };
        let [chosen, rejected] = [(leads[0], right), (leads[1], &wrong)]
            .map(|(lead, ratings)| format!("{lead}{}", prompt_text(&format.pieces(ratings))));
        let line = json!({
            "id": positive.id,
            "member": MEMBERS[positive.member],
            "images": positive.image.iter().collect::<Vec<_>>(),
            "prompt": positive.prompt,
            "chosen": chosen,
            "rejected": rejected,
            "negatives": ways,
        });
        writeln!(self.lines, "{line}")?;
        self.written.pairs += 1;
        Ok(())
    }

    /// Writes them, last and whole: where the file is, the images are.
    pub(super) fn finish(self) -> Result<WrittenCounts> {
        atomic_file::write(&self.plan.out.join(FILE), self.lines.as_bytes())?;
        Ok(self.written)
    }
}

/// Makes room: an empty folder, or an earlier output of this command, whose images go. Anything else
/// is somebody's own and stays.
fn make_room(out: &Path) -> Result<()> {
    let images = out.join("images");
    let ours = out.join(FILE).is_file();
    let drawn = |name: &str| name.starts_with("phantom-") || name.starts_with(COPIED);
    let known = |name: &str| [FILE, "preferences.part", "images"].contains(&name);
    let names = |folder: &Path| {
        if folder.exists() {
            list_names(folder)
        } else {
            Ok(Vec::new())
        }
    };
    let (around, within) = (names(out)?, names(&images)?);
    let strange = around.iter().filter(|name| !known(name)).count()
        + within.iter().filter(|name| !drawn(name)).count();
    if strange > 0 || !(ours || around.is_empty()) {
        bail!(
            "--out {}: expected an empty folder or an earlier output of this command\n\
             hint: choose a folder that does not exist yet",
            out.display()
        );
    }
    for name in within {
        let path = images.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    create_folder(&images)?;
    // The mark of this command, so that a broken-off run can be repeated into the same folder.
    atomic_file::write(&out.join(FILE), b"")
}
