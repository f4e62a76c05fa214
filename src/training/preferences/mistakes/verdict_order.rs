//! One presentation order of a verdict, with the members that judged.

use acem3_experts::prompt::Form;

use super::presented_evaluation::{EvaluatedMember, shown_order};
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::judging::run::record::RecordSubject;
use crate::training::preferences::prompt_style::StyledPrompts;

/// One presentation order of a verdict.
pub(super) struct VerdictOrder<'a> {
    pub(super) subject: &'a RecordSubject,
    pub(super) verdict: &'a RecordedVerdict,
    /// Index of the order in the verdict.
    pub(super) index: usize,
    pub(super) prompts: &'a StyledPrompts,
}

impl VerdictOrder<'_> {
    /// Returns the members that judged in this form: the experts, then the conclusion model.
    pub(super) fn members(&self) -> Vec<EvaluatedMember> {
        let experts = self.prompts.experts().into_iter();
        let experts = experts.map(|(index, aspect)| EvaluatedMember {
            index,
            aspect: Some(aspect.key),
            criteria: match self.subject.form {
                Form::Correctness => Vec::new(),
                _ => aspect.criteria.iter().map(|criterion| criterion.key).collect(),
            },
        });
        let conclusion = self.prompts.conclusion().map(|index| EvaluatedMember {
            index,
            aspect: None,
            criteria: Vec::new(),
        });
        experts.chain(conclusion).collect()
    }

    /// Returns the id of the pair of a member.
    pub(super) fn id(&self, member: &str) -> String {
        let case = self.subject.case.as_deref().unwrap_or_default();
        let models = self.subject.judged_models().join("-");
        match self.index {
            0 => format!("{case}-{models}-{member}"),
            index => format!("{case}-{models}-order-{index}-{member}"),
        }
    }

    /// Returns the indices of the responses in the order in which they were shown.
    pub(super) fn order(&self) -> Vec<usize> {
        shown_order(self.verdict, self.index)
    }
}
