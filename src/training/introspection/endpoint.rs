//! A model behind an endpoint that speaks as `OpenAI`'s does: `POST {base}/chat/completions`.
//!
//! It is asked as the panel's members are, with the rubric spelt out, and shown the form of each evaluation. When its
//! first evaluation contradicts what people said, it is told what they said, and gives reasons for that or not.

use acem3_conclusion::{MergePrompts, OrderVerdict, Verdict};
use acem3_experts::prompt::{BranchPrompts, Detail, Format, JudgeInput, Layout, Piece, Rubric};
use acem3_experts::{Aspect, BranchEvaluation, Rating, Score};
use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::data::images::png;
use crate::judging::judge::recorded_verdict::RecordedVerdict;
use crate::training::introspection::adviser::MisjudgedPair;
use crate::training::introspection::chat_client::ChatClient;
use crate::training::preferences::prompt_text;

/// A model that evaluates pairs when asked.
pub struct Endpoint {
    chat: ChatClient,
    branches: BranchPrompts,
    merge: MergePrompts,
}

impl Endpoint {
    /// The model of this name behind an address, as `https://host/v1`; `key`: what it asks for, if it does.
    ///
    /// # Errors
    /// Where the address is none.
    pub fn new(base: &str, model: &str, key: Option<String>) -> Result<Self> {
        let layout = Layout::CaseFirst;
        Ok(Self {
            chat: ChatClient::new(base, model, key)?,
            branches: BranchPrompts::new(layout, Rubric::built_in()?, Detail::Full)?,
            merge: MergePrompts::new(layout)?,
        })
    }

    /// The model and where it is.
    pub(super) fn name(&self) -> String {
        self.chat.name()
    }

    /// Its evaluation of a pair, in both presentation orders; or why there is none.
    ///
    /// # Errors
    /// Where it cannot be reached, and where it refuses the key, the model or the form of what it is asked.
    pub(super) fn evaluate(
        &self,
        doubt: &MisjudgedPair,
        attempt: u32,
    ) -> Result<Result<RecordedVerdict, String>> {
        let image = match &doubt.job.image {
            Some(image) => {
                let bytes = png(&image.decoded).with_context(|| image.name.clone())?;
                Some(format!("data:image/png;base64,{}", STANDARD.encode(bytes)))
            }
            None => None,
        };
        let mut orders = Vec::new();
        for swapped in [false, true] {
            let order = self.order(doubt, image.as_deref(), swapped, attempt)?;
            match order {
                Ok(order) => orders.push(order),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        RecordedVerdict::from_verdict(&Verdict { orders }).map(Ok)
    }

    fn order(
        &self,
        doubt: &MisjudgedPair,
        image: Option<&str>,
        swapped: bool,
        attempt: u32,
    ) -> Result<Result<OrderVerdict, String>> {
        let (mut responses, mut known) = (doubt.job.responses(), doubt.known);
        if swapped {
            responses.reverse();
            known.reverse();
        }
        let input = JudgeInput {
            image: image.is_some(),
            question: doubt.job.question(),
            responses,
        };
        let told = if attempt > 0 {
            told(known)
        } else {
            String::new()
        };
        let ask = |pieces: &[Piece],
                   format: &Format|
         -> Result<Result<Vec<(String, u8)>, String>> {
            let text = format!(
                "{}\n\n{told}Write the evaluation in exactly this form, and nothing else:\n\n{}",
                prompt_text(&without_image(pieces)).trim(),
                format.blank()
            );
            let answer = self.chat.ask(&message(&text, image), attempt)?;
            Ok(answer.and_then(|answer| format.read(&answer).map_err(|error| error.to_string())))
        };
        let (mut branches, mut written) = (Vec::new(), [const { Vec::new() }; 3]);
        for (i, aspect) in Aspect::ALL.into_iter().enumerate() {
            let format = Format::branch(aspect);
            let ratings = match ask(&self.branches.pieces(aspect, &input)?, &format)? {
                Ok(ratings) => ratings,
                Err(reason) => return Ok(Err(reason)),
            };
            written[i] = format.pieces(&ratings);
            branches.push(branch(aspect, &ratings, swapped)?);
        }
        let format = Format::conclusion();
        let concluded = match ask(&self.merge.pieces(&input, &written)?, &format)? {
            Ok(concluded) => concluded,
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(Ok(OrderVerdict {
            swapped,
            branches,
            conclusion: pair(&concluded, [0, 1], swapped)?,
        }))
    }
}

/// What people said, for who looks again.
fn told([first, second]: [f64; 2]) -> String {
    format!(
        "People who know the case gave Response 1 a final score of {first} and Response 2 one of {second}, of 0 to 5. \
         Look again with this in mind, and give the reasons that the image and the texts bear.\n\n"
    )
}

/// What is asked in words; the image stands beside them.
fn without_image(pieces: &[Piece]) -> Vec<Piece> {
    let words = pieces.iter().filter(|piece| **piece != Piece::Image);
    words.cloned().collect()
}

fn message(text: &str, image: Option<&str>) -> Value {
    let mut content = Vec::new();
    if let Some(url) = image {
        content.push(json!({"type": "image_url", "image_url": {"url": url}}));
    }
    content.push(json!({"type": "text", "text": text}));
    json!([{"role": "user", "content": content}])
}

/// The ratings of a branch, which stand response by response.
fn branch(aspect: Aspect, ratings: &[(String, u8)], swapped: bool) -> Result<BranchEvaluation> {
    let criteria = aspect.criteria();
    let rated = criteria.iter().enumerate().map(|(i, criterion)| {
        let places = [i, i + criteria.len()];
        Ok((*criterion, pair(ratings, places, swapped)?))
    });
    Ok(BranchEvaluation {
        aspect,
        ratings: rated.collect::<Result<_>>()?,
    })
}

/// Two ratings in the order of the pair.
fn pair(ratings: &[(String, u8)], places: [usize; 2], swapped: bool) -> Result<[Rating; 2]> {
    let [Some(first), Some(second)] = places.map(|place| ratings.get(place)) else {
        bail!(
            "an evaluation has {} ratings, too few for its form",
            ratings.len()
        );
    };
    let mut pair = [first, second].map(|(analysis, score)| Rating {
        analysis: analysis.clone(),
        cut: false,
        score: Score::certain(*score),
    });
    if swapped {
        pair.reverse();
    }
    Ok(pair)
}
