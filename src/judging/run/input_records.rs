//! Records of input that the judge never gets: problems, and texts that no prompt can hold.

use crate::data::cases::{Case, InputProblem, ProblemScope, RemovedResponse, UnscoredReason};
use crate::data::images::relative_path;
use crate::judging::judge::Unscored;
use crate::judging::run::Run;
use crate::judging::run::pending::{InputItem, PendingOutcome, PendingRecord};
use crate::judging::run::problem_subjects::problem_subjects;
use crate::judging::run::record::{AffectedResponses, RecordOutcome, RecordSubject};
use crate::judging::run::summary::tally::Origin;

impl Run<'_> {
    /// Returns what each record of a problem is about.
    fn affected_responses(&self, scope: &ProblemScope) -> Vec<AffectedResponses> {
        problem_subjects(scope, self.selection.form, self.selection.baseline.as_deref())
    }

    /// Adds the records of an input problem.
    pub(super) fn push_problem(&mut self, problem: &InputProblem) -> anyhow::Result<()> {
        let file = relative_path(&problem.file, &self.config.root);
        let subjects = self.affected_responses(&problem.scope);
        let last = subjects.len().saturating_sub(1);
        let item =
            if problem.affects_whole_case() { InputItem::Unreadable } else { InputItem::LeftOut };
        for (i, affected) in subjects.into_iter().enumerate() {
            let subject =
                RecordSubject::from_problem(problem, affected, file.clone(), &self.digest)
                    .with_form(self.selection.form);
            let completes = (i == last).then_some(item);
            let outcome = RecordOutcome::from_problem(problem);
            self.push(PendingRecord {
                subject,
                outcome: PendingOutcome::Known(outcome, Origin::Input),
                completes,
            })?;
        }
        Ok(())
    }

    /// Adds the records of responses that were removed from a case. If they complete the case, no
    /// pair of it follows.
    pub(super) fn push_removed(
        &mut self,
        case: &Case,
        removed: Vec<RemovedResponse>,
        complete_case: bool,
    ) -> anyhow::Result<()> {
        let last_response = removed.len().saturating_sub(1);
        for (number, RemovedResponse { message, scope }) in removed.into_iter().enumerate() {
            let subjects = self.affected_responses(&scope);
            let last = subjects.len().saturating_sub(1);
            for (i, affected) in subjects.into_iter().enumerate() {
                let case = RecordSubject::for_case(case, self.selection.form, &self.digest);
                let subject = RecordSubject { models: Vec::new(), ..case }.with_responses(affected);
                let item = if complete_case && number == last_response {
                    InputItem::Case
                } else {
                    InputItem::LeftOut
                };
                let completes = (i == last).then_some(item);
                let reason = UnscoredReason::Truncated;
                self.push_unscored(subject, reason, message.clone(), completes)?;
            }
        }
        Ok(())
    }

    /// Adds the records of a case of which nothing can be judged.
    pub(super) fn push_unscored_case(
        &mut self,
        case: &Case,
        reason: UnscoredReason,
        message: &str,
    ) -> anyhow::Result<()> {
        let models = case.responses.iter().map(|response| response.model.clone()).collect();
        let subjects = self.affected_responses(&ProblemScope::Case(models));
        let last = subjects.len().saturating_sub(1);
        for (i, affected) in subjects.into_iter().enumerate() {
            let subject = RecordSubject::for_case(case, self.selection.form, &self.digest);
            let completes = (i == last).then_some(InputItem::Case);
            self.push_unscored(
                subject.with_responses(affected),
                reason,
                message.to_owned(),
                completes,
            )?;
        }
        Ok(())
    }

    /// Adds a record without a verdict.
    pub(super) fn push_unscored(
        &mut self,
        subject: RecordSubject,
        reason: UnscoredReason,
        message: String,
        completes: Option<InputItem>,
    ) -> anyhow::Result<()> {
        let outcome = RecordOutcome::Unscored(Unscored::new(reason, message));
        self.push(PendingRecord {
            subject,
            outcome: PendingOutcome::Known(outcome, Origin::Input),
            completes,
        })
    }
}
