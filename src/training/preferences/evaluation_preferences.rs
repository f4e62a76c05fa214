//! Preference pairs whose chosen completions are the evaluations of a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use acem3_experts::Aspect;
use acem3_experts::prompt::EvaluationFormat;
use acem3_vision::{DicomView, ImageLimits};
use anyhow::{Context, Result, anyhow, bail};

use super::negative_ratings::EvaluationRatings;
use super::prompt_text::prompt_text;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::data::images::decoder::decode_image;
use crate::data::images::image_file::read_image_file;
use crate::support::digest::Digest;
use crate::support::files::atomic_file;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::files::evaluations_file::{EvaluationExample, read_evaluations};
use crate::training::preferences::files::jsonl_line::check_image;
use crate::training::preferences::files::preference_folder::{
    COPIED_PREFIX, ChosenEvaluation, PreferenceFolder, PreferenceFolderConfig, WrittenCounts,
};

/// Writes preference pairs from the evaluations of a file and copies their images. Each evaluation
/// must have the format of a member. `config.cases` and `config.layout` have no effect, because the
/// file contains the prompts.
///
/// # Errors
/// An evaluation does not have the format of its member, or its image is missing; the error names
/// the line. Otherwise the same as [`write_phantom_preferences`](super::write_phantom_preferences()).
pub fn write_evaluation_preferences(
    file: &Path,
    config: &PreferenceFolderConfig,
    interrupt: &Interrupt,
) -> Result<WrittenCounts> {
    let evaluations = read_evaluations(file)?.items;
    // All input is read before the first write.
    let parsed = evaluations.iter().map(|evaluation| {
        let location = || format!("{}, line {}", file.display(), evaluation.line);
        check_image(evaluation.image.as_deref()).with_context(location)?;
        parse_ratings(evaluation).with_context(location)
    });
    let parsed: Vec<MemberRatings> = parsed.collect::<Result<_>>()?;
    let images = evaluations.iter().filter_map(|e| e.image.as_deref());
    for input in images.chain([file]) {
        check_outside(&config.out, input)?;
    }
    let mut folder = PreferenceFolder::create(config)?;
    let mut copied = BTreeSet::new();
    for (evaluation, MemberRatings { member, ratings }) in evaluations.iter().zip(parsed) {
        interrupt
            .bail_if_requested("the folder is incomplete; run the same command to regenerate it")?;
        let image = evaluation.image.as_deref();
        let image = image.map(|image| copy_image(image, &config.out, &mut copied));
        let chosen = ChosenEvaluation {
            id: format!("line-{}-{}", evaluation.line, MEMBERS[member]),
            member,
            image: image.transpose()?,
            prompt: prompt_text(&evaluation.prompt),
            format: member_format(member),
            ratings,
        };
        folder.add(&chosen, evaluation.line as u64)?;
    }
    folder.finish()
}

/// Returns an error if the output folder contains an input, which would be overwritten.
fn check_outside(out: &Path, input: &Path) -> Result<()> {
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    match (canonical(out), canonical(input)) {
        (Some(out), Some(input)) if input.starts_with(&out) => bail!(
            "--out {}: the input {} is in this folder and would be overwritten\n\
             hint: choose a folder that does not exist yet",
            out.display(),
            input.display()
        ),
        _ => Ok(()),
    }
}

/// Returns the format of a member's evaluations.
fn member_format(member: usize) -> EvaluationFormat {
    match Aspect::ALL.get(member) {
        Some(aspect) => EvaluationFormat::for_aspect(*aspect),
        None => EvaluationFormat::for_conclusion(),
    }
}

/// Ratings of an evaluation.
struct MemberRatings {
    /// Index of the member that writes the evaluation.
    member: usize,
    ratings: EvaluationRatings,
}

/// Parses an evaluation in the format of its `member`. Without `member`, uses the first format that
/// matches.
fn parse_ratings(evaluation: &EvaluationExample) -> Result<MemberRatings> {
    let parse = |member: usize| -> Result<MemberRatings> {
        let ratings = member_format(member).parse(&evaluation.text)?;
        Ok(MemberRatings { member, ratings })
    };
    if let Some(member) = evaluation.member {
        let (name, blank) = (MEMBERS[member], member_format(member).to_instructions());
        return parse(member).with_context(|| {
            format!("the evaluation does not have the format of {name}:\n{blank}")
        });
    }
    // The conclusion's format is the shortest and also matches the other formats, so it comes last.
    let ratings = (0..MEMBERS.len()).find_map(|member| parse(member).ok());
    ratings.with_context(|| {
        format!(
            "the evaluation has the format of no member\n\
             hint: set `member` to one of {}; the error then shows the expected format",
            MEMBERS.join(", ")
        )
    })
}

/// Copies an image into the folder under a name that contains its hash, unless it was copied
/// before.
fn copy_image(image: &Path, out: &Path, copied: &mut BTreeSet<String>) -> Result<String> {
    let bytes = read_image_file(image, &ImageLimits::default())
        .map_err(|problem| anyhow!("{}: {problem}", image.display()))?;
    let digest = Digest::sha256(&bytes).to_string();
    let extension = image.extension().and_then(|extension| extension.to_str());
    let extension = extension.map_or(String::new(), |e| format!(".{}", e.to_lowercase()));
    let name = format!("images/{COPIED_PREFIX}{}{extension}", digest.get(..16).unwrap_or(&digest));
    if copied.insert(name.clone()) {
        decode_image(&bytes, &ImageLimits::default(), &DicomView::default())
            .map_err(|problem| anyhow!("{}: {problem}", image.display()))?;
        let path = out.join(&name);
        atomic_file::write_atomic(&path, &bytes)?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use acem3_experts::prompt::PromptLayout;

    use super::*;
    use crate::training::config::stage::negative::Negative;
    use crate::training::preferences::{read_preferences, write_phantom_preferences};

    fn config(out: &Path) -> PreferenceFolderConfig {
        PreferenceFolderConfig {
            out: out.to_owned(),
            cases: 2,
            seed: 3,
            negatives: Negative::ALL.to_vec(),
            layout: PromptLayout::CaseFirst,
            has_reward_tokens: false,
        }
    }

    #[test]
    fn evaluations_of_file_become_chosen() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let phantoms = config(&dir.path().join("drawn"));
        write_phantom_preferences(&phantoms, &Interrupt::default())?;
        // A file of preference pairs is also a file of evaluations.
        let file = phantoms.out.join("preferences.jsonl");
        let without_member = fs::read_to_string(&file)?.replace("\"member\"", "\"of\"");
        let original = read_preferences(&file)?.items;
        fs::write(&file, without_member)?;
        let from_file = PreferenceFolderConfig {
            has_reward_tokens: true,
            ..config(&dir.path().join("from-file"))
        };
        let counts = write_evaluation_preferences(&file, &from_file, &Interrupt::default())?;
        assert_eq!(counts.pairs, original.len() as u64);
        let rewritten = read_preferences(&from_file.out.join("preferences.jsonl"))?.items;
        for (before, after) in original.iter().zip(&rewritten) {
            assert_eq!((before.member, &before.prompt), (after.member, &after.prompt));
            assert_eq!(after.completions[0], format!("[Good]{}", before.completions[0]));
            assert!(after.completions[1].starts_with("[Bad]"), "{after:?}");
            check_image(after.image.as_deref())?;
        }
        // Each image is copied once, and the command can be repeated.
        assert_eq!(fs::read_dir(from_file.out.join("images"))?.count(), 2);
        write_evaluation_preferences(&file, &from_file, &Interrupt::default())?;
        // A folder that contains the evaluations or their images stays unchanged.
        let elsewhere = dir.path().join("evaluations.jsonl");
        let text = fs::read_to_string(&file)?.replace("images/", "drawn/images/");
        fs::write(&elsewhere, text)?;
        for input in [&file, &elsewhere] {
            let before = fs::read(&file)?;
            let error =
                write_evaluation_preferences(input, &phantoms, &Interrupt::default()).unwrap_err();
            assert!(error.to_string().contains("is in this folder"), "{error}");
            assert_eq!(fs::read(&file)?, before);
        }
        Ok(())
    }

    #[test]
    fn error_names_line_of_malformed_evaluation() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("evaluations.jsonl");
        let out = dir.path().join("out");
        for (line, problem) in [
            (r#"{"prompt": "A", "completion": "Both are good."}"#, "the format of no member"),
            (
                r#"{"prompt": "A", "completion": "Both are good.", "member": "conclusion"}"#,
                "Analysis: <one or two sentences>",
            ),
            (r#"{"prompt": "A<image>", "completion": "B", "images": ["x.png"]}"#, "missing image"),
        ] {
            fs::write(&file, line)?;
            let error = write_evaluation_preferences(&file, &config(&out), &Interrupt::default());
            let error = error.map(drop).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains("line 1") && error.contains(problem), "{error}");
            assert!(!out.exists(), "nothing is written");
        }
        Ok(())
    }
}
