//! Pairs of a test set, judged with the original, a blank or a mismatched image.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acem3_conclusion::Verdict;
use acem3_vision::DecodedImage;
use anyhow::{Error, Result, bail};

use crate::data::cases::{Case, ImageSource, Response, UnscoredReason};
use crate::data::images::derived::blank_image;
use crate::data::images::{ImageReader, LoadedImage};
use crate::judging::judge::{Judge, JudgeJob, Unscored};
use crate::support::digest::Digest;
use crate::training::measurement::observer::MeasuredCounts;

/// Maximum number of pairs per batch.
const MAX_BATCH: usize = 16;
/// A batch that takes less time is followed by a larger one, up to the maximum.
const BATCH_TIME: Duration = Duration::from_secs(10);

/// A pair of a test set.
pub(crate) struct TestPair {
    /// Key of the image; pairs with the same image have the same key.
    pub(crate) cluster: String,
    /// Image of the pair.
    pub(crate) image: TestImage,
    /// Question about the image.
    pub(crate) question: String,
    /// Two responses to the question.
    pub(crate) responses: [String; 2],
}

/// Image of a test pair.
#[derive(Clone)]
pub(crate) enum TestImage {
    /// A case without an image.
    None,
    /// A decoded image.
    Decoded(Arc<LoadedImage>),
    /// An image that is decoded when the pair is judged.
    Undecoded(UndecodedImage),
}

impl TestImage {
    /// Returns the decoded image; `None` for a case without one.
    ///
    /// # Errors
    /// If the image cannot be decoded. The message starts with its name.
    fn load(&self) -> Result<Option<Arc<LoadedImage>>, String> {
        match self {
            Self::None => Ok(None),
            Self::Decoded(image) => Ok(Some(image.clone())),
            Self::Undecoded(stored) => stored.load().map(Some),
        }
    }

    /// Returns the image if it is decoded already.
    pub(crate) fn decoded(&self) -> Option<&DecodedImage> {
        match self {
            Self::Decoded(image) => Some(&image.decoded),
            Self::None | Self::Undecoded(_) => None,
        }
    }

    /// Returns true if the case has an image.
    pub(crate) fn is_present(&self) -> bool {
        !matches!(self, Self::None)
    }
}

/// Image that is decoded when it is needed, so that a large test set fits into memory.
#[derive(Clone)]
pub(crate) struct UndecodedImage {
    source: ImageSource,
    reader: Arc<Mutex<ImageReader>>,
    sha256: Digest,
}

impl UndecodedImage {
    /// Reads and hashes an image.
    pub(crate) fn new(source: ImageSource, reader: Arc<Mutex<ImageReader>>) -> Result<Self> {
        let read = lock(&reader).read(&source).map_err(Error::msg)?;
        Ok(Self { sha256: read.sha256, source, reader })
    }

    /// Returns the key of the image: equal images have equal keys.
    pub(crate) fn key(&self) -> String {
        self.sha256.to_string()
    }

    fn load(&self) -> Result<Arc<LoadedImage>, String> {
        lock(&self.reader).load(&self.source)
    }
}

/// Locks a reader. Its state is only a cache, so it is fine after a panic.
fn lock(reader: &Mutex<ImageReader>) -> MutexGuard<'_, ImageReader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
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
        let jobs: Vec<Result<JudgeJob, Unscored>> =
            indices.map(|i| pair_job(pairs, i, condition)).collect();
        verdicts.extend(judge_jobs(judge, jobs)?);
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

/// Judges the jobs and keeps the reasons of those that cannot be judged.
fn judge_jobs(
    judge: &mut dyn Judge,
    jobs: Vec<Result<JudgeJob, Unscored>>,
) -> Result<Vec<Result<Verdict, Unscored>>> {
    let mut failures = Vec::new();
    let mut judgeable = Vec::new();
    for job in jobs {
        failures.push(job.map(|job| judgeable.push(job)));
    }
    let judged = if judgeable.is_empty() { Vec::new() } else { judge.judge(&judgeable)? };
    if judged.len() != judgeable.len() {
        bail!("the judge returned {} verdicts for {} pairs", judged.len(), judgeable.len());
    }
    let mut judged = judged.into_iter();
    let verdicts = failures.into_iter().filter_map(|failure| match failure {
        Ok(()) => judged.next(),
        Err(unscored) => Some(Err(unscored)),
    });
    Ok(verdicts.collect())
}

/// Returns the job of a pair.
///
/// # Errors
/// If the image cannot be decoded.
fn pair_job(pairs: &[TestPair], i: usize, condition: ImageCondition) -> Result<JudgeJob, Unscored> {
    let pair = &pairs[i];
    let unscored = |message| Unscored::new(UnscoredReason::Image, message);
    let image = match condition {
        ImageCondition::Original => pair.image.load().map_err(unscored)?,
        ImageCondition::Blank => match pair.image.load().map_err(unscored)? {
            Some(image) => {
                let blank = blank_image(&image.decoded);
                Some(blank.map_err(|error| unscored(format!("{error:#}")))?)
            }
            None => None,
        },
        ImageCondition::Mismatched => match next_with_other_image(pairs, i) {
            Some(other) => other.image.load().map_err(unscored)?,
            None => {
                return Err(unscored("all pairs of the test set have the same image".to_owned()));
            }
        },
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
    Ok(JudgeJob { case: Arc::new(case), responses: vec![0, 1], image })
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
