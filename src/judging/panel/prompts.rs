//! The prompts of a panel as text, as its members read them.

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{BranchPrompts, EvaluationFormat, Form, JudgeInput, PromptPiece};
use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::judging::panel::options::PanelOptions;
use crate::support::device::Placement;

/// What one member reads, and the format of what it writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberPrompt {
    /// The member.
    pub member: &'static str,
    /// The prompt. `<image>` stands for the image tokens, and `<… evaluation>` for the text of an
    /// expert, which is known only when it has been written.
    pub prompt: String,
    /// The format of the evaluation that the member writes.
    pub format: String,
}

/// Renders the prompts of a panel about one input.
///
/// # Errors
///
/// The panel cannot be read, or was trained for another form.
pub fn member_prompts(
    files: &PanelFiles,
    options: &PanelOptions,
    input: &JudgeInput<'_>,
    downloads: HubDownloads,
) -> Result<Vec<MemberPrompt>> {
    let rubric = options.to_rubric()?;
    let definition = PanelDefinition::read(files, &rubric, &Placement::cpu(), downloads)?;
    let config = &definition.prompt_config;
    config.check_form(options.form, options.shows_reference)?;
    let prompt_form = options.prompt_form(config);
    let branches = BranchPrompts::for_form(prompt_form, rubric.clone(), config.rubric)?;
    let mut prompts = Vec::new();
    let experts = rubric.experts(options.form).into_iter();
    let experts = experts.map(|(i, aspect)| (i, Some(aspect)));
    let conclusion = (options.form != Form::Correctness).then_some((rubric.aspects.len(), None));
    for (i, aspect) in experts.chain(conclusion) {
        let member = definition.members.get(i).context("the panel has too few members")?;
        let chat_template = member.chat_template.clone();
        // A text-only member does not see the image.
        let has_image = input.has_image && member.vision.is_some();
        let input = JudgeInput { has_image, ..input.clone() };
        let (words, responses) = (rubric.score_words(), input.responses.len());
        let (pieces, format) = if let Some(aspect) = aspect {
            let branches = branches.clone().with_chat_template(chat_template.clone());
            let format = EvaluationFormat::of_expert(options.form, responses, aspect, words);
            (branches.pieces(aspect.key, &input)?, format)
        } else {
            let merge = MergePrompts::for_form(prompt_form, rubric.clone())?;
            let evaluation =
                |key: Aspect| vec![PromptPiece::Trusted(format!("<{} evaluation>", key.key()))];
            let evaluations: Vec<_> =
                rubric.aspects.iter().map(|aspect| evaluation(aspect.key)).collect();
            let merge = merge.with_chat_template(chat_template.clone());
            let format = EvaluationFormat::for_final_scores(responses, words);
            (merge.pieces(&input, &evaluations)?, format)
        };
        let prefix = config.completion_prefixes.get(i).cloned().unwrap_or_default();
        let format = format.with_prefix(&prefix).with_prefix(&chat_template.lead);
        prompts.push(MemberPrompt {
            member: definition.names.get(i).copied().unwrap_or_default(),
            prompt: to_text(&pieces),
            format: format.to_instructions(),
        });
    }
    Ok(prompts)
}

/// Joins the pieces of a prompt.
fn to_text(pieces: &[PromptPiece]) -> String {
    let texts = pieces.iter().map(|piece| match piece {
        PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => text.as_str(),
        PromptPiece::Image => "<image>",
    });
    texts.collect()
}
