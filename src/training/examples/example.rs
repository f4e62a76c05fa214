//! Training examples: pairs of responses with correct evaluations, and images with questions and
//! answers.

use acem3_experts::train::TrainingImage;
use acem3_experts::{Aspect, Criterion};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::data::phantoms::text::response_writer::{self, claim_range, finding_range};
use crate::data::phantoms::text::rules::analysis_for_score;
use crate::data::phantoms::{ExactRating, WrittenResponse};

/// Probability that the conclusion model reads evaluations with errors.
const EXPERT_ERROR_RATE: f64 = 0.5;
/// Proportion of changed scores in evaluations with errors.
const CHANGED_SCORE_RATE: f64 = 0.15;

/// Image with questions and short answers.
pub(crate) struct AnswerExample {
    /// Preprocessed image.
    pub(crate) image: TrainingImage,
    /// Questions about the image.
    pub(crate) questions: Vec<QuestionWithAnswer>,
}

/// Question and its correct answer.
pub(crate) struct QuestionWithAnswer {
    /// Text of the question.
    pub(crate) question: String,
    /// Text of the answer.
    pub(crate) answer: String,
}

/// Pair of responses with correct evaluations.
#[derive(Clone, Debug)]
pub(crate) struct PairExample {
    /// Preprocessed image.
    pub(crate) image: Option<TrainingImage>,
    /// Text of the question.
    pub(crate) question: String,
    /// Both responses in presentation order.
    pub(crate) responses: [ResponseExample; 2],
}

/// Response with correct ratings.
#[derive(Clone, Debug)]
pub(crate) struct ResponseExample {
    /// Text of the response.
    pub(crate) text: String,
    /// One rating per criterion, in the order of [`Criterion::ALL`].
    pub(crate) ratings: Vec<RatingExample>,
    /// Rating of the conclusion.
    pub(crate) conclusion: RatingExample,
}

/// Training example of an analysis and a score.
#[derive(Clone, Debug)]
pub(crate) struct RatingExample {
    /// Rated criterion; `None` for a conclusion.
    pub(crate) criterion: Option<Criterion>,
    /// Justification of the score.
    pub(crate) analysis: String,
    /// Score, 0 to 5.
    pub(crate) score: u8,
    /// False if the finding has no loss: it is deliberately wrong, repeats another one, or no response of the
    /// pair is right. The claim, the agreement and the score have a loss.
    pub(crate) trains_finding: bool,
}

impl RatingExample {
    fn new(criterion: Option<Criterion>, rating: ExactRating) -> Self {
        Self { criterion, analysis: rating.analysis, score: rating.score, trains_finding: true }
    }

    /// Returns this rating with another analysis and score.
    pub(crate) fn with_text(&self, analysis: String, score: u8) -> Self {
        Self { analysis, score, ..self.clone() }
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
    /// Lowers the score on a criterion, with the analysis of the lower score.
    pub(crate) fn lower(&mut self, criterion: Criterion, score: u8) {
        let rating = self.rating_mut(criterion);
        if let Some(rating) = rating.filter(|rating| rating.score > score) {
            *rating = rating.with_text(analysis_for_score(criterion, score).to_owned(), score);
        }
    }

    /// Replaces the conclusion by the one that follows from the ratings.
    pub(crate) fn update_conclusion(&mut self) {
        let scores = self.ratings.iter();
        let scores = scores.filter_map(|r| r.criterion.map(|c| (c, r.score)));
        self.conclusion = RatingExample::new(None, response_writer::final_rating(scores));
    }

    /// Returns the rating of a criterion, to change it.
    pub(crate) fn rating_mut(&mut self, criterion: Criterion) -> Option<&mut RatingExample> {
        self.ratings.iter_mut().find(|rating| rating.criterion == Some(criterion))
    }

    /// Returns the rating of factual accuracy.
    pub(crate) fn factual_rating(&self) -> Option<&RatingExample> {
        let criterion = Some(Criterion::FACTUAL_ACCURACY);
        self.ratings.iter().find(|r| r.criterion == criterion)
    }
}

impl PairExample {
    /// Returns the ratings of an aspect in the order of the evaluation's text.
    pub(crate) fn aspect_ratings(&self, aspect: Aspect) -> Vec<&RatingExample> {
        let indices = |response: &'_ ResponseExample| -> Vec<usize> {
            let is_of_aspect =
                |i: &usize| Criterion::ALL.get(*i).is_some_and(|c| c.aspect() == Some(aspect));
            (0..response.ratings.len()).filter(is_of_aspect).collect()
        };
        self.responses
            .iter()
            .flat_map(|r| indices(r).into_iter().filter_map(|i| r.ratings.get(i)))
            .collect()
    }

    /// Returns the pair with the responses in the other presentation order.
    pub(crate) fn exchanged(&self) -> Self {
        let mut pair = self.clone();
        pair.responses.reverse();
        pair
    }

    /// Replaces the finding in both factual analyses by the claim of a response. The agreements and scores
    /// may then be wrong. An analysis without a finding stays as it is.
    pub(crate) fn take_finding_from_claim(&mut self, response: usize) {
        let claimed = self.responses.get(response).and_then(ResponseExample::factual_rating);
        let Some(claim) = claimed
            .and_then(|rating| rating.analysis.get(claim_range(&rating.analysis)?))
            .map(str::to_owned)
        else {
            return;
        };
        for response in &mut self.responses {
            if let Some(rating) = response.rating_mut(Criterion::FACTUAL_ACCURACY)
                && let Some(finding) = finding_range(&rating.analysis)
            {
                rating.analysis.replace_range(finding, &claim);
            }
        }
    }

    /// Returns the pair with random errors in its evaluations and the conclusion that follows from
    /// them. A conclusion model that is trained only on correct evaluations learns to judge from
    /// the responses and ignores the evaluations that it reads.
    pub(crate) fn with_expert_errors(&self, rng: &mut ChaCha8Rng) -> Self {
        let mut pair = self.clone();
        if !rng.random_bool(EXPERT_ERROR_RATE) {
            return pair;
        }
        for response in &mut pair.responses {
            for rating in &mut response.ratings {
                if let Some(criterion) = rating.criterion
                    && rng.random_bool(CHANGED_SCORE_RATE)
                {
                    rating.score = rng.random_range(0..=5);
                    // In half of the cases the analysis contradicts the score, which takes
                    // precedence.
                    if rng.random_bool(0.5) {
                        analysis_for_score(criterion, rating.score)
                            .clone_into(&mut rating.analysis);
                    }
                }
            }
            response.update_conclusion();
        }
        pair
    }

    /// Returns the ratings of a member in the order of its text.
    pub(crate) fn member_ratings(&self, member: usize) -> Vec<&RatingExample> {
        match Aspect::ALL.get(member) {
            Some(aspect) => self.aspect_ratings(*aspect),
            None => self.responses.iter().map(|r| &r.conclusion).collect(),
        }
    }
}
