//! Variants of a study: named configurations, and notes about those that it leaves out.

use std::path::Path;

use crate::training::TrainConfig;

/// Inputs of a study besides the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct StudyInputs<'a> {
    /// Folder of a finished run of knowledge introspection, whose evaluations are trained on.
    pub introspection: Option<&'a Path>,
    /// True if the panels of the variants look up what they ask.
    pub has_knowledge: bool,
}

/// A named configuration of the study.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name of the variant in tables.
    pub name: String,
    /// Name of the folder.
    pub folder: String,
    /// Training configuration.
    pub config: TrainConfig,
    /// False for a variant whose panel looks nothing up.
    pub uses_knowledge: bool,
}

/// Variants of a study, and what it leaves out.
#[derive(Clone, Debug, Default)]
pub struct StudyVariants {
    /// The variants. The first is the baseline.
    pub variants: Vec<Variant>,
    /// A note about each variant that the configuration does not allow.
    pub notes: Vec<String>,
}

impl StudyVariants {
    /// Adds a variant.
    pub(super) fn push(&mut self, name: &str, config: TrainConfig) {
        let (name, folder) = (name.to_owned(), name.replace(' ', "-"));
        self.variants.push(Variant { name, folder, config, uses_knowledge: true });
    }

    /// Adds a variant whose panel looks nothing up.
    pub(super) fn push_without_knowledge(&mut self, name: &str, config: TrainConfig) {
        self.push(name, config);
        if let Some(last) = self.variants.last_mut() {
            last.uses_knowledge = false;
        }
    }

    /// Adds a note about a variant that the configuration does not allow.
    pub(super) fn skip(&mut self, name: &str, reason: &str) {
        self.notes.push(format!("no variant \"{name}\": {reason}"));
    }
}
