//! One presentation order of a verdict.

use crate::judging::judge::recorded_verdict::RecordedOrder;
use crate::judging::run::record::RecordSubject;
use crate::training::preferences::prompt_style::StyledPrompts;

/// One presentation order of a verdict.
pub(super) struct VerdictOrder<'a> {
    pub(super) subject: &'a RecordSubject,
    pub(super) order: &'a RecordedOrder,
    /// Index of the order in its verdict.
    pub(super) index: usize,
    pub(super) prompts: &'a StyledPrompts,
}

impl VerdictOrder<'_> {
    /// Returns the id of the pair of a member.
    pub(super) fn id(&self, member: &str) -> String {
        let case = self.subject.case.as_deref().unwrap_or_default();
        let models = self.subject.judged_models().join("-");
        match self.index {
            0 => format!("{case}-{models}-{member}"),
            index => format!("{case}-{models}-order-{index}-{member}"),
        }
    }
}
