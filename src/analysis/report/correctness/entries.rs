//! Case browser of a report on correctness: one entry per response.

use std::collections::HashMap;

use super::changes::GradeChanges;
use super::graded_judge::GradedJudge;
use crate::analysis::correctness::GradedResponse;
use crate::analysis::report::page::browser::{CaseBrowser, EntryCollector, ResponseMetrics};
use crate::analysis::report::run_comparison::ChangeTitle as _;

/// Case and model of a response.
type ResponseKey<'a> = (&'a str, &'a str);

/// Builds the entries from the records of all judges, and adds what changed since an earlier run.
pub fn graded_browser(judges: &[GradedJudge], changes: Option<&GradeChanges>) -> CaseBrowser {
    let mut collector = EntryCollector::new(judges.len());
    for (judge_index, judge) in judges.iter().enumerate() {
        let graded: HashMap<ResponseKey<'_>, &GradedResponse> = judge
            .graded
            .responses
            .iter()
            .map(|r| ((r.case.as_str(), r.model.as_str()), r))
            .collect();
        for summary in &judge.summaries {
            let subject = &summary.subject;
            let model = match subject.models.as_slice() {
                [model] => Some(model.as_str()),
                _ => None,
            };
            let key: Option<ResponseKey<'_>> = subject.case.as_deref().zip(model);
            let Some(entry) = collector.add(judge_index, key, summary) else {
                continue;
            };
            let response = key.and_then(|key| graded.get(&key));
            entry.metrics = entry.metrics.or(response.map(|r| ResponseMetrics::of(r)));
            let label = key
                .and_then(|(case, model)| judge.labels.get(&(case.to_owned(), model.to_owned())));
            let label = label.map(|is_correct| vec![f64::from(u8::from(*is_correct))]);
            entry.labels = entry.labels.take().or(label);
        }
    }
    let (mut browser, indices) = collector.finish();
    for change in changes.iter().flat_map(|changes| &changes.changes) {
        let index = indices.get(&(change.case.as_str(), change.model.as_str()));
        if let Some(entry) = index.and_then(|index| browser.entries.get_mut(*index)) {
            let before = describe_grade(change.before);
            entry.change = Some(format!("{}; before: {before}", change.kind.title()));
        }
    }
    browser
}

/// Describes a verdict with its probability.
pub(super) fn describe_grade(probability: Option<f64>) -> String {
    match probability {
        Some(p) if p > 0.5 => format!("correct (probability {p:.2})"),
        Some(p) => format!("wrong (probability {p:.2})"),
        None => "unscored".to_owned(),
    }
}

impl ResponseMetrics {
    fn of(response: &GradedResponse) -> Self {
        Self { exact: response.is_exact, recall: response.recall, closed: response.is_closed }
    }
}
