//! How the prompts of preference pairs are written: those of a panel, or a layout without a panel.

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{
    BranchPrompts, ChatTemplate, EvaluationFormat, Form, JudgeInput, PromptForm, PromptLayout,
    PromptPiece, Rubric, RubricAspect, RubricDetail,
};
use anyhow::{Context, Result};

use crate::checkpoints::hub::HubDownloads;
use crate::checkpoints::panel::member_names::MemberNames;
use crate::checkpoints::panel::prompt_config::CONCLUSION;
use crate::judging::panel::{PromptMember, PromptMembers, PromptedPanel};
use crate::training::TrainConfig;
use crate::training::config::reward_tokens::RewardTokens;

/// What the prompts about responses depend on.
#[derive(Clone, Debug)]
pub struct PromptStyle {
    prompt_form: PromptForm,
    detail: RubricDetail,
    rubric: Rubric,
    /// One for each aspect of the rubric, then the conclusion model.
    members: Vec<MemberStyle>,
    /// Reward tokens of the members.
    reward_tokens: RewardTokens,
}

/// What the prompts of one member depend on.
#[derive(Clone, Debug)]
struct MemberStyle {
    chat_template: ChatTemplate,
    sees_images: bool,
}

/// Prompt and start of the completion of a member.
pub(crate) struct StyledPrompt {
    /// Pieces of the prompt, in the member's chat template.
    pub(crate) pieces: Vec<PromptPiece>,
    /// Text that begins every completion in the chat template.
    pub(crate) lead: String,
    /// True if the prompt shows the image.
    pub(crate) has_image: bool,
}

impl PromptStyle {
    /// Returns prompts about pairs in a layout, without a chat template.
    pub fn of_layout(layout: PromptLayout, detail: RubricDetail, rubric: Rubric) -> Self {
        let member = MemberStyle { chat_template: ChatTemplate::default(), sees_images: true };
        let members = vec![member; rubric.aspects.len() + 1];
        Self {
            prompt_form: PromptForm::pair(layout),
            detail,
            rubric,
            members,
            reward_tokens: RewardTokens::default(),
        }
    }

    /// Returns the prompts about pairs of the panel that a configuration trains.
    pub fn of_training(config: &TrainConfig, rubric: Rubric) -> Self {
        let style = Self::of_layout(config.layout, config.rubric, rubric);
        let style = style.with_chat_template(&config.dialogue);
        if config.model.is_text_only() { style.without_images() } else { style }
    }

    /// Puts the prompts of all members into a chat template.
    #[must_use]
    pub fn with_chat_template(mut self, template: &ChatTemplate) -> Self {
        for member in &mut self.members {
            member.chat_template = template.clone();
        }
        self
    }

    /// Shows no images to the members.
    #[must_use]
    pub fn without_images(mut self) -> Self {
        for member in &mut self.members {
            member.sees_images = false;
        }
        self
    }

    /// Says to the members that they may ask questions, if `offers` is true.
    #[must_use]
    pub fn offering_knowledge(mut self, offers: bool) -> Self {
        self.prompt_form.offers_knowledge = offers;
        self
    }

    /// Returns the reward tokens of the panel; the built-in ones without a panel.
    ///
    /// # Errors
    /// If the panel states only the token of chosen evaluations of a member.
    pub fn reward_tokens(&self) -> Result<RewardTokens> {
        self.reward_tokens.check_texts().context(
            "the panel does not state all its reward tokens; `--reward-tokens-of CONFIG` reads them from a \
             training configuration",
        )?;
        Ok(self.reward_tokens.clone())
    }

    /// Returns the rubric.
    pub fn rubric(&self) -> &Rubric {
        &self.rubric
    }

    /// Returns the prompts about pairs that the members of a panel read.
    ///
    /// # Errors
    /// The panel cannot be read, or does not judge by the rubric.
    pub fn of_panel(
        panel: PromptedPanel<'_>,
        rubric: Rubric,
        downloads: HubDownloads,
    ) -> Result<Self> {
        let PromptMembers { config, members } = PromptMembers::read(panel, &rubric, downloads)?;
        let style = |member: PromptMember| MemberStyle {
            chat_template: member.chat_template,
            sees_images: member.sees_images,
        };
        Ok(Self {
            prompt_form: PromptForm {
                is_trained: config.is_trained(),
                ..PromptForm::pair(config.layout)
            },
            detail: config.rubric,
            reward_tokens: RewardTokens::of_panel(
                MemberNames::of_rubric(&rubric)?,
                &config.completion_prefixes,
                &config.rejected_prefixes,
            ),
            rubric,
            members: members.into_iter().map(style).collect(),
        })
    }

    /// Creates the builder of the prompts of a form of judging.
    ///
    /// # Errors
    /// The texts of the program are damaged.
    pub(crate) fn builder(&self, form: Form, shows_reference: bool) -> Result<StyledPrompts> {
        let rubric = self.rubric.clone();
        let prompt_form = PromptForm { form, shows_reference, ..self.prompt_form };
        let prompt_form = prompt_form.for_rubric(Some(&rubric));
        let merge = match form {
            Form::Correctness => None,
            _ => Some(MergePrompts::for_form(prompt_form, rubric.clone())?),
        };
        Ok(StyledPrompts {
            form,
            shows_reference,
            branches: BranchPrompts::for_form(prompt_form, rubric.clone(), self.detail)?,
            merge,
            members: self.members.clone(),
            rubric,
        })
    }
}

/// Builds the prompts of all members about one form.
pub(crate) struct StyledPrompts {
    form: Form,
    shows_reference: bool,
    branches: BranchPrompts,
    /// `None` for a form without a conclusion model.
    merge: Option<MergePrompts>,
    members: Vec<MemberStyle>,
    rubric: Rubric,
}

impl StyledPrompts {
    /// Returns the form of judging.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Returns true if the prompts show the reference answer.
    pub(crate) fn shows_reference(&self) -> bool {
        self.shows_reference
    }

    /// Returns the experts that judge in this form, with their index among the members.
    pub(crate) fn experts(&self) -> Vec<(usize, &RubricAspect)> {
        self.rubric.experts(self.form)
    }

    /// Returns the index of the conclusion model; `None` for a form without one.
    pub(crate) fn conclusion(&self) -> Option<usize> {
        self.merge.as_ref().map(|_| self.rubric.aspects.len())
    }

    /// Returns the name of a member.
    pub(crate) fn member_name(&self, member: usize) -> &'static str {
        self.rubric.aspects.get(member).map_or(CONCLUSION, |aspect| aspect.key.key())
    }

    /// Returns the format of a member's evaluation of this number of responses.
    pub(crate) fn format(&self, member: usize, responses: usize) -> EvaluationFormat {
        let words = self.rubric.score_words();
        match self.rubric.aspects.get(member) {
            Some(aspect) => EvaluationFormat::of_expert(self.form, responses, aspect, words),
            None => EvaluationFormat::for_final_scores(responses, words),
        }
    }

    /// Builds the prompt of a member. `evaluations`: texts of the experts, which the conclusion model
    /// reads.
    ///
    /// # Errors
    /// There is no such member, or a text of the program is damaged.
    pub(crate) fn prompt(
        &self,
        member: usize,
        input: &JudgeInput<'_>,
        evaluations: &[Vec<PromptPiece>],
    ) -> Result<StyledPrompt> {
        let MemberStyle { chat_template, sees_images } =
            self.members.get(member).with_context(|| format!("no member {member}"))?;
        let has_image = input.has_image && *sees_images;
        let input = JudgeInput { has_image, ..input.clone() };
        let chat_template = chat_template.clone();
        let lead = chat_template.lead.clone();
        let pieces = if let Some(aspect) = self.rubric.aspects.get(member) {
            let branches = self.branches.clone().with_chat_template(chat_template);
            branches.pieces(aspect.key, &input)?
        } else {
            let merge = self.merge.clone().context("the form has no conclusion model")?;
            merge.with_chat_template(chat_template).pieces(&input, evaluations)?
        };
        Ok(StyledPrompt { pieces, lead, has_image })
    }
}
