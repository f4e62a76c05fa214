//! Pairs whose better response is known, judged with their own image, a blank one, and another's.

use std::sync::Arc;

use anyhow::{Context, Result};

use crate::data::cases::{Case, Response};
use crate::data::images::LoadedImage;
use crate::data::images::derived::blank;
use crate::judging::judge::{Judge, PairJob, Unscored};
use acem3_conclusion::Verdict;

/// Pairs judged at once.
const BATCH: usize = 16;

/// A pair with what is known of it.
pub(crate) struct TestPair {
    /// Pairs about equal images have equal keys.
    pub(crate) cluster: String,
    /// The image.
    pub(crate) image: Arc<LoadedImage>,
    /// The question.
    pub(crate) question: String,
    /// Both responses.
    pub(crate) responses: [String; 2],
}

/// What a judge is shown in place of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageCondition {
    /// The image itself.
    Own,
    /// A grey image of the same size.
    Blank,
    /// The image of another trial.
    Exchanged,
}

/// Judges all trials; where there is no verdict, says why. After each batch `progress` is told how many were
/// judged, and may end it.
pub(crate) fn judge(
    judge: &mut dyn Judge,
    trials: &[TestPair],
    view: ImageCondition,
    progress: &dyn Fn(usize) -> Result<()>,
) -> Result<Vec<Result<Verdict, Unscored>>> {
    let mut verdicts = Vec::with_capacity(trials.len());
    let indices: Vec<usize> = (0..trials.len()).collect();
    for chunk in indices.chunks(BATCH) {
        let jobs: Vec<PairJob> = chunk
            .iter()
            .map(|i| job(trials, *i, view))
            .collect::<Result<_>>()?;
        verdicts.extend(judge.judge(&jobs)?);
        progress(verdicts.len())?;
    }
    Ok(verdicts)
}

fn job(trials: &[TestPair], i: usize, view: ImageCondition) -> Result<PairJob> {
    let trial = &trials[i];
    let image = match view {
        ImageCondition::Own => trial.image.clone(),
        ImageCondition::Blank => blank(&trial.image.decoded)?,
        ImageCondition::Exchanged => {
            let other = stranger(trials, i).context("all trials are about one image")?;
            other.image.clone()
        }
    };
    let response = |i: usize| Response {
        model: ["a", "b"][i].to_owned(),
        text: trial.responses[i].clone(),
    };
    let case = Case {
        id: i.to_string(),
        image: None,
        question: trial.question.clone(),
        responses: vec![response(0), response(1)],
        reference: None,
        labels: None,
        meta: serde_json::Map::new(),
        extra: serde_json::Map::new(),
        line: i as u64 + 1,
    };
    Ok(PairJob {
        case: Arc::new(case),
        pair: [0, 1],
        image: Some(image),
    })
}

/// The next trial that is about another image, if there is one.
fn stranger(trials: &[TestPair], i: usize) -> Option<&TestPair> {
    let own = &trials[i];
    let mut later = (1..trials.len()).map(|step| &trials[(i + step) % trials.len()]);
    later.find(|other| other.cluster != own.cluster)
}

/// Whether images can be exchanged between the trials.
pub(crate) fn can_exchange(trials: &[TestPair]) -> bool {
    !trials.is_empty() && stranger(trials, 0).is_some()
}
