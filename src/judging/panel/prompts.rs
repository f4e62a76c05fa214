//! The prompts of a panel as text, as its members read them.

use acem3_conclusion::MergePrompts;
use acem3_experts::Aspect;
use acem3_experts::prompt::{
    BranchPrompts, ChatTemplate, EvaluationFormat, Form, JudgeInput, PromptPiece, Rubric,
};
use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::definition::PanelDefinition;
use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::member::Member;
use crate::checkpoints::panel::members_file::MembersFile;
use crate::checkpoints::panel::prompt_config::{CONCLUSION, PromptConfig};
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

/// A panel whose prompts are rendered.
#[derive(Clone, Copy, Debug)]
pub enum PromptedPanel<'a> {
    /// A panel of checkpoints, or a file with served members.
    Files(&'a PanelFiles),
    /// A served model that takes the part of every member.
    Model,
}

/// Prompt settings and members of a panel.
pub(crate) struct PromptMembers {
    /// Prompt settings of the panel.
    pub(crate) config: PromptConfig,
    /// The members, in the order of the panel.
    pub(crate) members: Vec<PromptMember>,
}

/// What the prompts of a member depend on.
pub(crate) struct PromptMember {
    name: &'static str,
    /// Text around the prompts.
    pub(crate) chat_template: ChatTemplate,
    /// False for a text model.
    pub(crate) sees_images: bool,
}

impl PromptMembers {
    /// Reads the prompt settings of a panel that judges by a rubric.
    ///
    /// # Errors
    ///
    /// The panel cannot be read.
    pub(crate) fn read(
        panel: PromptedPanel<'_>,
        rubric: &Rubric,
        downloads: HubDownloads,
    ) -> Result<Self> {
        let files = match panel {
            PromptedPanel::Files(files) => files,
            PromptedPanel::Model => {
                let config = MembersFile::served_prompt_config(String::new());
                return Ok(Self::served(config, rubric, true));
            }
        };
        let served = match files {
            PanelFiles::Members(path) => {
                let file = MembersFile::read(path)?;
                file.has_served_members().then_some((file, path))
            }
            _ => None,
        };
        let Some((file, path)) = served else {
            let definition = PanelDefinition::read(files, rubric, &Placement::cpu(), downloads)?;
            let members = definition.members.iter().zip(&definition.names);
            let members = members.map(|(member, name)| PromptMember::of_checkpoint(name, member));
            return Ok(Self { members: members.collect(), config: definition.prompt_config });
        };
        let endpoints = file.endpoints(path)?;
        let mut panel = Self::served(file.prompt_config(path), rubric, true);
        for (member, endpoint) in panel.members.iter_mut().zip(&endpoints) {
            member.sees_images = endpoint.as_ref().is_none_or(|endpoint| !endpoint.text_only);
        }
        if file.has_checkpoints() {
            let (placement, file) = (Placement::cpu(), &file);
            let definition =
                PanelDefinition::read_checkpoints(file, path, rubric, &placement, downloads)?;
            for (index, member) in definition.indices.iter().zip(&definition.members) {
                if let Some(prompted) = panel.members.get_mut(*index) {
                    *prompted = PromptMember::of_checkpoint(prompted.name, member);
                }
            }
        }
        Ok(panel)
    }

    /// The server adds its chat template.
    fn served(config: PromptConfig, rubric: &Rubric, sees_images: bool) -> Self {
        let names = rubric.aspects.iter().map(|aspect| aspect.key.key()).chain([CONCLUSION]);
        let chat_template = ChatTemplate::default();
        let member =
            |name| PromptMember { name, chat_template: chat_template.clone(), sees_images };
        Self { config, members: names.map(member).collect() }
    }
}

impl PromptMember {
    fn of_checkpoint(name: &'static str, member: &Member) -> Self {
        Self {
            name,
            chat_template: member.chat_template.clone(),
            sees_images: member.vision.is_some(),
        }
    }
}

/// Renders the prompts of a panel about one input.
///
/// # Errors
///
/// The panel cannot be read, or was trained for another form.
pub fn member_prompts(
    panel: PromptedPanel<'_>,
    options: &PanelOptions,
    input: &JudgeInput<'_>,
    downloads: HubDownloads,
) -> Result<Vec<MemberPrompt>> {
    let options = match panel {
        PromptedPanel::Files(files) => options.clone().with_rubric_of(files)?,
        PromptedPanel::Model => options.clone(),
    };
    let rubric = options.to_rubric()?;
    let PromptMembers { config, members } = PromptMembers::read(panel, &rubric, downloads)?;
    config.check_form(options.form, options.shows_reference)?;
    let prompt_form = options.prompt_form(&config);
    let branches = BranchPrompts::for_form(prompt_form, rubric.clone(), config.rubric)?;
    let mut prompts = Vec::new();
    let experts = rubric.experts(options.form).into_iter();
    let experts = experts.map(|(i, aspect)| (i, Some(aspect)));
    let conclusion = (options.form != Form::Correctness).then_some((rubric.aspects.len(), None));
    for (i, aspect) in experts.chain(conclusion) {
        let member = members.get(i).context("the panel has too few members")?;
        let chat_template = member.chat_template.clone();
        // A text-only member does not see the image.
        let has_image = input.has_image && member.sees_images;
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
            member: member.name,
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
