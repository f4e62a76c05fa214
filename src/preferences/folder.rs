//! Preferences as a folder that TRL's DPO trainer reads: `preferences.jsonl` and `images/`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{BranchPrompts, Detail, Format, JudgeInput, Layout, Piece, Rubric};
use anyhow::{Context, Result, bail};
use image::ImageFormat;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::REWARD_TOKENS;
use super::negative::{Negative, Ratings, negative};
use crate::files::folder::{list, make};
use crate::files::whole_file;
use crate::panel::MEMBERS;
use crate::phantoms::{Phantom, phantom};
use crate::terminal::interrupt::Interrupt;

const FILE: &str = "preferences.jsonl";
/// What stands for the image in a prompt's text.
pub(crate) const IMAGE: &str = "<image>";
/// What the names of copied images begin with.
pub(super) const COPIED: &str = "given-";
/// Added to the seed, so that the dice of negatives are not those of phantoms.
pub(super) const SEED: u64 = 0x5eed_0fba_d000;

/// What to write.
#[derive(Clone, Debug)]
pub struct PreferencePlan {
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
pub struct Written {
    /// Preferences.
    pub pairs: u64,
    /// Evaluations that none of the ways makes worse.
    pub left_out: u64,
}

/// The prompts and formats of all members.
struct Members {
    branches: BranchPrompts,
    merge: MergePrompts,
}

impl Members {
    /// The prompt of a member, and the right evaluation of the pair.
    fn lesson(&self, member: usize, phantom: &Phantom) -> Result<(String, Format, Ratings)> {
        let [first, second] = &phantom.responses;
        let input = JudgeInput {
            image: true,
            question: &phantom.question.text,
            responses: [&first.text, &second.text],
        };
        if let Some(aspect) = Aspect::ALL.get(member) {
            let prompt = prompt_text(&self.branches.pieces(*aspect, &input)?);
            return Ok((prompt, Format::branch(*aspect), ratings(phantom, *aspect)));
        }
        let written =
            Aspect::ALL.map(|aspect| Format::branch(aspect).pieces(&ratings(phantom, aspect)));
        let prompt = prompt_text(&self.merge.pieces(&input, &written)?);
        let concluded = phantom.responses.each_ref().map(|r| &r.conclusion);
        let concluded = concluded.map(|c| (c.analysis.clone(), c.score));
        Ok((prompt, Format::conclusion(), concluded.into()))
    }
}

/// The right ratings of an aspect, the first response's and then the second's.
fn ratings(phantom: &Phantom, aspect: Aspect) -> Ratings {
    let of = phantom.responses.iter().flat_map(|r| &r.ratings);
    of.filter(|(criterion, _)| criterion.aspect() == aspect)
        .map(|(_, rating)| (rating.analysis.clone(), rating.score))
        .collect()
}

/// A prompt or evaluation as one text, an image being [`IMAGE`].
pub(crate) fn prompt_text(pieces: &[Piece]) -> String {
    let text = pieces.iter().map(|piece| match piece {
        Piece::Fixed(text) | Piece::Free(text) => text.as_str(),
        Piece::Image => IMAGE,
    });
    text.collect()
}

/// Writes the preferences. Equal plans give equal bytes.
///
/// # Errors
/// When there is nothing to write, when the person asked to stop, when the folder holds something else, and when a file cannot
/// be written.
pub fn folder(plan: &PreferencePlan, interrupt: &Interrupt) -> Result<Written> {
    if plan.n == 0 {
        bail!("--n 0: nothing to write\nhint: `--n 100` makes up to 400 pairs");
    }
    let members = Members {
        branches: BranchPrompts::new(plan.layout, Rubric::built_in()?, Detail::Names)?,
        merge: MergePrompts::new(plan.layout)?,
    };
    let mut pairs = Pairs::begin(plan)?;
    for index in 0..plan.n {
        interrupt.check("the folder is not complete, and the same command makes it anew")?;
        let phantom = phantom(plan.seed, index);
        let id = format!("phantom-{}-{index:05}", plan.seed);
        let image = format!("images/{id}.png");
        let path = plan.out.join(&image);
        let saved = phantom.image.save_with_format(&path, ImageFormat::Png);
        saved.with_context(|| format!("cannot write {}", path.display()))?;
        for (i, member) in MEMBERS.iter().enumerate() {
            let mut rng = ChaCha8Rng::seed_from_u64(plan.seed.wrapping_add(SEED));
            rng.set_stream(index * MEMBERS.len() as u64 + i as u64);
            let (prompt, format, right) = members.lesson(i, &phantom)?;
            let positive = Positive {
                id: format!("{id}-{member}"),
                member: i,
                image: Some(image.clone()),
                prompt,
                format,
                right,
            };
            pairs.add(&positive, &mut rng)?;
        }
    }
    pairs.finish()
}

/// A right evaluation.
pub(super) struct Positive {
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
    pub(super) right: Ratings,
}

/// The pairs of a folder on their way to it.
pub(super) struct Pairs<'a> {
    plan: &'a PreferencePlan,
    lines: String,
    written: Written,
}

impl<'a> Pairs<'a> {
    /// Makes room for them.
    pub(super) fn begin(plan: &'a PreferencePlan) -> Result<Self> {
        if plan.ways.is_empty() {
            bail!("no --negatives: nothing would be worse\nhint: leave it out for all ways");
        }
        make_room(&plan.out)?;
        Ok(Self {
            plan,
            lines: String::new(),
            written: Written::default(),
        })
    }

    /// Sets an evaluation beside a worse one, where any of the ways makes it worse.
    pub(super) fn add(&mut self, positive: &Positive, rng: &mut ChaCha8Rng) -> Result<()> {
        let Positive { format, right, .. } = positive;
        let Some((wrong, ways)) = negative(&self.plan.ways, right, rng) else {
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
    pub(super) fn finish(self) -> Result<Written> {
        whole_file::write(&self.plan.out.join(FILE), self.lines.as_bytes())?;
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
            list(folder)
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
    make(&images)?;
    // The mark of this command, so that a broken-off run can be repeated into the same folder.
    whole_file::write(&out.join(FILE), b"")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn made(plan: &PreferencePlan) -> Result<Written> {
        folder(plan, &Interrupt::default())
    }

    fn plan(out: &Path) -> PreferencePlan {
        PreferencePlan {
            out: out.to_owned(),
            n: 6,
            seed: 3,
            ways: Negative::ALL.to_vec(),
            layout: Layout::CaseFirst,
            reward_tokens: true,
        }
    }

    #[test]
    fn every_line_is_a_prompt_with_a_better_and_a_worse_continuation() {
        let dir = tempfile::tempdir().unwrap();
        let written = made(&plan(&dir.path().join("a"))).unwrap();
        assert_eq!(written.pairs + written.left_out, 24);
        assert!(written.pairs > 20);
        let read = |name: &str| fs::read_to_string(dir.path().join(name).join(FILE)).unwrap();
        let lines = read("a");
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let part = |name: &str| line[name].as_str().unwrap();
            assert!(
                dir.path()
                    .join("a")
                    .join(line["images"][0].as_str().unwrap())
                    .is_file()
            );
            assert_eq!(part("prompt").matches(IMAGE).count(), 1);
            let (chosen, rejected) = (part("chosen"), part("rejected"));
            let chosen = chosen.strip_prefix("[Good]").unwrap();
            let rejected = rejected.strip_prefix("[Bad]").unwrap();
            assert_ne!(chosen, rejected);
            assert_eq!(chosen.lines().count(), rejected.lines().count());
            assert_eq!(
                chosen.matches("Score:").count(),
                rejected.matches("Score:").count()
            );
        }
        made(&plan(&dir.path().join("b"))).unwrap();
        assert_eq!(lines, read("b"));
        let fewer = PreferencePlan {
            n: 2,
            ..plan(&dir.path().join("b"))
        };
        made(&fewer).unwrap();
        assert_eq!(list(&dir.path().join("b/images")).unwrap().len(), 2);
    }

    #[test]
    fn a_folder_of_something_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        let error = made(&plan(dir.path())).unwrap_err().to_string();
        assert!(
            error.contains("--out") && error.contains("hint:"),
            "{error}"
        );
        assert!(!dir.path().join("images").exists());
    }

    #[test]
    fn images_of_somebody_else_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("images/phantom-3-00000.png");
        fs::create_dir(dir.path().join("images")).unwrap();
        fs::write(&image, "mine").unwrap();
        assert!(made(&plan(dir.path())).is_err());
        assert_eq!(fs::read_to_string(&image).unwrap(), "mine");
    }
}
