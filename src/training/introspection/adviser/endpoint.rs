//! A model behind an `OpenAI`-compatible endpoint: `POST {base}/chat/completions`.
//!
//! The model receives the prompts of the panel's members with the full rubric and the format of
//! each evaluation. If its first evaluation contradicts the labels, the next request includes them.

use acem3_conclusion::{MergePrompts, OrderVerdict, Verdict};
use acem3_experts::prompt::{
    BranchPrompts, EvaluationFormat, Form, JudgeInput, PromptLayout, PromptPiece, Rubric,
    RubricDetail,
};
use acem3_experts::{Aspect, BranchEvaluation, Rating, Score};
use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::data::images::encode_png;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::support::network::access_token::AccessToken;
use crate::support::network::service_url::ServiceUrl;
use crate::training::introspection::adviser::chat_client::ChatClient;
use crate::training::introspection::misjudged_pair::MisjudgedPair;
use crate::training::preferences::prompt_text;

/// Evaluates pairs with a model behind an endpoint.
pub struct Endpoint {
    chat: ChatClient,
    branches: BranchPrompts,
    merge: MergePrompts,
}

impl Endpoint {
    /// Creates an endpoint from a base URL such as `https://host/v1`, a model name and an optional
    /// API key.
    ///
    /// # Errors
    /// If the HTTP client cannot be created.
    pub fn new(base: &ServiceUrl, model: &str, key: Option<AccessToken>) -> Result<Self> {
        let layout = PromptLayout::CaseFirst;
        Ok(Self {
            chat: ChatClient::new(base, model, key)?,
            branches: BranchPrompts::new(layout, Rubric::built_in()?, RubricDetail::Full)?,
            merge: MergePrompts::new(layout)?,
        })
    }

    /// Sends a short message, to report a wrong key, URL or model before the training starts.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key, the model or the message.
    pub(crate) fn check(&self) -> Result<()> {
        self.chat.check()
    }

    /// Returns the model and its URL.
    pub(crate) fn name(&self) -> String {
        self.chat.name()
    }

    /// Evaluates a pair in both presentation orders. The inner `Err` is the reason why there is no
    /// evaluation.
    ///
    /// # Errors
    /// If the endpoint is unreachable, or rejects the key or the model.
    pub(crate) fn evaluate(
        &self,
        misjudged: &MisjudgedPair,
        attempt: u32,
    ) -> Result<Result<RecordedVerdict, String>> {
        let image = match &misjudged.job.image {
            Some(image) => {
                let bytes = encode_png(&image.decoded).with_context(|| image.name.clone())?;
                Some(format!("data:image/png;base64,{}", STANDARD.encode(bytes)))
            }
            None => None,
        };
        let mut orders = Vec::new();
        for swapped in [false, true] {
            let order = self.evaluate_order(misjudged, image.as_deref(), swapped, attempt)?;
            match order {
                Ok(order) => orders.push(order),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        RecordedVerdict::from_verdict(&Verdict { orders }, Form::Pair).map(Ok)
    }

    /// Evaluates a pair in one presentation order.
    fn evaluate_order(
        &self,
        misjudged: &MisjudgedPair,
        image: Option<&str>,
        swapped: bool,
        attempt: u32,
    ) -> Result<Result<OrderVerdict, String>> {
        let (mut responses, mut labels) = (misjudged.job.pair_texts(), misjudged.labels);
        if swapped {
            responses.reverse();
            labels.reverse();
        }
        let input = JudgeInput::pair(image.is_some(), misjudged.job.question(), responses);
        let hint = if attempt > 0 { label_hint(labels) } else { String::new() };
        let ask = |pieces: &[PromptPiece],
                   format: &EvaluationFormat|
         -> Result<Result<Vec<(String, u8)>, String>> {
            let text = format!(
                "{}\n\n{hint}Write the evaluation in exactly this form, and nothing else:\n\n{}",
                prompt_text(&without_image(pieces)).trim(),
                format.to_instructions()
            );
            let answer = self.chat.ask(&user_message(&text, image), attempt)?;
            Ok(answer.and_then(|answer| format.parse(&answer).map_err(|error| error.to_string())))
        };
        let (mut branches, mut evaluations) = (Vec::new(), [const { Vec::new() }; 3]);
        for (i, aspect) in Aspect::ALL.into_iter().enumerate() {
            let format = EvaluationFormat::for_aspect(aspect);
            let ratings = match ask(&self.branches.pieces(aspect, &input)?, &format)? {
                Ok(ratings) => ratings,
                Err(reason) => return Ok(Err(reason)),
            };
            evaluations[i] = format.render_pieces(&ratings);
            branches.push(branch_evaluation(aspect, &ratings, swapped)?);
        }
        let format = EvaluationFormat::for_conclusion();
        let conclusion = match ask(&self.merge.pieces(&input, &evaluations)?, &format)? {
            Ok(conclusion) => conclusion,
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(Ok(OrderVerdict {
            swapped,
            first_shown: None,
            branches,
            conclusion: rating_pair(&conclusion, [0, 1], swapped)?.into(),
        }))
    }
}

/// Returns the part of the prompt that states the labels.
fn label_hint([first, second]: [f64; 2]) -> String {
    format!(
        "People who know the case gave Response 1 a final score of {first} and Response 2 one of {second}, of 0 to 5. \
         Look again with this in mind, and give the reasons that the image and the texts bear.\n\n"
    )
}

/// Returns the pieces without the image, which is a separate part of the message.
fn without_image(pieces: &[PromptPiece]) -> Vec<PromptPiece> {
    let others = pieces.iter().filter(|piece| **piece != PromptPiece::Image);
    others.cloned().collect()
}

/// Returns the messages of a request: one user message with the text and the image.
fn user_message(text: &str, image: Option<&str>) -> Value {
    let mut content = Vec::new();
    if let Some(url) = image {
        content.push(json!({"type": "image_url", "image_url": {"url": url}}));
    }
    content.push(json!({"type": "text", "text": text}));
    json!([{"role": "user", "content": content}])
}

/// Converts the ratings of a branch to an evaluation in the order of the pair. `ratings` contains
/// all ratings of the response that is presented first, then those of the other.
fn branch_evaluation(
    aspect: Aspect,
    ratings: &[(String, u8)],
    swapped: bool,
) -> Result<BranchEvaluation> {
    let criteria = aspect.criteria();
    let ratings = criteria.iter().enumerate().map(|(i, criterion)| {
        let indices = [i, i + criteria.len()];
        Ok((*criterion, rating_pair(ratings, indices, swapped)?.into()))
    });
    Ok(BranchEvaluation { aspect, ratings: ratings.collect::<Result<_>>()? })
}

/// Returns the ratings at two indices, in the order of the pair.
fn rating_pair(
    ratings: &[(String, u8)],
    indices: [usize; 2],
    swapped: bool,
) -> Result<[Rating; 2]> {
    let [Some(first), Some(second)] = indices.map(|index| ratings.get(index)) else {
        bail!("the evaluation has {} ratings, fewer than its format requires", ratings.len());
    };
    let mut pair = [first, second].map(|(analysis, score)| Rating {
        analysis: analysis.clone(),
        cut: false,
        score: Score::from_value(*score),
        lookups: Vec::new(),
    });
    if swapped {
        pair.reverse();
    }
    Ok(pair)
}
