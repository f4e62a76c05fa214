//! A judged pair as it is taught: the case, and what a perfect judge would write about it.

use std::sync::Arc;

use acem3_experts::{Aspect, Criterion};

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::rules::phrase;
use crate::data::phantoms::{ExactRating, WrittenResponse, response_writer};

/// How often a conclusion reads evaluations that are not the case's own, and how many of their
/// ratings are changed then.
const MISREAD: f64 = 0.5;
const CHANGED: f64 = 0.15;

/// Pixel values of one image, `3·s·s`.
pub(crate) type Pixels = Arc<[f32]>;

/// A pair with its evaluation.
#[derive(Clone, Debug)]
pub(crate) struct PairExample {
    /// The image, preprocessed.
    pub(crate) pixels: Option<Pixels>,
    /// The question.
    pub(crate) question: String,
    /// Both responses, in the order of presentation.
    pub(crate) responses: [ResponseExample; 2],
}

/// A response with its ratings.
#[derive(Clone, Debug)]
pub(crate) struct ResponseExample {
    /// The text.
    pub(crate) text: String,
    /// One for each criterion, in the order of [`Criterion::ALL`].
    pub(crate) ratings: Vec<RatingExample>,
    /// What the conclusion says of it.
    pub(crate) conclusion: RatingExample,
}

/// An analysis and a score, and whether its finding is learned or only read.
#[derive(Clone, Debug)]
pub(crate) struct RatingExample {
    /// What is rated; `None` for a conclusion.
    pub(crate) criterion: Option<Criterion>,
    /// The reason.
    pub(crate) analysis: String,
    /// 0 to 5.
    pub(crate) score: u8,
    /// False where what the image is said to show is known to be wrong. What is claimed, whether both
    /// agree, and the score are still learned, so that a score can contradict a doubtful finding.
    pub(crate) learned: bool,
}

impl RatingExample {
    fn new(criterion: Option<Criterion>, rating: ExactRating) -> Self {
        Self {
            criterion,
            analysis: rating.analysis,
            score: rating.score,
            learned: true,
        }
    }
}

impl From<WrittenResponse> for ResponseExample {
    fn from(written: WrittenResponse) -> Self {
        let ratings = written.ratings.into_iter();
        Self {
            text: written.text,
            ratings: ratings
                .map(|(criterion, rating)| RatingExample::new(Some(criterion), rating))
                .collect(),
            conclusion: RatingExample::new(None, written.conclusion),
        }
    }
}

impl ResponseExample {
    /// The rating of factual accuracy.
    pub(crate) fn finding(&self) -> Option<&RatingExample> {
        let wanted = Some(Criterion::FactualAccuracy);
        self.ratings.iter().find(|r| r.criterion == wanted)
    }
}

impl PairExample {
    /// The ratings of an aspect in the order of the evaluation's text.
    pub(crate) fn aspect(&self, aspect: Aspect) -> Vec<&RatingExample> {
        let of = |response: &'_ ResponseExample| -> Vec<usize> {
            let wanted = |i: &usize| Criterion::ALL.get(*i).is_some_and(|c| c.aspect() == aspect);
            (0..response.ratings.len()).filter(wanted).collect()
        };
        self.responses
            .iter()
            .flat_map(|r| of(r).into_iter().filter_map(|i| r.ratings.get(i)))
            .collect()
    }

    /// The pair as imperfect experts may have rated it, with the conclusion that follows from what
    /// they wrote. A conclusion model that has read perfect evaluations alone learns to conclude from
    /// the responses, and contradicts the evaluations it is given.
    pub(crate) fn misread(&self, rng: &mut ChaCha8Rng) -> Self {
        let mut pair = self.clone();
        if !rng.random_bool(MISREAD) {
            return pair;
        }
        for response in &mut pair.responses {
            for rating in &mut response.ratings {
                if let Some(criterion) = rating.criterion
                    && rng.random_bool(CHANGED)
                {
                    rating.score = rng.random_range(0..=5);
                    // Reason and score disagree at times; then the score counts.
                    if rng.random_bool(0.5) {
                        phrase(criterion, rating.score).clone_into(&mut rating.analysis);
                    }
                }
            }
            let scores = response.ratings.iter();
            let scores = scores.filter_map(|r| r.criterion.map(|c| (c, r.score)));
            response.conclusion = RatingExample::new(None, response_writer::conclude(scores));
        }
        pair
    }

    /// The ratings of a member in the order of its text.
    pub(crate) fn of_member(&self, member: usize) -> Vec<&RatingExample> {
        match Aspect::ALL.get(member) {
            Some(aspect) => self.aspect(*aspect),
            None => self.conclusion(),
        }
    }

    /// The conclusion's ratings.
    fn conclusion(&self) -> Vec<&RatingExample> {
        self.responses.iter().map(|r| &r.conclusion).collect()
    }
}
