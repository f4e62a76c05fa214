//! Data of the case browser: one entry per pair, with the verdicts of all judges.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::analysis::report::judge_report::JudgeReport;
use crate::analysis::report::record_summary::{OutcomeSummary, RecordSummary};
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
    /// Entries in the order of the first judge's records, then the pairs that only other judges have.
    pub entries: Vec<BrowserEntry>,
    /// Analyses of each entry: a JSON list with one value per judge.
    pub details: Vec<String>,
    /// Image of each entry.
    pub stamps: Vec<Option<ImageInfo>>,
}

/// A pair of responses, or a malformed case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BrowserEntry {
    /// Case id.
    pub case: Option<String>,
    /// Line in the source.
    pub line: u64,
    /// Models.
    pub models: Vec<String>,
    /// Question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Reference answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Responses of the two models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<[String; 2]>,
    /// File name of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Index of the embedded image, if the page has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<usize>,
    /// Metadata of the case.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Order of the responses according to the labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<PairOrder>,
    /// Label scores of the two responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<[f64; 2]>,
    /// Verdict of each judge; `None` if its records lack this pair.
    pub verdicts: Vec<Option<OutcomeSummary>>,
}

/// Returns the key of a pair: the case and the two models in alphabetical order.
fn key(case: &str, pair: &[String; 2]) -> (String, [String; 2]) {
    let mut sorted = pair.clone();
    sorted.sort_unstable();
    (case.to_owned(), sorted)
}

impl PairOrientation {
    /// Adds the pairs of a judge's records. Known pairs keep their model order.
    pub fn learn(&mut self, verdicts: &Verdicts) {
        for verdict in &verdicts.pairs {
            let key = key(&verdict.case, &verdict.pair);
            self.0.entry(key).or_insert_with(|| verdict.pair.clone());
        }
    }

    /// Returns true if a record names the two models in the opposite order.
    pub fn mirrored(&self, subject: &RecordSubject) -> bool {
        let (Some(case), Some(pair)) = (&subject.case, &subject.pair) else {
            return false;
        };
        let known = self.0.get(&key(case, pair));
        known.is_some_and(|known| known != pair)
    }
}

impl CaseBrowser {
    /// Builds the entries from the records of all judges.
    pub fn of(judges: &[JudgeReport], target: ScoreTarget) -> Self {
        let mut browser = Self::default();
        let mut places: HashMap<(String, [String; 2]), usize> = HashMap::new();
        let mut details: Vec<Vec<Option<&str>>> = Vec::new();
        for (number, judge) in judges.iter().enumerate() {
            let labels = LabelSummary::of(judge, target);
            for seen in &judge.seen {
                let subject = &seen.subject;
                let named = subject.case.as_ref().zip(subject.pair.as_ref());
                let named = named.map(|(case, pair)| key(case, pair));
                let known = named.as_ref().and_then(|named| places.get(named).copied());
                let place = known.unwrap_or_else(|| {
                    browser.entries.push(BrowserEntry::of(seen, judges.len()));
                    browser.stamps.push(subject.image.clone());
                    details.push(vec![None; judges.len()]);
                    browser.entries.len() - 1
                });
                if let Some(named) = named {
                    places.insert(named, place);
                }
                if let Some(entry) = browser.entries.get_mut(place) {
                    entry.add(number, seen);
                    labels.tell(entry, seen);
                }
                if let Some(slot) = details.get_mut(place).and_then(|d| d.get_mut(number)) {
                    *slot = seen.detail.as_deref();
                }
            }
        }
        let list = |all: &Vec<Option<&str>>| {
            let texts: Vec<&str> = all.iter().map(|d| d.unwrap_or("null")).collect();
            format!("[{}]", texts.join(","))
        };
        browser.details = details.iter().map(list).collect();
        browser
    }
}

impl BrowserEntry {
    fn of(seen: &RecordSummary, judges: usize) -> Self {
        let subject = &seen.subject;
        let pair = subject.pair.as_ref().map(|pair| pair.to_vec());
        Self {
            case: subject.case.clone(),
            line: subject.line,
            models: pair.unwrap_or_else(|| subject.models.clone()),
            question: subject.question.clone(),
            reference: subject.reference.clone(),
            answers: subject.responses.clone(),
            image: subject.image.as_ref().map(|image| image.name.clone()),
            picture: None,
            meta: subject.meta.clone(),
            label: None,
            labels: None,
            verdicts: vec![None; judges],
        }
    }

    fn add(&mut self, judge: usize, seen: &RecordSummary) {
        if let Some(slot) = self.verdicts.get_mut(judge) {
            *slot = Some(seen.brief.clone());
        }
    }

    /// Returns the order from a judge's verdict; `None` without a verdict.
    pub fn order(&self, judge: usize) -> Option<PairOrder> {
        match self.verdicts.get(judge)?.as_ref()? {
            OutcomeSummary::Judged { order, .. } => Some(*order),
            OutcomeSummary::Unscored { .. } => None,
        }
    }
}

/// Labels by record line (orders) and by case and model (scores).
struct LabelSummary<'a> {
    orders: HashMap<u64, (Ordering, &'a [String; 2])>,
    scores: HashMap<(&'a str, &'a str), f64>,
}

impl<'a> LabelSummary<'a> {
    fn of(judge: &'a JudgeReport, target: ScoreTarget) -> Self {
        let verdict = |place: usize| judge.verdicts.pairs.get(place);
        let orders = judge.labelled(target).into_iter().filter_map(|(place, o)| {
            let verdict = verdict(place)?;
            Some((verdict.line, (o, &verdict.pair)))
        });
        let units = judge.units.as_ref().and_then(|u| u.targets.get(&target));
        let responses = units.into_iter().flat_map(|of| &of.responses);
        let scores = responses.filter_map(|unit| {
            let verdict = verdict(unit.verdict)?;
            let model = verdict.pair.get(unit.side)?;
            Some(((verdict.case.as_str(), model.as_str()), unit.label(None)?))
        });
        Self {
            orders: orders.collect(),
            scores: scores.collect(),
        }
    }

    fn tell(&self, entry: &mut BrowserEntry, seen: &RecordSummary) {
        if let (None, Some((order, pair))) = (entry.label, self.orders.get(&seen.line)) {
            let same = entry.models == pair.as_slice();
            let order = if same { *order } else { order.reverse() };
            entry.label = Some(order.into());
        }
        let score = |side: usize| {
            let key = (entry.case.as_deref()?, entry.models.get(side)?.as_str());
            self.scores.get(&key).copied()
        };
        if let (None, Some(a), Some(b)) = (entry.labels, score(0), score(1)) {
            entry.labels = Some([a, b]);
        }
    }
}
