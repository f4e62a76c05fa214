//! Data of the case browser: one entry per pair, with the verdicts of all judges.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::Hash;

use acem3_experts::prompt::Form;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::analysis::report::baseline::BaselineComparison;
use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::run_comparison::ChangeTitle as _;
use crate::analysis::report::verdicts::record_summary::{OutcomeSummary, RecordSummary};
use crate::analysis::verdicts::Verdicts;
use crate::data::labels::ScoreTarget;
use crate::judging::judge::recorded_verdict::PairOrder;
use crate::judging::run::record::{ImageInfo, RecordSubject};

/// Order of the two models of each pair: the order in the first judge's records.
#[derive(Clone, Debug, Default)]
pub struct PairOrientation(HashMap<(String, [String; 2]), [String; 2]>);

/// All entries of the case browser.
#[derive(Clone, Debug, Default)]
pub struct CaseBrowser {
    /// Entries in the order of the first judge's records, then the pairs that only other judges
    /// have.
    pub entries: Vec<BrowserEntry>,
    /// Analyses of each entry as a JSON list with one value per judge.
    pub details: Vec<String>,
    /// Image of each entry.
    pub images: Vec<Option<ImageInfo>>,
    /// Index of each pair.
    indices: HashMap<(String, [String; 2]), usize>,
}

/// A pair of responses, or a malformed case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BrowserEntry {
    /// Case id.
    pub case: Option<String>,
    /// Line in the source.
    pub line: u64,
    /// The form of judging.
    #[serde(skip)]
    pub form: Form,
    /// Names of the models.
    pub models: Vec<String>,
    /// Question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Reference answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Responses of the models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<String>>,
    /// File name of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Index of the embedded image, if the page has it.
    #[serde(rename = "picture", skip_serializing_if = "Option::is_none")]
    pub embedded_image: Option<usize>,
    /// Metadata of the case.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Order of the responses according to the labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<PairOrder>,
    /// Label scores of the responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<f64>>,
    /// What text metrics say about a response that was judged correct or not.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<ResponseMetrics>,
    /// What changed since the run of `--baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// Verdict of each judge; `None` if its records lack this pair.
    pub verdicts: Vec<Option<OutcomeSummary>>,
}

/// Text metrics of a response.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResponseMetrics {
    /// True if the response equals the reference.
    pub exact: bool,
    /// Proportion of the words of the reference that are in the response, 0 to 1.
    pub recall: f64,
    /// True for a closed question; `None` if unknown.
    pub closed: Option<bool>,
}

/// Returns the key of a pair: the case and the two models in alphabetical order.
fn pair_key(case: &str, pair: &[String; 2]) -> (String, [String; 2]) {
    let mut sorted = pair.clone();
    sorted.sort_unstable();
    (case.to_owned(), sorted)
}

impl PairOrientation {
    /// Adds the pairs of a judge's records. Known pairs keep their model order.
    pub fn add_records(&mut self, verdicts: &Verdicts) {
        for verdict in &verdicts.pairs {
            let key = pair_key(&verdict.case, &verdict.pair);
            self.0.entry(key).or_insert_with(|| verdict.pair.clone());
        }
    }

    /// Returns true if a record names the two models in the opposite order.
    pub fn is_swapped(&self, subject: &RecordSubject) -> bool {
        let (Some(case), Some(pair)) = (&subject.case, &subject.pair) else {
            return false;
        };
        let order = self.0.get(&pair_key(case, pair));
        order.is_some_and(|order| order != pair)
    }
}

/// Collects the entries of the records of several judges. Records with an equal key are one entry.
pub(in crate::analysis::report) struct EntryCollector<'a, K> {
    browser: CaseBrowser,
    indices: HashMap<K, usize>,
    details: Vec<Vec<Option<&'a str>>>,
    judges: usize,
}

impl<'a, K: Eq + Hash> EntryCollector<'a, K> {
    /// Creates a collector for this number of judges.
    pub(in crate::analysis::report) fn new(judges: usize) -> Self {
        let browser = CaseBrowser::default();
        Self { browser, indices: HashMap::new(), details: Vec::new(), judges }
    }

    /// Adds the record of a judge and returns its entry. A record without a key is an entry of its own.
    pub(in crate::analysis::report) fn add(
        &mut self,
        judge: usize,
        key: Option<K>,
        summary: &'a RecordSummary,
    ) -> Option<&mut BrowserEntry> {
        let known = key.as_ref().and_then(|key| self.indices.get(key).copied());
        let index = known.unwrap_or_else(|| {
            self.browser.entries.push(BrowserEntry::from_summary(summary, self.judges));
            self.browser.images.push(summary.subject.image.clone());
            self.details.push(vec![None; self.judges]);
            self.browser.entries.len() - 1
        });
        if let Some(key) = key {
            self.indices.insert(key, index);
        }
        if let Some(detail) = self.details.get_mut(index).and_then(|all| all.get_mut(judge)) {
            *detail = summary.detail.as_deref();
        }
        let entry = self.browser.entries.get_mut(index)?;
        entry.set_verdict(judge, summary);
        Some(entry)
    }

    /// Returns the entries, and the index of each key.
    pub(in crate::analysis::report) fn finish(mut self) -> (CaseBrowser, HashMap<K, usize>) {
        self.browser.details = self.details.iter().map(|details| json_list(details)).collect();
        (self.browser, self.indices)
    }
}

impl CaseBrowser {
    /// Builds the entries from the records of all judges.
    pub fn new(judges: &[JudgeReport], target: ScoreTarget) -> Self {
        let mut collector = EntryCollector::new(judges.len());
        for (judge_index, judge) in judges.iter().enumerate() {
            let labels = LabelSummary::new(judge, target);
            for summary in &judge.summaries {
                let subject = &summary.subject;
                let key = subject.case.as_ref().zip(subject.pair.as_ref());
                let key = key.map(|(case, pair)| pair_key(case, pair));
                if let Some(entry) = collector.add(judge_index, key, summary) {
                    labels.add_labels(entry, summary);
                }
            }
        }
        let (browser, indices) = collector.finish();
        Self { indices, ..browser }
    }

    /// Returns the index of the entry of a pair.
    pub fn find(&self, case: &str, pair: &[String; 2]) -> Option<usize> {
        self.indices.get(&pair_key(case, pair)).copied()
    }

    /// Adds to the entries what changed since an earlier run.
    pub fn add_changes(&mut self, comparison: &BaselineComparison) {
        for change in &comparison.changes {
            let Some(entry) = self.find(&change.case, &change.pair) else {
                continue;
            };
            let Some(entry) = self.entries.get_mut(entry) else {
                continue;
            };
            let before = match change.before {
                Some(before) => {
                    let [a, b] = before.scores;
                    format!("{} ({a} to {b})", entry.preferred_model(before.order))
                }
                None => "unscored".to_owned(),
            };
            entry.change = Some(format!("{}; before: {before}", change.kind.title()));
        }
    }
}

impl BrowserEntry {
    /// Creates the entry of a record, without the verdicts of the judges.
    pub(in crate::analysis::report) fn from_summary(
        summary: &RecordSummary,
        judges: usize,
    ) -> Self {
        let subject = &summary.subject;
        let pair = subject.pair.as_ref().map(|pair| pair.to_vec());
        Self {
            case: subject.case.clone(),
            line: subject.line,
            form: subject.form,
            models: pair.unwrap_or_else(|| subject.models.clone()),
            question: subject.question.clone(),
            reference: subject.reference.clone(),
            answers: subject.responses.clone(),
            image: subject.image.as_ref().map(|image| image.name.clone()),
            embedded_image: None,
            meta: subject.meta.clone(),
            label: None,
            labels: None,
            metrics: None,
            change: None,
            verdicts: vec![None; judges],
        }
    }

    /// Adds the verdict of a judge.
    pub(in crate::analysis::report) fn set_verdict(
        &mut self,
        judge: usize,
        summary: &RecordSummary,
    ) {
        if let Some(verdict) = self.verdicts.get_mut(judge) {
            *verdict = Some(summary.outcome.clone());
        }
    }

    /// Describes which of the two models an order prefers.
    pub fn preferred_model(&self, order: PairOrder) -> String {
        let model = |side: usize| self.models.get(side).cloned().unwrap_or_default();
        match order {
            PairOrder::FirstBetter => format!("{} better", model(0)),
            PairOrder::Tie => "tie".to_owned(),
            PairOrder::SecondBetter => format!("{} better", model(1)),
        }
    }

    /// Returns the order from a judge's verdict; `None` without a verdict.
    pub fn order(&self, judge: usize) -> Option<PairOrder> {
        match self.verdicts.get(judge)?.as_ref()? {
            OutcomeSummary::Judged { order, .. } => *order,
            OutcomeSummary::Unscored { .. } => None,
        }
    }
}

/// Joins the analyses of all judges to a JSON list.
pub(in crate::analysis::report) fn json_list(details: &[Option<&str>]) -> String {
    let texts: Vec<&str> = details.iter().map(|d| d.unwrap_or("null")).collect();
    format!("[{}]", texts.join(","))
}

/// Labels by record line (orders) and by case and model (scores).
struct LabelSummary<'a> {
    orders: HashMap<u64, (Ordering, &'a [String; 2])>,
    scores: HashMap<(&'a str, &'a str), f64>,
}

impl<'a> LabelSummary<'a> {
    fn new(judge: &'a JudgeReport, target: ScoreTarget) -> Self {
        let verdict = |index: usize| judge.verdicts.pairs.get(index);
        let orders = judge.label_orders(target).into_iter().filter_map(|(index, order)| {
            let verdict = verdict(index)?;
            Some((verdict.line, (order, &verdict.pair)))
        });
        let units = judge.units.as_ref().and_then(|u| u.targets.get(&target));
        let responses = units.into_iter().flat_map(|units| &units.responses);
        let scores = responses.filter_map(|unit| {
            let verdict = verdict(unit.verdict)?;
            let model = verdict.pair.get(unit.side)?;
            Some(((verdict.case.as_str(), model.as_str()), unit.label(None)?))
        });
        Self { orders: orders.collect(), scores: scores.collect() }
    }

    fn add_labels(&self, entry: &mut BrowserEntry, summary: &RecordSummary) {
        // The pairs of a list, and of responses alone, have no entry of their own.
        let order = self.orders.get(&summary.line).filter(|_| summary.subject.pair.is_some());
        if let (None, Some((order, pair))) = (entry.label, order) {
            let is_same_order = entry.models == pair.as_slice();
            let order = if is_same_order { *order } else { order.reverse() };
            entry.label = Some(order.into());
        }
        let score = |side: usize| {
            let key = (entry.case.as_deref()?, entry.models.get(side)?.as_str());
            self.scores.get(&key).copied()
        };
        if entry.labels.is_none() {
            entry.labels = (0..entry.models.len()).map(score).collect();
        }
    }
}
