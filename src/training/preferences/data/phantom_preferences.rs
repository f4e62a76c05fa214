//! Preferences about phantoms, whose right evaluations are known by rule.

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{BranchPrompts, Detail, Format, JudgeInput, Rubric};
use anyhow::{Context, Result, bail};
use image::ImageFormat;

use super::folder::{
    ChosenEvaluation, PreferenceFolder, PreferenceFolderConfig, WrittenCounts, prompt_text,
};
use super::negative::EvaluationRatings;
use crate::checkpoints::panel::definition::MEMBERS;
use crate::data::phantoms::{Phantom, phantom};
use crate::support::terminal::interrupt::Interrupt;

/// The prompts and formats of all members.
struct MemberPrompts {
    branches: BranchPrompts,
    merge: MergePrompts,
}

impl MemberPrompts {
    /// The prompt of a member, and the right evaluation of the pair.
    fn lesson(
        &self,
        member: usize,
        phantom: &Phantom,
    ) -> Result<(String, Format, EvaluationRatings)> {
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
fn ratings(phantom: &Phantom, aspect: Aspect) -> EvaluationRatings {
    let of = phantom.responses.iter().flat_map(|r| &r.ratings);
    of.filter(|(criterion, _)| criterion.aspect() == aspect)
        .map(|(_, rating)| (rating.analysis.clone(), rating.score))
        .collect()
}

/// Writes preferences about phantoms. Equal plans give equal bytes.
///
/// # Errors
/// When there is nothing to write, when the person asked to stop, when the folder holds something else, and when a file cannot
/// be written.
pub fn drawn(plan: &PreferenceFolderConfig, interrupt: &Interrupt) -> Result<WrittenCounts> {
    if plan.n == 0 {
        bail!("--count 0: nothing to write\nhint: `--count 100` makes up to 400 pairs");
    }
    let members = MemberPrompts {
        branches: BranchPrompts::new(plan.layout, Rubric::built_in()?, Detail::Names)?,
        merge: MergePrompts::new(plan.layout)?,
    };
    let mut pairs = PreferenceFolder::begin(plan)?;
    for index in 0..plan.n {
        interrupt.check("the folder is not complete, and the same command makes it anew")?;
        let phantom = phantom(plan.seed, index);
        let id = format!("phantom-{}-{index:05}", plan.seed);
        let image = format!("images/{id}.png");
        let path = plan.out.join(&image);
        let saved = phantom.image.save_with_format(&path, ImageFormat::Png);
        saved.with_context(|| format!("cannot write {}", path.display()))?;
        for (i, member) in MEMBERS.iter().enumerate() {
            let (prompt, format, right) = members.lesson(i, &phantom)?;
            let positive = ChosenEvaluation {
                id: format!("{id}-{member}"),
                member: i,
                image: Some(image.clone()),
                prompt,
                format,
                right,
            };
            pairs.add(&positive, index * MEMBERS.len() as u64 + i as u64)?;
        }
    }
    pairs.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::super::folder::{FILE, IMAGE};
    use super::super::negative::Negative;
    use super::*;
    use crate::support::files::folder::list_names;
    use acem3_experts::prompt::Layout;

    fn made(plan: &PreferenceFolderConfig) -> Result<WrittenCounts> {
        drawn(plan, &Interrupt::default())
    }

    fn plan(out: &Path) -> PreferenceFolderConfig {
        PreferenceFolderConfig {
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
        let fewer = PreferenceFolderConfig {
            n: 2,
            ..plan(&dir.path().join("b"))
        };
        made(&fewer).unwrap();
        assert_eq!(list_names(&dir.path().join("b/images")).unwrap().len(), 2);
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
