//! Case browser of a report on correctness: one entry per response.

use std::collections::HashMap;

use super::changes::GradeChanges;
use super::graded_judge::GradedJudge;
use crate::analysis::correctness::GradedResponse;
use crate::analysis::report::page::browser::{
    BrowserEntry, CaseBrowser, ResponseMetrics, json_list,
};

/// Case and model of a response.
type ResponseKey<'a> = (&'a str, &'a str);

/// Builds the entries from the records of all judges, and adds what changed since an earlier run.
pub fn graded_browser(judges: &[GradedJudge], changes: Option<&GradeChanges>) -> CaseBrowser {
    let mut browser = CaseBrowser::default();
    let mut indices: HashMap<ResponseKey<'_>, usize> = HashMap::new();
    let mut details: Vec<Vec<Option<&str>>> = Vec::new();
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
            let key = subject.case.as_deref().zip(model);
            let known = key.and_then(|key| indices.get(&key).copied());
            let index = known.unwrap_or_else(|| {
                browser.entries.push(BrowserEntry::from_summary(summary, judges.len()));
                browser.images.push(subject.image.clone());
                details.push(vec![None; judges.len()]);
                browser.entries.len() - 1
            });
            if let Some(key) = key {
                indices.insert(key, index);
            }
            if let Some(entry) = browser.entries.get_mut(index) {
                entry.set_verdict(judge_index, summary);
                let response = key.and_then(|key| graded.get(&key));
                entry.metrics = entry.metrics.or(response.map(|r| ResponseMetrics::of(r)));
                let label = key.and_then(|(case, model)| {
                    judge.labels.get(&(case.to_owned(), model.to_owned()))
                });
                let label = label.map(|is_correct| vec![f64::from(u8::from(*is_correct))]);
                entry.labels = entry.labels.take().or(label);
            }
            let detail = details.get_mut(index).and_then(|judges| judges.get_mut(judge_index));
            if let Some(detail) = detail {
                *detail = summary.detail.as_deref();
            }
        }
    }
    browser.details = details.iter().map(|details| json_list(details)).collect();
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
