//! Options of a panel that shape its prompts and texts.

use acem3_experts::generate::GenerationSettings;
use acem3_experts::prompt::{Form, PromptForm, PromptLayout};

/// Options of a panel that shape its prompts and texts. The default judges pairs, writes analyses and
/// hides the reference answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PanelOptions {
    /// True to write scores without analyses.
    pub scores_only: bool,
    /// The form of judging.
    pub form: Form,
    /// True to show the reference answer to the members.
    pub shows_reference: bool,
}

impl PanelOptions {
    /// Returns the prompts of these options in a layout.
    pub(super) fn prompt_form(self, layout: PromptLayout) -> PromptForm {
        PromptForm { form: self.form, layout, shows_reference: self.shows_reference }
    }

    /// Returns the generation settings with this token budget of an analysis.
    pub(super) fn generation(self, analysis_tokens: usize) -> GenerationSettings {
        GenerationSettings { analysis_tokens, scores_only: self.scores_only }
    }
}
