//! Rationale metrics of AutoMedEval: `BERTScore` and `BARTScore` of a judge's analyses with the
//! analyses of another judge as references.

use std::collections::HashMap;
use std::path::Path;

use acem3_experts::{Aspect, Criterion};
use anyhow::{Result, bail};

use super::answer::{AnswerSet, MetricAnswer};
use crate::judging::judge::recorded_verdict::ResponseScores;
use crate::judging::run::record::Record;
use crate::judging::run::record::record_reader::open_records;

/// Aspect name of the analyses in the conclusion.
const CONCLUSION: &str = "conclusion";

/// Key of an analysis: pair, presentation order, criterion and response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RationaleKey {
    case: String,
    pair: [String; 2],
    swapped: bool,
    criterion: String,
    response: usize,
}

impl AnswerSet {
    /// Reads the analyses in a records file, with another judge's analysis of the same response as
    /// reference. The aspect takes the role of the model.
    ///
    /// # Errors
    /// A line is not a record, or the records have no analyses.
    pub fn from_rationales(path: &Path, reference: &Path, limit: Option<u64>) -> Result<Self> {
        let mut references: HashMap<RationaleKey, String> = HashMap::new();
        let mut reference_records = open_records(reference)?;
        for record in reference_records.by_ref() {
            let analyses = analyses(&record?);
            references.extend(analyses.into_iter().map(|(key, _, text)| (key, text)));
        }
        let mut set = Self::default();
        let mut records = open_records(path)?;
        for record in records.by_ref() {
            let record = record?;
            let analyses = analyses(&record);
            if analyses.is_empty() {
                continue;
            }
            if limit.is_some_and(|limit| set.cases >= limit) {
                // The state of the run follows from all its records.
                continue;
            }
            set.cases += 1;
            let cluster = record.subject.cluster().short_name();
            set.answers.extend(analyses.into_iter().map(|(key, aspect, text)| {
                let reference = references.remove(&key);
                MetricAnswer {
                    case: key.case_name(),
                    line: record.subject.line,
                    model: aspect,
                    cluster: cluster.clone(),
                    text,
                    reference: reference.filter(|text| !text.trim().is_empty()),
                    is_closed: Some(false),
                }
            }));
        }
        if !set.answers.is_empty() && set.answers.iter().all(|answer| answer.reference.is_none()) {
            bail!(
                "--rationales {}: no analysis in common with {}: no case has the same id, models and criteria in \
                 both\n\
                 hint: pass a run of another judge on the same cases, with the same form and rubric",
                reference.display(),
                path.display()
            );
        }
        set.runs.extend([records.state(), reference_records.state()]);
        if set.answers.is_empty() {
            bail!(
                "{}: the records have no analyses\n\
                 hint: run `acem3 judge` without --scores-only",
                path.display()
            );
        }
        Ok(set)
    }
}

impl RationaleKey {
    fn case_name(&self) -> String {
        let [a, b] = &self.pair;
        let (a, b) = if self.swapped { (b, a) } else { (a, b) };
        let model = self.pair.get(self.response).map_or("", String::as_str);
        format!("{}: {a} before {b}, {} of {model}", self.case, self.criterion)
    }
}

/// Returns the analyses of a record with their keys and aspects.
fn analyses(record: &Record) -> Vec<(RationaleKey, String, String)> {
    let subject = &record.subject;
    let (Some(verdict), Some(case), Some(pair)) = (record.verdict(), &subject.case, &subject.pair)
    else {
        return Vec::new();
    };
    let mut analyses = Vec::new();
    for order in &verdict.orders {
        let mut add = |aspect: &str, criterion: &str, scores: &ResponseScores| {
            let texts = scores.analyses.iter().flatten().enumerate();
            for (response, text) in texts.filter(|(_, text)| !text.trim().is_empty()) {
                let key = RationaleKey {
                    case: case.clone(),
                    pair: pair.clone(),
                    swapped: order.swapped,
                    criterion: criterion.to_owned(),
                    response,
                };
                analyses.push((key, aspect.to_owned(), text.clone()));
            }
        };
        for (aspect, criteria) in &order.aspects {
            for (criterion, scores) in criteria {
                add(&aspect_name(*aspect), &criterion_name(*criterion), scores);
            }
        }
        add(CONCLUSION, CONCLUSION, &order.conclusion);
    }
    analyses
}

fn aspect_name(aspect: Aspect) -> String {
    name(serde_json::to_value(aspect))
}

fn criterion_name(criterion: Criterion) -> String {
    name(serde_json::to_value(criterion))
}

/// Returns the name used in records.
fn name(value: serde_json::Result<serde_json::Value>) -> String {
    let value = value.unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
