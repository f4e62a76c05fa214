//! The answers to be scored, whatever they come from.

use std::path::PathBuf;

use super::closed::is_closed;
use crate::data::cases::{Case, CaseResult, CaseSource, ImageSource, InputProblem};
use crate::data::images::image_cluster::ImageCluster;
use crate::support::digest::Digest;

/// One model's answer to one case.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricAnswer {
    /// The case's id.
    pub case: String,
    /// The case's line or row, counted from one.
    pub line: u64,
    /// The model that answered.
    pub model: String,
    /// What answers belong together: equal for those about one image.
    pub cluster: String,
    /// The answer.
    pub text: String,
    /// The known right answer; `None` where there is none or an empty one.
    pub reference: Option<String>,
    /// Whether the question is closed; `None` where nobody knows.
    pub closed: Option<bool>,
}

/// An answer that should be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingAnswer {
    /// The case's id, where it could be read.
    pub case: Option<String>,
    /// The case's line or row, counted from one.
    pub line: u64,
    /// The model that should have answered.
    pub model: String,
    /// Why there is no answer.
    pub message: String,
}

/// What a source holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerSet {
    /// The answers, in the order of the source.
    pub answers: Vec<MetricAnswer>,
    /// The answers that should be there.
    pub missing: Vec<MissingAnswer>,
    /// How many cases could be read.
    pub cases: u64,
    /// Why lines could not be read of which nobody knows whose answers are lost by it.
    pub unreadable: Vec<String>,
}

impl AnswerSet {
    /// Reads the cases of a source, `limit` of them at most.
    pub fn of_source(source: &mut CaseSource, limit: Option<u64>) -> Self {
        let mut found = Self::default();
        let mut read = 0;
        while limit.is_none_or(|limit| read < limit)
            && let Some(entry) = source.next()
        {
            read += u64::from(entry.as_ref().map_or_else(InputProblem::is_case, |_| true));
            found.add(entry);
        }
        found
    }

    fn add(&mut self, entry: CaseResult) {
        match entry {
            Ok(case) => self.add_case(case),
            Err(problem) => {
                let models = problem.models().iter().map(String::as_str);
                let models: Vec<&str> = models.chain(problem.lost_response()).collect();
                if models.is_empty() {
                    self.unreadable.push(problem.to_string());
                }
                self.missing
                    .extend(models.iter().map(|model| MissingAnswer {
                        case: problem.id.clone(),
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
            Some(ImageSource::File(path)) => name(path),
            Some(ImageSource::Bytes { name, bytes }) => {
                ImageCluster::from_image(&name, Some(Digest::of(&bytes))).short_name()
            }
            None => ImageCluster::Case(&case.id).to_string(),
        };
        self.answers
            .extend(case.responses.into_iter().map(|response| MetricAnswer {
                case: case.id.clone(),
                line: case.line,
                model: response.model,
                cluster: cluster.clone(),
                text: response.text,
                reference: reference.clone(),
                closed,
            }));
    }
}

fn name(path: PathBuf) -> String {
    path.into_os_string().to_string_lossy().into_owned()
}
