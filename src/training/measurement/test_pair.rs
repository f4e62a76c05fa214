//! Pairs of a test set, judged with the original, a blank or a mismatched image.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acem3_conclusion::Verdict;
use anyhow::{Context, Result, bail};

use crate::data::cases::{Case, Response};
use crate::data::images::LoadedImage;
use crate::data::images::derived::blank_image;
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::training::measurement::observer::MeasuredCounts;

/// Maximum number of pairs per batch.
const MAX_BATCH: usize = 16;
/// A batch that takes less time is followed by a larger one, up to the maximum.
const BATCH_TIME: Duration = Duration::from_secs(10);

/// A pair of a test set.
pub(crate) struct TestPair {
    /// Key of the image; pairs with the same image have the same key.
    pub(crate) cluster: String,
    /// Decoded image.
    pub(crate) image: Arc<LoadedImage>,
    /// Question about the image.
    pub(crate) question: String,
    /// Two responses to the question.
    pub(crate) responses: [String; 2],
}

/// Image that the judge receives with a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageCondition {
    /// The original image.
    Original,
    /// A grey image of the same size.
    Blank,
    /// The image of another pair.
    Mismatched,
}

impl ImageCondition {
    /// Returns the name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Original => "own",
            Self::Blank => "blank",
            Self::Mismatched => "exchanged",
        }
    }
}

/// Judges all pairs. Returns a verdict for each pair, or the reason why it has none. Calls
/// `progress` with the number of judged pairs after each batch. An error of `progress` ends the
/// run.
pub(crate) fn judge_pairs(
    judge: &mut dyn Judge,
    pairs: &[TestPair],
    condition: ImageCondition,
    progress: &dyn Fn(usize) -> Result<()>,
) -> Result<Vec<Result<Verdict, Unscored>>> {
    let (mut done, mut result) = (0, Ok(()));
    let verdicts = judge_first_pairs(judge, pairs, condition, &mut |batch| {
        done += batch.pairs() as usize;
        result = progress(done);
        result.is_ok()
    })?;
    result.map(|()| verdicts)
}

/// Judges the pairs in order. Returns a verdict for each pair, or the reason why it has none. Calls
/// `progress` with the counts of each batch; if it returns false, the pairs judged so far are all.
///
/// The first batch has one pair. Batches grow while they are fast, so that a slow judge reports
/// often. Their size changes no verdict.
pub(crate) fn judge_first_pairs(
    judge: &mut dyn Judge,
    pairs: &[TestPair],
    condition: ImageCondition,
    progress: &mut dyn FnMut(MeasuredCounts) -> bool,
) -> Result<Vec<Result<Verdict, Unscored>>> {
    let mut verdicts = Vec::with_capacity(pairs.len());
    let mut batch = 1;
    while verdicts.len() < pairs.len() {
        let start = Instant::now();
        let first = verdicts.len();
        let indices = first..(first + batch).min(pairs.len());
        let jobs: Vec<JudgeJob> =
            indices.map(|i| pair_job(pairs, i, condition)).collect::<Result<_>>()?;
        let judged = judge.judge(&jobs)?;
        if judged.len() != jobs.len() {
            bail!("the judge returned {} verdicts for {} pairs", judged.len(), jobs.len());
        }
        verdicts.extend(judged);
        let scored = verdicts[first..].iter().filter(|verdict| verdict.is_ok()).count();
        let unscored = verdicts.len() - first - scored;
        let counts = MeasuredCounts { judged: scored as u64, unscored: unscored as u64 };
        if !progress(counts) {
            break;
        }
        batch = if start.elapsed() < BATCH_TIME {
            (2 * batch).min(MAX_BATCH)
        } else {
            batch.div_ceil(2)
        };
    }
    Ok(verdicts)
}

fn pair_job(pairs: &[TestPair], i: usize, condition: ImageCondition) -> Result<JudgeJob> {
    let pair = &pairs[i];
    let image = match condition {
        ImageCondition::Original => pair.image.clone(),
        ImageCondition::Blank => blank_image(&pair.image.decoded)?,
        ImageCondition::Mismatched => {
            let other = next_with_other_image(pairs, i)
                .context("all pairs of the test set have the same image")?;
            other.image.clone()
        }
    };
    let response = |index: usize| Response {
        model: ["a", "b"][index].to_owned(),
        text: pair.responses[index].clone(),
    };
    let case = Case {
        id: i.to_string(),
        image: None,
        question: pair.question.clone(),
        responses: vec![response(0), response(1)],
        reference: None,
        labels: None,
        meta: serde_json::Map::new(),
        extra: serde_json::Map::new(),
        line: i as u64 + 1,
    };
    Ok(JudgeJob { case: Arc::new(case), responses: vec![0, 1], image: Some(image) })
}

/// Returns the first pair after `i`, cyclically, that has a different image.
fn next_with_other_image(pairs: &[TestPair], i: usize) -> Option<&TestPair> {
    let mut others = (1..pairs.len()).map(|step| &pairs[(i + step) % pairs.len()]);
    others.find(|other| other.cluster != pairs[i].cluster)
}

/// Returns true if the pairs have at least two different images.
pub(crate) fn has_distinct_images(pairs: &[TestPair]) -> bool {
    !pairs.is_empty() && next_with_other_image(pairs, 0).is_some()
}
