//! Answers to score, in one form for all sources.

use std::path::PathBuf;

use crate::analysis::metrics::lexical::closed::is_closed;
use crate::data::cases::{Case, CaseResult, CaseSource, ImageSource, InputProblem};
use crate::data::images::image_cluster::ImageCluster;
use crate::judging::run::run_state::RunState;
use crate::support::digest::Digest;

/// Answer of one model to one case.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricAnswer {
    /// Case id.
    pub case: String,
    /// Line or row of the case, counted from one.
    pub line: u64,
    /// Name of the model.
    pub model: String,
    /// Cluster for the bootstrap: equal for answers on the same image.
    pub cluster: String,
    /// Text of the answer.
    pub text: String,
    /// Reference answer; `None` if missing or empty.
    pub reference: Option<String>,
    /// True for a closed question; `None` if unknown.
    pub is_closed: Option<bool>,
}

/// A missing answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingAnswer {
    /// Case id, if it could be read.
    pub case: Option<String>,
    /// Line or row of the case, counted from one.
    pub line: u64,
    /// Name of the model without an answer.
    pub model: String,
    /// Reason for the missing answer.
    pub message: String,
}

/// Answers of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerSet {
    /// Answers in the order of the source.
    pub answers: Vec<MetricAnswer>,
    /// Missing answers.
    pub missing: Vec<MissingAnswer>,
    /// Number of valid cases.
    pub cases: u64,
    /// Errors of lines whose model is unknown.
    pub unreadable: Vec<String>,
    /// States of the runs whose records were read.
    pub runs: Vec<RunState>,
}

impl AnswerSet {
    /// Reads the answers of a source, from at most `limit` cases.
    pub fn from_source(source: &mut CaseSource, limit: Option<u64>) -> Self {
        let mut answers = Self::default();
        let mut cases_read = 0;
        while limit.is_none_or(|limit| cases_read < limit)
            && let Some(entry) = source.next()
        {
            cases_read +=
                u64::from(entry.as_ref().map_or_else(InputProblem::affects_whole_case, |_| true));
            answers.add(entry);
        }
        answers
    }

    fn add(&mut self, entry: CaseResult) {
        match entry {
            Ok(case) => self.add_case(case),
            Err(problem) => {
                let models = problem.scope.models().iter().map(String::as_str);
                let models: Vec<&str> =
                    models.chain(problem.scope.model_without_response()).collect();
                if models.is_empty() {
                    self.unreadable.push(problem.to_string());
                }
                self.missing.extend(models.iter().map(|model| MissingAnswer {
                    case: problem.id.as_deref().map(str::to_owned),
                    line: problem.line,
                    model: (*model).to_owned(),
                    message: problem.message.clone(),
                }));
            }
        }
    }

    fn add_case(&mut self, case: Case) {
        self.cases += 1;
        let reference = case.reference.filter(|text| !text.trim().is_empty());
        let closed = is_closed(&case.meta, reference.as_deref());
        let cluster = match case.image {
            Some(ImageSource::File(path)) => path_text(path),
            Some(ImageSource::Bytes { name, bytes }) => {
                ImageCluster::from_image(&name, Some(Digest::sha256(&bytes))).short_name()
            }
            None => ImageCluster::Case(&case.id).to_string(),
        };
        self.answers.extend(case.responses.into_iter().map(|response| MetricAnswer {
            case: case.id.clone(),
            line: case.line,
            model: response.model,
            cluster: cluster.clone(),
            text: response.text,
            reference: reference.clone(),
            is_closed: closed,
        }));
    }
}

fn path_text(path: PathBuf) -> String {
    path.into_os_string().to_string_lossy().into_owned()
}
