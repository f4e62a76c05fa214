//! Preference pairs about phantoms, whose correct evaluations follow from rules.

use acem3_experts::Aspect;
use acem3_experts::prompt::{EvaluationFormat, Form, JudgeInput};
use anyhow::{Result, bail};

use super::negatives::{EvaluationContent, EvaluationRatings};
use super::prompt_style::{StyledPrompt, StyledPrompts};
use super::prompt_text::prompt_text;
use crate::checkpoints::panel::prompt_config::MEMBERS;
use crate::data::phantoms::{Phantom, generate_phantom};
use crate::support::terminal::interrupt::Interrupt;
use crate::training::preferences::files::preference_folder::{
    PairPrompt, PreferenceFolder, PreferenceFolderConfig, WrittenCounts,
};

/// Prompt of a member about a phantom, with the correct ratings.
struct PromptWithRatings {
    prompt: StyledPrompt,
    format: EvaluationFormat,
    ratings: EvaluationRatings,
}

/// Builds the prompt of a member about a phantom.
fn prompt_and_ratings(
    prompts: &StyledPrompts,
    member: usize,
    phantom: &Phantom,
) -> Result<PromptWithRatings> {
    let [first, second] = &phantom.responses;
    let responses = [first.text.as_str(), second.text.as_str()];
    let input = JudgeInput::pair(true, &phantom.question.text, responses);
    if let Some(aspect) = Aspect::ALL.get(member) {
        return Ok(PromptWithRatings {
            prompt: prompts.prompt(member, &input, &[])?,
            format: EvaluationFormat::for_aspect(*aspect),
            ratings: aspect_ratings(phantom, *aspect),
        });
    }
    let evaluations = Aspect::ALL.map(|aspect| {
        EvaluationFormat::for_aspect(aspect).render_pieces(&aspect_ratings(phantom, aspect))
    });
    let conclusions = phantom.responses.each_ref().map(|r| &r.conclusion);
    let ratings = conclusions.map(|c| (c.analysis.clone(), c.score));
    Ok(PromptWithRatings {
        prompt: prompts.prompt(member, &input, &evaluations)?,
        format: EvaluationFormat::for_conclusion(),
        ratings: ratings.into(),
    })
}

/// Returns the correct ratings of an aspect: all of the first response, then all of the second.
fn aspect_ratings(phantom: &Phantom, aspect: Aspect) -> EvaluationRatings {
    let ratings = phantom.responses.iter().flat_map(|r| &r.ratings);
    ratings
        .filter(|(criterion, _)| criterion.aspect() == Some(aspect))
        .map(|(_, rating)| (rating.analysis.clone(), rating.score))
        .collect()
}

/// Writes preference pairs about phantoms. Equal settings give equal bytes.
///
/// # Errors
/// If there are no cases, the user interrupts the command, the folder has other files, or a file
/// cannot be written.
pub fn write_phantom_preferences(
    config: &PreferenceFolderConfig,
    interrupt: &Interrupt,
) -> Result<WrittenCounts> {
    if config.cases == 0 {
        bail!("--count: expected at least 1, found 0\nhint: `--count 100` writes up to 400 pairs");
    }
    let prompts = config.prompts.builder(Form::Pair, false)?;
    let mut folder = PreferenceFolder::create(config)?;
    for index in 0..config.cases {
        interrupt.bail_if_requested("the pairs are not written; run the same command again")?;
        let phantom = generate_phantom(config.seed, index);
        let id = format!("phantom-{}-{index:05}", config.seed);
        let image = format!("images/{id}.png");
        phantom.write_image(&config.out.join(&image))?;
        for (i, member) in MEMBERS.iter().enumerate() {
            let PromptWithRatings { prompt, format, ratings } =
                prompt_and_ratings(&prompts, i, &phantom)?;
            let pair = PairPrompt {
                id: format!("{id}-{member}"),
                member: Some((*member).to_owned()),
                image: prompt.has_image.then(|| image.clone()),
                prompt: prompt_text(&prompt.pieces),
                lead: prompt.lead,
                format,
            };
            let content = EvaluationContent::of_pair(&ratings);
            folder.add(&pair, &content, index * MEMBERS.len() as u64 + i as u64)?;
        }
    }
    folder.finish()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;

    use super::super::prompt_text::IMAGE_MARKER;
    use super::*;
    use crate::support::files::folder::list_names;
    use crate::training::config::reward_tokens::RewardTokens;

    use crate::training::preferences::files::preference_folder::PREFERENCES_FILE;

    fn write(config: &PreferenceFolderConfig) -> Result<WrittenCounts> {
        write_phantom_preferences(config, &Interrupt::default())
    }

    fn config(out: &Path) -> PreferenceFolderConfig {
        PreferenceFolderConfig {
            reward_tokens: Some(RewardTokens::default()),
            ..PreferenceFolderConfig::of_phantoms(out.to_owned(), 6)
        }
    }

    #[test]
    fn lines_have_prompt_chosen_and_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let counts = write(&config(&dir.path().join("a"))).unwrap();
        assert_eq!(counts.pairs + counts.skipped, 24);
        assert!(counts.pairs > 20);
        let read =
            |name: &str| fs::read_to_string(dir.path().join(name).join(PREFERENCES_FILE)).unwrap();
        let lines = read("a");
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let field = |name: &str| line[name].as_str().unwrap();
            assert!(dir.path().join("a").join(line["images"][0].as_str().unwrap()).is_file());
            assert_eq!(field("prompt").matches(IMAGE_MARKER).count(), 1);
            let (chosen, rejected) = (field("chosen"), field("rejected"));
            let chosen = chosen.strip_prefix("[Good]").unwrap();
            let rejected = rejected.strip_prefix("[Bad]").unwrap();
            assert_ne!(chosen, rejected);
            assert_eq!(chosen.lines().count(), rejected.lines().count());
            assert_eq!(chosen.matches("Score:").count(), rejected.matches("Score:").count());
        }
        write(&config(&dir.path().join("b"))).unwrap();
        assert_eq!(lines, read("b"));
        let smaller = PreferenceFolderConfig { cases: 2, ..config(&dir.path().join("b")) };
        write(&smaller).unwrap();
        assert_eq!(list_names(&dir.path().join("b/images")).unwrap().len(), 2);
    }

    #[test]
    fn edited_pairs_are_kept_with_their_images() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        assert_eq!(write(&config).unwrap().edited, None);
        assert_eq!(write(&config).unwrap().edited, None);
        let file = dir.path().join(PREFERENCES_FILE);
        let edited = fs::read_to_string(&file).unwrap() + "\n";
        fs::write(&file, &edited).unwrap();
        let smaller = PreferenceFolderConfig { cases: 2, ..config };
        let kept = write(&smaller).unwrap().edited.unwrap();
        assert_eq!(fs::read_to_string(kept.path()).unwrap(), edited);
        assert_eq!(list_names(&dir.path().join("images")).unwrap().len(), 6);
    }

    #[test]
    fn failed_run_leaves_earlier_pairs() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        write(&config).unwrap();
        let lines = fs::read_to_string(dir.path().join(PREFERENCES_FILE)).unwrap();
        let images = || list_names(&dir.path().join("images")).unwrap().len();
        let count = images();
        drop(PreferenceFolder::create(&config).unwrap());
        assert_eq!(fs::read_to_string(dir.path().join(PREFERENCES_FILE)).unwrap(), lines);
        assert_eq!(images(), count);
    }

    #[test]
    fn folder_with_other_files_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.txt"), "years of work").unwrap();
        let error = write(&config(dir.path())).unwrap_err().to_string();
        assert!(error.contains("--out") && error.contains("hint:"), "{error}");
        assert!(!dir.path().join("images").exists());
    }

    #[test]
    fn preferences_of_another_program_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(PREFERENCES_FILE);
        fs::write(&file, "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n").unwrap();
        let error = write(&config(dir.path())).unwrap_err().to_string();
        assert!(error.contains("expected an empty folder"), "{error}");
        assert!(fs::read_to_string(&file).unwrap().contains("chosen"));
    }

    #[test]
    fn folder_with_other_images_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("images/phantom-3-00000.png");
        fs::create_dir(dir.path().join("images")).unwrap();
        fs::write(&image, "mine").unwrap();
        assert!(write(&config(dir.path())).is_err());
        assert_eq!(fs::read_to_string(&image).unwrap(), "mine");
    }
}
