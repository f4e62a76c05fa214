//! Rationale metrics of `AutoMedEval`: `BERTScore` and `BARTScore` of a judge's analyses with the analyses of
//! another judge as references.

use std::collections::HashMap;
use std::path::Path;

use acem3_experts::{Aspect, Criterion};
use anyhow::{Result, bail};

use super::answer::{AnswerSet, MetricAnswer};
use crate::judging::judge::recorded_verdict::ScorePair;
use crate::judging::run::record::Record;
use crate::judging::run::record_reader::records;

/// Aspect name of the analyses in the conclusion.
const CONCLUSION: &str = "conclusion";

/// Key of an analysis: pair, presentation order, criterion and response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RationaleKey {
    case: String,
    pair: [String; 2],
    swapped: bool,
    part: String,
    response: usize,
}

impl AnswerSet {
    /// Reads the analyses in a records file, with another judge's analysis of the same response as reference. The
    /// aspect takes the place of the model.
    ///
    /// # Errors
    /// A line is not a record, or the records have no analyses.
    pub fn of_rationales(path: &Path, reference: &Path, limit: Option<u64>) -> Result<Self> {
        let mut known: HashMap<RationaleKey, String> = HashMap::new();
        for record in records(reference)? {
            let reasons = reasons(&record?);
            known.extend(reasons.into_iter().map(|(key, _, text)| (key, text)));
        }
        let mut found = Self::default();
        for record in records(path)? {
            let record = record?;
            let reasons = reasons(&record);
            if reasons.is_empty() {
                continue;
            }
            if limit.is_some_and(|limit| found.cases >= limit) {
                break;
            }
            found.cases += 1;
            let cluster = record.subject.cluster().short_name();
            found
                .answers
                .extend(reasons.into_iter().map(|(key, aspect, text)| {
                    let reference = known.remove(&key);
                    MetricAnswer {
                        case: key.name(),
                        line: record.subject.line,
                        model: aspect,
                        cluster: cluster.clone(),
                        text,
                        reference: reference.filter(|text| !text.trim().is_empty()),
                        closed: Some(false),
                    }
                }));
        }
        if found.answers.is_empty() {
            bail!(
                "{}: the records have no analyses\n\
                 hint: run `acem3 judge` without --scores-only",
                path.display()
            );
        }
        Ok(found)
    }
}

impl RationaleKey {
    fn name(&self) -> String {
        let [a, b] = &self.pair;
        let (a, b) = if self.swapped { (b, a) } else { (a, b) };
        let model = self.pair.get(self.response).map_or("", String::as_str);
        format!("{}: {a} before {b}, {} of {model}", self.case, self.part)
    }
}

/// Returns the analyses of a record with their keys and aspects.
fn reasons(record: &Record) -> Vec<(RationaleKey, String, String)> {
    let subject = &record.subject;
    let (Some(judgement), Some(case), Some(pair)) =
        (record.judgement(), &subject.case, &subject.pair)
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for order in &judgement.orders {
        let mut add = |aspect: &str, part: &str, marks: &ScorePair| {
            let texts = marks.analyses.iter().flatten().enumerate();
            for (response, text) in texts.filter(|(_, text)| !text.trim().is_empty()) {
                let key = RationaleKey {
                    case: case.clone(),
                    pair: pair.clone(),
                    swapped: order.swapped,
                    part: part.to_owned(),
                    response,
                };
                found.push((key, aspect.to_owned(), text.clone()));
            }
        };
        for (aspect, criteria) in &order.aspects {
            for (criterion, marks) in criteria {
                add(&aspect_name(*aspect), &criterion_name(*criterion), marks);
            }
        }
        add(CONCLUSION, CONCLUSION, &order.conclusion);
    }
    found
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
