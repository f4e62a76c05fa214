//! Preferences from evaluations that somebody has: each is set beside a worse one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use acem3_experts::Aspect;
use acem3_experts::prompt::Format;
use acem3_vision::{Limits, decode};
use anyhow::{Context, Result, bail};

use super::evaluations_file::{EvaluationExample, evaluations};
use super::folder::{
    COPIED, ChosenEvaluation, PreferenceFolder, PreferenceFolderConfig, WrittenCounts, prompt_text,
};
use super::negative::EvaluationRatings;
use crate::checkpoints::panel::definition::MEMBERS;
use crate::support::digest::Digest;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::data::jsonl_line::there;

/// Writes preferences whose better continuations are the evaluations of a file, in the form that panels are held to. Their
/// images are copied. `plan.n` and `plan.layout` are not heeded: the prompts stand in the file.
///
/// # Errors
/// Name the line of an evaluation that keeps to no form, or whose image is not there; else those of
/// [`drawn`](super::drawn()).
pub fn given(
    file: &Path,
    plan: &PreferenceFolderConfig,
    interrupt: &Interrupt,
) -> Result<WrittenCounts> {
    let (all, _) = evaluations(file)?;
    let line = |e: &EvaluationExample| format!("{}, line {}", file.display(), e.line);
    // All is read before anything is written.
    let rated = all.iter().map(|evaluation| {
        there(evaluation.image.as_deref()).with_context(|| line(evaluation))?;
        rated(evaluation).with_context(|| line(evaluation))
    });
    let rated: Vec<(usize, EvaluationRatings)> = rated.collect::<Result<_>>()?;
    let images = all.iter().filter_map(|e| e.image.as_deref());
    for read in images.chain([file]) {
        check_outside(&plan.out, read)?;
    }
    let mut pairs = PreferenceFolder::begin(plan)?;
    let mut copied = BTreeSet::new();
    for (evaluation, (member, right)) in all.iter().zip(rated) {
        interrupt.check("the folder is not complete, and the same command makes it anew")?;
        let image = evaluation.image.as_deref();
        let image = image.map(|image| copy(image, &plan.out, &mut copied));
        let positive = ChosenEvaluation {
            id: format!("line-{}-{}", evaluation.line, MEMBERS[member]),
            member,
            image: image.transpose()?,
            prompt: prompt_text(&evaluation.prompt),
            format: format(member),
            right,
        };
        pairs.add(&positive, evaluation.line as u64)?;
    }
    pairs.finish()
}

/// Refuses a folder that holds what is read: an earlier output is written over.
fn check_outside(out: &Path, read: &Path) -> Result<()> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    match (real(out), real(read)) {
        (Some(out), Some(read)) if read.starts_with(&out) => bail!(
            "--out {}: {} lies in it, and would be written over\n\
             hint: choose a folder that does not exist yet",
            out.display(),
            read.display()
        ),
        _ => Ok(()),
    }
}

fn format(member: usize) -> Format {
    match Aspect::ALL.get(member) {
        Some(aspect) => Format::branch(*aspect),
        None => Format::conclusion(),
    }
}

/// What an evaluation says, and whose it is: the member's that it names, or the first's to whose form it keeps.
fn rated(evaluation: &EvaluationExample) -> Result<(usize, EvaluationRatings)> {
    let read = |member: usize| format(member).read(&evaluation.text);
    if let Some(member) = evaluation.member {
        let (name, blank) = (MEMBERS[member], format(member).blank());
        let departs = || format!("it does not keep to the form of {name}, which is\n{blank}");
        return Ok((member, read(member).with_context(departs)?));
    }
    // The conclusion's form is the shortest, and lies within the others.
    let found = (0..MEMBERS.len()).find_map(|member| Some((member, read(member).ok()?)));
    let Some(found) = found else {
        bail!(
            "it keeps to no member's form\n\
             hint: `member` says whose it is (one of {}), and a form is told for it then",
            MEMBERS.join(", ")
        );
    };
    Ok(found)
}

/// Copies an image into a folder once, under a name that follows from what it holds.
fn copy(image: &Path, out: &Path, copied: &mut BTreeSet<String>) -> Result<String> {
    let bytes = fs::read(image).with_context(|| format!("cannot read {}", image.display()))?;
    let digest = Digest::of(&bytes).to_string();
    let kind = image.extension().and_then(|kind| kind.to_str());
    let kind = kind.map_or(String::new(), |kind| format!(".{}", kind.to_lowercase()));
    let name = format!(
        "images/{COPIED}{}{kind}",
        digest.get(..16).unwrap_or(&digest)
    );
    if copied.insert(name.clone()) {
        decode(&bytes, &Limits::default()).with_context(|| image.display().to_string())?;
        let path = out.join(&name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use acem3_experts::prompt::Layout;

    use super::*;
    use crate::training::preferences::data::{Negative, drawn, read};

    fn plan(out: &Path) -> PreferenceFolderConfig {
        PreferenceFolderConfig {
            out: out.to_owned(),
            n: 2,
            seed: 3,
            ways: Negative::ALL.to_vec(),
            layout: Layout::CaseFirst,
            reward_tokens: false,
        }
    }

    #[test]
    fn evaluations_of_one_s_own_are_set_beside_worse_ones() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let phantoms = plan(&dir.path().join("drawn"));
        drawn(&phantoms, &Interrupt::default())?;
        // A file of preferences is one of evaluations as well: what is preferred is right.
        let file = phantoms.out.join("preferences.jsonl");
        let nameless = fs::read_to_string(&file)?.replace("\"member\"", "\"of\"");
        let (before, _) = read(&file)?;
        fs::write(&file, nameless)?;
        let own = PreferenceFolderConfig {
            reward_tokens: true,
            ..plan(&dir.path().join("own"))
        };
        let written = given(&file, &own, &Interrupt::default())?;
        assert_eq!(written.pairs, before.len() as u64);
        let (after, _) = read(&own.out.join("preferences.jsonl"))?;
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(
                (before.member, &before.prompt),
                (after.member, &after.prompt)
            );
            assert_eq!(after.texts[0], format!("[Good]{}", before.texts[0]));
            assert!(after.texts[1].starts_with("[Bad]"), "{after:?}");
            there(after.image.as_deref())?;
        }
        // The same image is there once, and the same command may be given again.
        assert_eq!(fs::read_dir(own.out.join("images"))?.count(), 2);
        given(&file, &own, &Interrupt::default())?;
        // A folder that the evaluations or their images lie in is not written over.
        let elsewhere = dir.path().join("evaluations.jsonl");
        let whole = fs::read_to_string(&file)?.replace("images/", "drawn/images/");
        fs::write(&elsewhere, whole)?;
        for read in [&file, &elsewhere] {
            let before = fs::read(&file)?;
            let refused = given(read, &phantoms, &Interrupt::default()).unwrap_err();
            assert!(refused.to_string().contains("lies in it"), "{refused}");
            assert_eq!(fs::read(&file)?, before);
        }
        Ok(())
    }

    #[test]
    fn what_keeps_to_no_form_is_refused_by_its_line() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("evaluations.jsonl");
        let out = dir.path().join("out");
        for (line, problem) in [
            (
                r#"{"prompt": "A", "completion": "Both are good."}"#,
                "no member's form",
            ),
            (
                r#"{"prompt": "A", "completion": "Both are good.", "member": "conclusion"}"#,
                "Analysis: <one or two sentences>",
            ),
            (
                r#"{"prompt": "A<image>", "completion": "B", "images": ["x.png"]}"#,
                "there is no image",
            ),
        ] {
            fs::write(&file, line)?;
            let refused = given(&file, &plan(&out), &Interrupt::default());
            let refused = refused.map(drop).unwrap_err();
            let refused = format!("{refused:#}");
            assert!(
                refused.contains("line 1") && refused.contains(problem),
                "{refused}"
            );
            assert!(!out.exists(), "nothing is written");
        }
        Ok(())
    }
}
