//! Whether the evaluations of a configuration teach the panel to ask questions.

use anyhow::{Result, bail};

use crate::judging::knowledge::JudgeKnowledge;
use crate::training::TrainConfig;
use crate::training::preferences::files::asked_questions::has_questions;
use crate::training::preferences::read_evaluations;

/// Returns where the panels of the rounds look up what they ask; `None` if they are not trained to ask.
///
/// # Errors
/// An evaluation asks a question and there is no index, or a file cannot be read.
pub(crate) fn panel_knowledge(
    config: &TrainConfig,
    knowledge: Option<&JudgeKnowledge>,
) -> Result<Option<JudgeKnowledge>> {
    let evaluations = config.stages.iter().filter_map(|stage| stage.evaluations.as_ref());
    for config in evaluations.filter(|config| !config.strips_questions) {
        for evaluation in &read_evaluations(&config.file)?.items {
            if !has_questions(evaluation)? {
                continue;
            }
            let Some(knowledge) = knowledge else {
                bail!(
                    "{}, line {}: the evaluation asks a question, and there is no index that answers those of \
                     the trained panel\n\
                     hint: pass --knowledge INDEX, or set `strip_questions = true` in [stages.evaluations]",
                    config.file.display(),
                    evaluation.line
                );
            };
            return Ok(Some(knowledge.clone()));
        }
    }
    Ok(None)
}
