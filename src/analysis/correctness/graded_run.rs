//! The verdicts of a run of the form `correctness`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use acem3_experts::prompt::Form;
use anyhow::{Result, bail};
use serde_json::{Map, Value};

use crate::analysis::metrics::{WordOverlap, is_closed, words_as_in};
use crate::data::cases::UnscoredReason;
use crate::data::labels::{LabelEntry, labels_from_record};
use crate::judging::run::manifest::Manifest;
use crate::judging::run::record::record_reader::open_records;
use crate::judging::run::record::{Record, RecordOutcome};
use crate::judging::run::run_state::RunState;
use crate::support::digest::Digest;

/// The verdicts of one judge on single responses.
#[derive(Clone, Debug)]
pub struct GradedRun {
    /// The file of records.
    pub path: PathBuf,
    /// Hash of the judge, as in records.
    pub judge: String,
    /// Name of the judge if the manifest is next to the records, else its hash.
    pub name: String,
    /// The responses, with a grade or unscored.
    pub responses: Vec<GradedResponse>,
    /// The labels of the records.
    pub labels: Vec<LabelEntry>,
    /// State of the run.
    pub run: RunState,
}

/// A response that was judged correct or not.
#[derive(Clone, Debug, PartialEq)]
pub struct GradedResponse {
    /// Id of the case.
    pub case: String,
    /// The model.
    pub model: String,
    /// Bootstrap cluster: the image, or the case if it has no image.
    pub cluster: String,
    /// True if the case has an image.
    pub has_image: bool,
    /// True for a closed question; `None` if unknown.
    pub is_closed: Option<bool>,
    /// The judge's probability that the response is correct, 0 to 1; `None` if it is unscored.
    pub probability: Option<f64>,
    /// True if the response can be compared with the reference without a judge: the case has a
    /// reference, and the response is known, or is empty or missing, which counts as wrong.
    pub is_comparable: bool,
    /// True if the response equals the reference, without case, punctuation and articles.
    pub is_exact: bool,
    /// Proportion of the words of the reference that are in the response, 0 to 1.
    pub recall: f64,
    /// Metadata of the case.
    pub meta: Map<String, Value>,
    /// Key of the verdict: equal keys mean equal judges and inputs.
    pub key: Option<Digest>,
}

impl GradedResponse {
    /// Returns whether the judge takes the response for correct; `None` if it is unscored.
    pub fn is_correct(&self) -> Option<bool> {
        self.probability.map(|probability| probability > 0.5)
    }

    /// Converts a record; `None` if it is about no single response.
    fn from_record(record: &Record) -> Option<Self> {
        let subject = &record.subject;
        let [model] = subject.models.as_slice() else {
            return None;
        };
        let probability = match &record.outcome {
            RecordOutcome::Judged(verdict) => Some(*verdict.expected.first()?),
            RecordOutcome::Unscored(_) => None,
            RecordOutcome::Noted { .. } => return None,
        };
        let response = subject.responses.as_ref().and_then(|texts| texts.first());
        let is_missing = matches!(&record.outcome,
            RecordOutcome::Unscored(unscored) if unscored.reason == UnscoredReason::Parse);
        let reference = subject.reference.as_deref().filter(|text| !text.trim().is_empty());
        let match_ = match (reference, response) {
            (Some(reference), Some(response)) => Some(ReferenceMatch::new(response, reference)),
            (Some(_), None) if is_missing => Some(ReferenceMatch::default()),
            _ => None,
        };
        let is_comparable = match_.is_some();
        let match_ = match_.unwrap_or_default();
        Some(Self {
            case: subject.case.clone()?,
            model: model.clone(),
            cluster: subject.cluster().to_string(),
            has_image: subject.image.is_some(),
            is_closed: is_closed(&subject.meta, subject.reference.as_deref()),
            probability,
            is_comparable,
            is_exact: match_.is_exact,
            recall: match_.recall,
            meta: subject.meta.clone(),
            key: subject.key,
        })
    }
}

/// What text metrics say about a response. The default is that of an empty one.
#[derive(Default)]
struct ReferenceMatch {
    is_exact: bool,
    recall: f64,
}

impl ReferenceMatch {
    fn new(response: &str, reference: &str) -> Self {
        let [response_words, reference_words] =
            [response, reference].map(|text| words_as_in(reference, text));
        if reference_words.is_empty() {
            // The reference is an article, such as the choice A, or a sign.
            let plain = |text: &str| text.trim().trim_end_matches('.').to_lowercase();
            let is_exact = plain(response) == plain(reference);
            return Self { is_exact, recall: f64::from(u8::from(is_exact)) };
        }
        Self {
            is_exact: response_words == reference_words,
            recall: WordOverlap::new(&response_words, &reference_words).ngram_overlap(1).recall,
        }
    }
}

/// Moves responses without an image to the image of their case: the record of a missing response does
/// not name it.
fn cluster_by_case(responses: &mut [GradedResponse]) {
    let with_image = responses.iter().filter(|response| response.has_image);
    let clusters: HashMap<String, String> =
        with_image.map(|r| (r.case.clone(), r.cluster.clone())).collect();
    for response in responses.iter_mut().filter(|response| !response.has_image) {
        if let Some(cluster) = clusters.get(&response.case) {
            response.cluster.clone_from(cluster);
        }
    }
}

impl GradedRun {
    /// Reads the records of a file, or of the folder that `acem3 judge` wrote.
    ///
    /// # Errors
    ///
    /// The file cannot be read, has verdicts of several judges or of another form, or has no verdict on
    /// a response.
    pub fn read(path: &Path) -> Result<Self> {
        let mut records = open_records(path)?;
        let (mut judges, mut responses, mut labels) = (BTreeSet::new(), Vec::new(), Vec::new());
        for record in records.by_ref() {
            let record = record?;
            let subject = &record.subject;
            if subject.form != Form::Correctness {
                bail!(
                    "{}: verdicts of the form {}, expected only verdicts of the form correctness\n\
                     hint: pass runs of one form",
                    path.display(),
                    subject.form.name()
                );
            }
            judges.insert(subject.judge.clone());
            let case = subject.case.as_deref();
            let of_record =
                labels_from_record(case, &subject.models, subject.labels.as_ref(), subject.line);
            labels.extend(of_record);
            responses.extend(GradedResponse::from_record(&record));
        }
        let records_path = records.path().to_owned();
        if judges.len() > 1 {
            bail!(
                "{}: verdicts of {} judges\nhint: pass the records of one judge",
                records_path.display(),
                judges.len()
            );
        }
        if responses.is_empty() {
            bail!("{}: no record has a response", records_path.display());
        }
        let judge = judges.into_iter().next().unwrap_or_default();
        let neighbour = || Manifest::read(records_path.parent()?).ok();
        let manifest = records.manifest().cloned().or_else(neighbour);
        let manifest = manifest.filter(|manifest| manifest.judge_sha256.short_hex() == judge);
        cluster_by_case(&mut responses);
        let run = records.state();
        Ok(Self {
            path: records_path,
            name: manifest.map_or_else(|| judge.clone(), |manifest| manifest.judge),
            judge,
            responses,
            labels,
            run,
        })
    }

    /// Joins several runs of one judge, for example those of shards.
    ///
    /// # Errors
    ///
    /// There is no run, or the judges differ.
    pub fn join(mut runs: Vec<Self>) -> Result<Self> {
        runs.sort_by_key(|run| run.run.first_shard());
        let mut runs = runs.into_iter();
        let Some(mut joined) = runs.next() else {
            bail!("no records\nhint: pass the folder that `acem3 judge --out` wrote");
        };
        for run in runs {
            if run.judge != joined.judge {
                bail!(
                    "{} and {}: verdicts of two judges ({} and {})\nhint: pass the records of one judge",
                    joined.path.display(),
                    run.path.display(),
                    joined.name,
                    run.name
                );
            }
            joined.responses.extend(run.responses);
            joined.labels.extend(run.labels);
        }
        Ok(joined)
    }

    /// Returns true if the first record of a run has the form `correctness`. Files that cannot be read
    /// are reported by their reader.
    pub fn is_graded(path: &Path) -> bool {
        let first = open_records(path).ok().and_then(|mut records| records.next());
        matches!(first, Some(Ok(record)) if record.subject.form == Form::Correctness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_chinese_references_are_words() {
        let found = |response, reference| {
            let found = ReferenceMatch::new(response, reference);
            (found.is_exact, found.recall)
        };
        assert_eq!(found("这是左肺。", "左肺"), (false, 1.0));
        assert_eq!(found("左肺。", "左肺"), (true, 1.0));
        assert_eq!(found("右肺", "左肺"), (false, 0.5));
        assert_eq!(found("MRI图像", "MRI"), (false, 0.0));
    }

    #[test]
    fn choice_that_is_an_article_can_match() {
        let found = |response, reference| {
            let found = ReferenceMatch::new(response, reference);
            (found.is_exact, found.recall)
        };
        assert_eq!(found("A", "A"), (true, 1.0));
        assert_eq!(found("a.", "A"), (true, 1.0));
        assert_eq!(found("B", "A"), (false, 0.0));
        assert_eq!(found("the left lung", "Left lung"), (true, 1.0));
        assert_eq!(found("lung", "Left lung"), (false, 0.5));
    }
}
