//! Reads answers from records; each answer counts once, regardless of its number of pairs.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Result, bail};

use super::answer::{AnswerSet, MetricAnswer, MissingAnswer};
use crate::analysis::metrics::lexical::closed::is_closed;
use crate::judging::run::record::record_reader::RecordReader;
use crate::judging::run::record::{Record, RecordOutcome, RecordSubject};

impl AnswerSet {
    /// Reads the answers in a records file, from at most `limit` cases.
    ///
    /// # Errors
    /// A line is not a record, or no record has an answer.
    pub fn from_records(path: &Path, limit: Option<u64>) -> Result<Self> {
        let mut set = Self::default();
        // Line and models of each case; the flag is true if the answer was found.
        let mut cases: HashMap<String, (u64, Vec<(String, bool)>)> = HashMap::new();
        let mut order: Vec<String> = Vec::new();
        let to_subject = |record: Record, _| {
            let is_noted = matches!(record.outcome, RecordOutcome::Noted { .. });
            Ok((!is_noted).then_some(record.subject))
        };
        let mut records = RecordReader::open(path, to_subject)?;
        let mut is_full = false;
        for subject in records.by_ref() {
            // The state of the run follows from all its records, so all of them are read.
            let Some(subject) = subject?.filter(|_| !is_full) else {
                continue;
            };
            let Some(case) = &subject.case else {
                set.unreadable.push(format!("line {}", subject.line));
                continue;
            };
            if !cases.contains_key(case) {
                if limit.is_some_and(|limit| order.len() as u64 >= limit) {
                    is_full = true;
                    continue;
                }
                order.push(case.clone());
                cases.insert(case.clone(), (subject.line, Vec::new()));
            }
            let Some((_, models)) = cases.get_mut(case) else {
                continue;
            };
            let pair = subject.pair.iter().flatten();
            for model in pair.chain(&subject.models) {
                if !models.iter().any(|(known, _)| known == model) {
                    models.push((model.clone(), false));
                }
            }
            let texts = subject.judged_models().iter().zip(subject.responses.iter().flatten());
            for (model, text) in texts {
                let entry = models.iter_mut().find(|(known, _)| known == model);
                if let Some((_, has_answer)) = entry.filter(|(_, has_answer)| !has_answer) {
                    *has_answer = true;
                    set.answers.push(metric_answer(&subject, case, model, text));
                }
            }
        }
        set.runs.push(records.state());
        let answered: HashSet<&str> = set.answers.iter().map(|a| a.case.as_str()).collect();
        set.cases = answered.len() as u64;
        for case in order {
            let Some((line, models)) = cases.remove(&case) else {
                continue;
            };
            let unanswered = models.into_iter().filter(|(_, has_answer)| !has_answer);
            set.missing.extend(unanswered.map(|(model, _)| MissingAnswer {
                case: Some(case.clone()),
                line,
                model,
                message: "no record has an answer of this model".to_owned(),
            }));
        }
        if set.answers.is_empty() {
            bail!("{}: no record has an answer", path.display());
        }
        Ok(set)
    }
}

fn metric_answer(subject: &RecordSubject, case: &str, model: &str, text: &str) -> MetricAnswer {
    let reference = subject.reference.clone();
    let reference = reference.filter(|text| !text.trim().is_empty());
    MetricAnswer {
        case: case.to_owned(),
        line: subject.line,
        model: model.to_owned(),
        cluster: subject.cluster().short_name(),
        text: text.to_owned(),
        is_closed: is_closed(&subject.meta, reference.as_deref()),
        reference,
    }
}
