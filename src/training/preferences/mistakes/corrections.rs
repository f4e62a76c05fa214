//! Evaluations of a teacher that replace wrong ones.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, bail};

use super::skipped_mistakes::SkipReason;
use super::verdict_order::VerdictOrder;
use crate::judging::judge::recorded_verdict::{RecordedOrder, RecordedVerdict};
use crate::judging::run::record::RecordSubject;
use crate::judging::run::record::find_records::find_records;
use crate::judging::run::record::record_reader::open_records;
use crate::training::preferences::files::source_evaluations::read_source_evaluations;
use crate::training::preferences::prompt_text;
use crate::training::preferences::recorded_evaluations::{EvaluatedMember, PresentedEvaluation};

/// Evaluations of a teacher.
pub(super) enum Corrections {
    /// Verdicts on the same responses.
    Verdicts(HashMap<SubjectKey, RecordedVerdict>),
    /// Completions by prompt, with their member.
    Texts(HashMap<String, Vec<(Option<String>, String)>>),
}

/// What a verdict is about: form, case, question and responses. The same responses in a case of another id are
/// another subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SubjectKey {
    form: &'static str,
    case: String,
    question: String,
    responses: Vec<String>,
}

impl SubjectKey {
    fn new(subject: &RecordSubject) -> Self {
        Self {
            form: subject.form.name(),
            case: subject.case.clone().unwrap_or_default(),
            question: subject.question.clone().unwrap_or_default(),
            responses: subject.responses.clone().unwrap_or_default(),
        }
    }
}

/// Evaluation of a teacher.
pub(super) struct Correction {
    /// The evaluation.
    pub(super) evaluation: PresentedEvaluation,
    /// Final scores of the teacher's verdict; `None` in a file of evaluations.
    pub(super) final_scores: Option<Vec<f64>>,
}

impl Corrections {
    /// Reads the records of a run, or a file of evaluations.
    pub(super) fn read(path: &Path) -> Result<Self> {
        if find_records(path).is_none() {
            if path.is_dir() {
                bail!(
                    "--corrections {}: the folder has no records.jsonl\n\
                     hint: pass the output of `acem3 judge`, or a file of evaluations",
                    path.display()
                );
            }
            let mut texts: HashMap<String, Vec<_>> = HashMap::new();
            for evaluation in read_source_evaluations(path)?.items {
                let prompt = prompt_text(&evaluation.prompt);
                texts.entry(prompt).or_default().push((evaluation.member, evaluation.text));
            }
            return Ok(Self::Texts(texts));
        }
        let mut verdicts = HashMap::new();
        for record in open_records(path)? {
            let record = record?;
            if let Some(verdict) = record.verdict() {
                verdicts.insert(SubjectKey::new(&record.subject), verdict.clone());
            }
        }
        Ok(Self::Verdicts(verdicts))
    }

    /// Finds the evaluation of the teacher for the prompt of a member.
    pub(super) fn find(
        &self,
        presentation: &VerdictOrder<'_>,
        member: &EvaluatedMember,
        prompt: &str,
    ) -> Result<Correction, SkipReason> {
        match self {
            Self::Verdicts(verdicts) => {
                let verdict = verdicts.get(&SubjectKey::new(presentation.subject));
                let verdict = verdict.ok_or(SkipReason::NoCorrection)?;
                let own = presentation.order;
                let is_same = |order: &&RecordedOrder| {
                    own.swapped == order.swapped && own.first_shown == order.first_shown
                };
                let order = verdict.orders.iter().find(is_same);
                let order = order.ok_or(SkipReason::NoCorrection)?;
                Ok(Correction {
                    evaluation: PresentedEvaluation::of_order(order, member)?,
                    final_scores: Some(order.scores.iter().map(|s| f64::from(*s)).collect()),
                })
            }
            Self::Texts(texts) => {
                let name = presentation.prompts.member_name(member.index);
                let shown = presentation.order.shown_responses();
                let format = presentation.prompts.format(member.index, shown.len());
                let evaluations = texts.get(prompt).into_iter().flatten();
                let mut of_member = evaluations
                    .filter(|(other, _)| other.as_deref().is_none_or(|other| other == name));
                let ratings = of_member.find_map(|(_, text)| format.parse(text).ok());
                let ratings = ratings.ok_or(SkipReason::NoCorrection)?;
                let criteria = ratings.len() / shown.len().max(1);
                let mut scores = vec![0.0; shown.len()];
                for (position, response) in shown.iter().enumerate() {
                    let of_response = ratings.iter().skip(position * criteria).take(criteria);
                    let sum: f64 = of_response.map(|(_, score)| f64::from(*score)).sum();
                    scores[*response] = sum / criteria.max(1) as f64;
                }
                let lookups = vec![Vec::new(); ratings.len()];
                let evaluation = PresentedEvaluation { ratings, lookups, scores };
                Ok(Correction { evaluation, final_scores: None })
            }
        }
    }
}
