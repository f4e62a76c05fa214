//! Preference pairs whose chosen completions are the evaluations of a file.

use std::fs;
use std::path::Path;

use acem3_experts::SCORES;
use acem3_experts::prompt::ScoreWords;
use anyhow::{Context, Result, bail};

use super::negatives::{
    DetectedFormat, EvaluationContent, EvaluationRatings, ParsedEvaluation, PromptSections,
    member_format, parse_evaluation,
};
use super::prompt_text::prompt_text;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::files::copied_images::CopiedImages;
use crate::training::preferences::files::jsonl_line::check_image;
use crate::training::preferences::files::preference_folder::{
    PairPrompt, PreferenceFolder, PreferenceFolderConfig, WrittenCounts,
};
use crate::training::preferences::files::source_evaluations::{
    SourceEvaluation, read_source_evaluations,
};

/// Writes preference pairs from the evaluations of a file and copies their images. The evaluations
/// may have any form of judging and any rubric. `config.cases` and `config.prompts` have no effect,
/// because the file contains the prompts.
///
/// # Errors
/// A completion is no evaluation or does not have the format of its member, or its image is missing;
/// the error names the line. Otherwise the same as
/// [`write_phantom_preferences`](super::write_phantom_preferences()).
pub fn write_evaluation_preferences(
    file: &Path,
    config: &PreferenceFolderConfig,
    interrupt: &Interrupt,
) -> Result<WrittenCounts> {
    let evaluations = read_source_evaluations(file)?.items;
    // All input is read before the first write.
    let parsed = evaluations.iter().map(|evaluation| {
        let location = || format!("{}, line {}", file.display(), evaluation.line);
        check_image(evaluation.image.as_deref()).with_context(location)?;
        parse_source(evaluation).with_context(location)
    });
    let parsed: Vec<ParsedSource> = parsed.collect::<Result<_>>()?;
    let images = evaluations.iter().filter_map(|e| e.image.as_deref());
    for input in images.chain([file]) {
        check_outside(&config.out, input)?;
    }
    let mut folder = PreferenceFolder::create(config)?;
    let mut images = CopiedImages::new(&config.out);
    for (evaluation, parsed) in evaluations.iter().zip(&parsed) {
        interrupt.bail_if_requested("the pairs are not written; run the same command again")?;
        let image = evaluation.image.as_deref();
        let image = image.map(|image| images.copy_file(image));
        let name = parsed.member.as_deref().unwrap_or("evaluation");
        let prompt = PairPrompt {
            id: format!("line-{}-{name}", evaluation.line),
            member: parsed.member.clone(),
            image: image.transpose()?,
            prompt: prompt_text(&evaluation.prompt),
            lead: parsed.lead.clone(),
            format: parsed.format.format.clone(),
        };
        let content = EvaluationContent {
            ratings: &parsed.ratings,
            responses: parsed.format.responses,
            words: parsed.format.words,
            sections: parsed.sections.clone(),
        };
        folder.add(&prompt, &content, evaluation.line as u64)?;
    }
    folder.finish()
}

/// Returns an error if the output folder contains an input, which would be overwritten.
pub(super) fn check_outside(out: &Path, input: &Path) -> Result<()> {
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

/// Parsed evaluation of a file.
struct ParsedSource {
    /// Name of the member; `None` if the file names none and the format is no member's.
    member: Option<String>,
    /// White space that begins the completion.
    lead: String,
    format: DetectedFormat,
    ratings: EvaluationRatings,
    sections: PromptSections,
}

/// Parses an evaluation. Without `member`, the format of a pair's evaluation decides the member.
fn parse_source(evaluation: &SourceEvaluation) -> Result<ParsedSource> {
    let mut sections = PromptSections::read(&prompt_text(&evaluation.prompt));
    if evaluation.reference.is_some() {
        sections.reference.clone_from(&evaluation.reference);
    }
    let range = sections.range.unwrap_or([*SCORES.start(), *SCORES.end()]);
    let lead = evaluation.text.len() - evaluation.text.trim_start().len();
    let lead = evaluation.text.get(..lead).unwrap_or_default().to_owned();
    let text = &evaluation.text;
    let named = evaluation.member.as_deref();
    let named = named.and_then(|name| MEMBERS.iter().position(|member| *member == name));
    let parsed = match (parse_evaluation(text, range), named) {
        (Ok(parsed), None) => parsed,
        // Evaluations of other forms and rubrics have the format of no member.
        (Ok(parsed), Some(member)) if parsed.member.is_none_or(|found| found == member) => parsed,
        (_, Some(member)) => parse_as_member(text, member)?,
        (Err(error), None) => return Err(error.context(NO_EVALUATION)),
    };
    let member = evaluation.member.clone();
    Ok(ParsedSource {
        member: member.or_else(|| parsed.member.map(|member| MEMBERS[member].to_owned())),
        lead,
        format: parsed.format,
        ratings: parsed.ratings,
        sections,
    })
}

/// Error for a completion without the headings of an evaluation.
const NO_EVALUATION: &str = "the completion has the format of no member and of no form of judging\n\
     hint: an evaluation has lines `Response 1:`, `Criterion NAME:`, `Analysis: …` and `Score: N`, \
     or `Analysis: …` and `Correct: yes`; `acem3 panel prompts` prints the format";

/// Parses an evaluation of a pair in the format of a member.
fn parse_as_member(text: &str, member: usize) -> Result<ParsedEvaluation> {
    let format = member_format(member);
    let ratings = format.parse(text).with_context(|| {
        let (name, blank) = (MEMBERS[member], format.to_instructions());
        format!("the evaluation does not have the format of {name}:\n{blank}")
    })?;
    let format = DetectedFormat { format, responses: 2, words: ScoreWords::DEFAULT };
    Ok(ParsedEvaluation { format, ratings, member: Some(member) })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::training::config::reward_tokens::RewardTokens;

    use crate::training::preferences::{read_preferences, write_phantom_preferences};

    fn config(out: &Path) -> PreferenceFolderConfig {
        PreferenceFolderConfig::of_phantoms(out.to_owned(), 2)
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
            reward_tokens: Some(RewardTokens::default()),
            ..config(&dir.path().join("from-file"))
        };
        let counts = write_evaluation_preferences(&file, &from_file, &Interrupt::default())?;
        assert_eq!(counts.pairs, original.len() as u64);
        let rewritten = read_preferences(&from_file.out.join("preferences.jsonl"))?.items;
        for (before, after) in original.iter().zip(&rewritten) {
            assert_eq!((&before.member, &before.prompt), (&after.member, &after.prompt));
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
