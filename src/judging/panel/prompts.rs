//! The prompts of a panel as text, as its members read them.

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{
    BranchPrompts, EvaluationFormat, Form, JudgeInput, PromptPiece, Rubric,
};
use acem3_experts::{Aspect, expert_aspects};
use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::prompt_config::MEMBERS;
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
    options: PanelOptions,
    input: &JudgeInput<'_>,
    downloads: HubDownloads,
) -> Result<Vec<MemberPrompt>> {
    let definition = PanelDefinition::read(files, &Placement::cpu(), downloads)?;
    let config = &definition.prompt_config;
    config.check_form(options.form, options.shows_reference)?;
    let prompt_form = options.prompt_form(config.layout);
    let mut prompts = Vec::new();
    for (i, name) in MEMBERS.into_iter().enumerate() {
        let member = definition.members.get(i).context("the panel has too few members")?;
        let chat_template = member.chat_template.clone();
        // A text-only member does not see the image.
        let has_image = input.has_image && member.vision.is_some();
        let input = JudgeInput { has_image, ..input.clone() };
        let prefix = config.completion_prefixes.get(i).cloned().unwrap_or_default();
        let format = |format: EvaluationFormat| {
            let format = format.with_prefix(&prefix).with_prefix(&chat_template.lead);
            format.to_instructions()
        };
        let (pieces, format) = match Aspect::ALL.get(i) {
            Some(aspect) if !expert_aspects(options.form).contains(aspect) => continue,
            Some(aspect) => {
                let rubric = Rubric::built_in()?;
                let branches = BranchPrompts::for_form(prompt_form, rubric, config.rubric)?;
                let pieces =
                    branches.with_chat_template(chat_template.clone()).pieces(*aspect, &input)?;
                (pieces, format(expert_format(options.form, *aspect)))
            }
            None if options.form == Form::Correctness => continue,
            None => {
                let merge = MergePrompts::for_form(prompt_form)?;
                let evaluations = Aspect::ALL.map(|aspect| {
                    vec![PromptPiece::Trusted(format!("<{} evaluation>", aspect.key()))]
                });
                let pieces =
                    merge.with_chat_template(chat_template.clone()).pieces(&input, &evaluations)?;
                (pieces, format(EvaluationFormat::for_final_scores(options.form)))
            }
        };
        prompts.push(MemberPrompt { member: name, prompt: to_text(&pieces), format });
    }
    Ok(prompts)
}

/// Returns the format of a branch expert.
fn expert_format(form: Form, aspect: Aspect) -> EvaluationFormat {
    match form {
        Form::Pair | Form::Single => EvaluationFormat::for_expert(form, aspect),
        Form::Correctness => EvaluationFormat::for_correctness(),
    }
}

/// Joins the pieces of a prompt.
fn to_text(pieces: &[PromptPiece]) -> String {
    let texts = pieces.iter().map(|piece| match piece {
        PromptPiece::Trusted(text) | PromptPiece::Quoted(text) => text.as_str(),
        PromptPiece::Image => "<image>",
    });
    texts.collect()
}
