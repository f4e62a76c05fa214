//! The tokenizer of a panel trained from nothing: byte-level BPE of its own texts, with each fixed
//! phrase of the prompt format as one control token.
//!
//! The phrases are the same in every case and carry no information, so a small model does not
//! spend its context on them; and since quoted text never yields a control token, no answer can
//! imitate the format.

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{BranchPrompts, Format, JudgeInput, Piece, Rubric, Step};
use acem3_experts::{Aspect, TextTokenizer};
use anyhow::{Result, anyhow};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

use super::config::TrainConfig;

/// Opens the answer of a question-answering sequence.
pub(super) const ANSWER: &str = "\n### Answer:\n";

/// Trains the tokenizer on texts. The vocabulary has exactly the configured size.
pub(super) fn train(
    config: &TrainConfig,
    texts: impl Iterator<Item = String> + Send,
) -> Result<Tokenizer> {
    let lines = Split::new(
        SplitPattern::String("\n".to_owned()),
        SplitDelimiterBehavior::Isolated,
        false,
    )
    .map_err(|e| anyhow!("tokenizer: {e}"))?;
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(Sequence::new(vec![
        lines.into(),
        ByteLevel::new(false, true, true).into(),
    ])));
    tokenizer.with_decoder(Some(ByteLevel::new(false, true, true)));
    let control: Vec<AddedToken> = phrases(config)?
        .into_iter()
        .map(|p| AddedToken::from(p, true).normalized(false))
        .collect();
    let mut trainer: TrainerWrapper = BpeTrainer::builder()
        .vocab_size(config.vocabulary)
        .min_frequency(1)
        .show_progress(false)
        .special_tokens(control)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
        .into();
    tokenizer
        .train(&mut trainer, texts)
        .map_err(|e| anyhow!("tokenizer: {e}"))?;
    let size = tokenizer.get_vocab_size(true);
    if size > config.vocabulary {
        return Err(anyhow!(
            "the tokenizer has {size} tokens, the vocabulary {}",
            config.vocabulary
        ));
    }
    // Digits of scores must be single tokens; the format refuses the tokenizer otherwise.
    Format::conclusion().tokens(&TextTokenizer::new(tokenizer.clone()))?;
    Ok(tokenizer)
}

/// Every fixed phrase of the prompts and formats, longest first.
fn phrases(config: &TrainConfig) -> Result<Vec<String>> {
    let rubric = Rubric::built_in()?;
    let branches = BranchPrompts::new(config.layout, rubric, config.rubric)?;
    let merge = MergePrompts::new(config.layout)?;
    let input = JudgeInput {
        image: true,
        question: "q",
        responses: ["a", "b"],
    };
    let no_image = JudgeInput {
        image: false,
        ..input.clone()
    };
    let marks = [(); 3].map(|()| vec![Piece::Free(String::new())]);
    let mut phrases = vec![ANSWER.to_owned()];
    let mut add = |pieces: Vec<Piece>| {
        phrases.extend(pieces.into_iter().filter_map(|piece| match piece {
            Piece::Fixed(text) => Some(text),
            _ => None,
        }));
    };
    for input in [&input, &no_image] {
        for aspect in Aspect::ALL {
            add(branches.pieces(aspect, input)?);
        }
        add(merge.pieces(input, &marks)?);
    }
    let formats = Aspect::ALL.map(Format::branch);
    for step in formats
        .iter()
        .chain([&Format::conclusion()])
        .flat_map(Format::steps)
    {
        if let Step::Feed(text) = step {
            phrases.push(text.clone());
        }
    }
    // A bare line break is ordinary text.
    phrases.retain(|p| p.trim() != "");
    phrases.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    phrases.dedup();
    Ok(phrases)
}
