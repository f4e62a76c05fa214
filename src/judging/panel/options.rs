//! Options of a panel that shape its prompts and texts.

use std::sync::Arc;

use acem3_experts::Error;
use acem3_experts::generate::GenerationSettings;
use acem3_experts::prompt::{Form, PromptForm, Rubric};

use crate::checkpoints::panel::files::PanelFiles;
use crate::checkpoints::panel::prompt_config::PromptConfig;
use crate::checkpoints::panel::sample_count::SampleCount;
use crate::checkpoints::panel::trained_rubrics::own_rubric;
use crate::judging::knowledge::JudgeKnowledge;
use crate::judging::provenance::{Provenance, add_form};

/// Options of a judge run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JudgeOptions {
    /// True to judge one presentation order instead of both.
    pub single_order: bool,
    /// Number of samples of each text, whose scores are averaged: 1 for the most probable text, `None` for
    /// the number that the panel states.
    pub samples: Option<SampleCount>,
}

impl JudgeOptions {
    /// Returns the options of a run whose texts are used, for example as training data. With one sample, each
    /// score belongs to the text before it.
    pub fn most_probable() -> Self {
        Self { samples: Some(SampleCount::ONE), ..Self::default() }
    }
}

/// Options of a panel that shape its prompts and texts. The default judges pairs, writes analyses and
/// hides the reference answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PanelOptions {
    /// True to write scores without analyses.
    pub scores_only: bool,
    /// The form of judging.
    pub form: Form,
    /// True to show the reference answer to the members.
    pub shows_reference: bool,
    /// The rubric; `None` for that of ACE-M³.
    pub rubric: Option<Arc<Rubric>>,
    /// Where the members look up what they ask; `None` if they may not ask.
    pub knowledge: Option<JudgeKnowledge>,
}

impl PanelOptions {
    /// Returns the prompts of these options for a panel.
    pub(super) fn prompt_form(&self, config: &PromptConfig) -> PromptForm {
        PromptForm {
            form: self.form,
            layout: config.layout,
            shows_reference: self.shows_reference,
            is_trained: config.is_trained(),
            offers_knowledge: self.knowledge.is_some(),
        }
        .for_rubric(self.rubric.as_deref())
    }

    /// Adds these options and those of a run to what can change a verdict.
    pub(in crate::judging) fn add_to(&self, provenance: &mut Provenance, run: JudgeOptions) {
        add_form(provenance, self.form, self.shows_reference, self.rubric.as_deref());
        if let Some(knowledge) = &self.knowledge {
            knowledge.add_to(provenance);
        }
        let orders = if run.single_order { "single" } else { "both" };
        let texts = if self.scores_only { "scores-only" } else { "analyses" };
        provenance.insert("orders".to_owned(), orders.to_owned());
        provenance.insert("texts".to_owned(), texts.to_owned());
        if let Some(samples) = run.samples.filter(|samples| !samples.is_one()) {
            provenance.insert("samples".to_owned(), samples.to_string());
            provenance.insert("ties".to_owned(), "below half a score step".to_owned());
        }
    }

    /// Returns the rubric.
    ///
    /// # Errors
    ///
    /// The built-in rubric is damaged.
    pub fn to_rubric(&self) -> Result<Rubric, Error> {
        self.rubric.as_deref().map_or_else(Rubric::built_in, |rubric| Ok(rubric.clone()))
    }

    /// Uses the rubric of a panel, unless another one is set.
    ///
    /// # Errors
    ///
    /// The panel's rubric cannot be read.
    pub(super) fn with_rubric_of(self, files: &PanelFiles) -> anyhow::Result<Self> {
        let rubric = match self.rubric {
            None => own_rubric(files)?.map(Arc::new),
            rubric => rubric,
        };
        Ok(Self { rubric, ..self })
    }

    /// Returns the generation settings with this token budget of an analysis.
    pub(super) fn generation(&self, analysis_tokens: usize) -> GenerationSettings {
        GenerationSettings { analysis_tokens, scores_only: self.scores_only }
    }
}
