//! Trains the tokenizer of a panel without an initial model: byte-level BPE, with each fixed phrase of the prompt format
//! as one special token.
//!
//! The phrases are equal in all prompts, so a small model does not spend its context on them. Quoted text never contains
//! a special token, so no response can imitate the format.
//!
//! Text is lower-cased and prefixed with a space. A word then has the same tokens in every position, and a model can copy
//! a claim from a response into its analysis.

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{BranchPrompts, Format, JudgeInput, Piece, Rubric, Step};
use acem3_experts::{Aspect, TextTokenizer};
use anyhow::{Context as _, Result, anyhow};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::normalizers::replace::{Replace, ReplacePattern};
use tokenizers::normalizers::{Lowercase, Prepend, Sequence as Normalizers};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

use crate::training::config::reward_token::REWARD_TOKENS;
use crate::training::config::train_config::TrainConfig;

/// Comes before the answer in a question-answering sequence.
pub(crate) const ANSWER: &str = "\n### Answer:\n";

/// A leading space before other whitespace.
const EXTRA_SPACE: &str = r"^ (?=\s)";

/// Trains the tokenizer on texts and returns its `tokenizer.json`. The vocabulary has at most the configured size.
///
/// # Errors
/// If the vocabulary is too small for the special tokens or the scores.
pub(crate) fn train_tokenizer(
    config: &TrainConfig,
    texts: impl Iterator<Item = String> + Send,
) -> Result<String> {
    let lines = Split::new(
        SplitPattern::String("\n".to_owned()),
        SplitDelimiterBehavior::Isolated,
        false,
    )
    .map_err(|e| anyhow!("tokenizer: {e}"))?;
    let mut tokenizer = Tokenizer::new(BPE::default());
    // A nested sequence distinguishes this space from that of `SentencePiece`, which comes only before a prompt.
    let extra = Replace::new(ReplacePattern::Regex(EXTRA_SPACE.to_owned()), "")
        .map_err(|e| anyhow!("tokenizer: {e}"))?;
    let spaced = Normalizers::new(vec![Prepend::new(" ".to_owned()).into(), extra.into()]);
    let normalizers = Normalizers::new(vec![Lowercase.into(), spaced.into()]);
    tokenizer
        .with_normalizer(Some(normalizers))
        .map_err(|e| anyhow!("tokenizer: {e}"))?;
    tokenizer.with_pre_tokenizer(Some(Sequence::new(vec![
        lines.into(),
        ByteLevel::new(false, true, true).into(),
    ])));
    tokenizer.with_decoder(Some(ByteLevel::new(false, true, true)));
    let special: Vec<AddedToken> = fixed_phrases(config)?
        .into_iter()
        .map(|p| AddedToken::from(p, true).normalized(false))
        .collect();
    let mut trainer: TrainerWrapper = BpeTrainer::builder()
        .vocab_size(config.vocabulary)
        .min_frequency(1)
        .show_progress(false)
        .special_tokens(special)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
        .into();
    tokenizer
        .train(&mut trainer, texts)
        .map_err(|e| anyhow!("tokenizer: {e}"))?;
    let size = tokenizer.get_vocab_size(true);
    if size > config.vocabulary {
        return Err(anyhow!(
            "the tokenizer has {size} tokens, expected at most {} as in vocabulary{}",
            config.vocabulary,
            vocabulary_hint(config)
        ));
    }
    // Every score must be a single token.
    let conclusion = Format::conclusion().tokens(&TextTokenizer::new(tokenizer.clone()));
    conclusion.with_context(|| {
        let n = config.vocabulary;
        format!(
            "vocabulary is {n}, which is too small to have every score as a token{}",
            vocabulary_hint(config)
        )
    })?;
    let json = tokenizer.to_string(false);
    json.map_err(anyhow::Error::from_boxed)
}

/// Returns the hint for a vocabulary that is too small.
fn vocabulary_hint(config: &TrainConfig) -> String {
    format!(
        "\nhint: raise vocabulary and model.decoder.vocab_size from {} to 4096",
        config.vocabulary
    )
}

/// Returns every fixed phrase of the prompts and formats, longest first.
fn fixed_phrases(config: &TrainConfig) -> Result<Vec<String>> {
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
    let evaluations = [(); 3].map(|()| vec![Piece::Free(String::new())]);
    let mut phrases = vec![ANSWER.to_owned()];
    // Stages of evaluations do not use them by default; their meaning comes from stages of preferences.
    phrases.extend(REWARD_TOKENS.map(str::to_owned));
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
        add(merge.pieces(input, &evaluations)?);
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
    // A line break is ordinary text.
    phrases.retain(|p| p.trim() != "");
    phrases.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    phrases.dedup();
    Ok(phrases)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn small_vocabulary_is_rejected() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let mut config = TrainConfig::read(&path).unwrap();
        for n in [100, 300] {
            config.vocabulary = n;
            // Only some scores become tokens together with their space.
            let texts = (0..50).map(|_| "Score: 5".to_owned());
            let error = train_tokenizer(&config, texts)
                .map(|_| ())
                .unwrap_err()
                .to_string();
            assert!(error.contains("hint: raise vocabulary"), "{error}");
        }
    }

    #[test]
    fn words_have_same_tokens_in_every_position() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let config = TrainConfig::read(&path).unwrap();
        let texts = [
            "left kidney",
            " Claims left kidney; the image shows it: they agree.\n",
            "Score: 0 1 2 3 4 5",
        ];
        let texts = texts.iter().cycle().take(300).map(|t| (*t).to_owned());
        let trained = train_tokenizer(&config, texts).unwrap();
        let tokenizer = TextTokenizer::parse(trained.as_bytes()).unwrap();
        let claimed = tokenizer.free("Left Kidney").unwrap();
        assert_eq!(claimed.len(), 2);
        for text in [" left kidney", "LEFT KIDNEY", "left kidney"] {
            assert_eq!(tokenizer.free(text).unwrap(), claimed, "{text}");
        }
        let analysis = tokenizer
            .free(" Claims left kidney; the image shows it")
            .unwrap();
        assert!(analysis.windows(2).any(|two| two == claimed));
        assert_eq!(tokenizer.decode(&claimed).unwrap(), " left kidney");
        let [stop] = tokenizer.free("\n").unwrap()[..] else {
            panic!("a line break is one token");
        };
        assert_eq!(tokenizer.free("kidney\n").unwrap(), [claimed[1], stop]);
        for token in REWARD_TOKENS {
            assert_eq!(tokenizer.fixed(token).unwrap().len(), 1);
        }
    }
}
