//! The tokenizer of a panel trained from nothing: byte-level BPE of its own texts, with each fixed
//! phrase of the prompt format as one control token.
//!
//! The phrases are the same in every case and carry no information, so a small model does not
//! spend its context on them; and since quoted text never yields a control token, no answer can
//! imitate the format.
//!
//! It reads lower case alone, and every text as if a space stood before it. A word is then the same
//! token wherever it stands, and what a response claims can be copied into the analysis.

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

use crate::training::config::train_config::TrainConfig;
use crate::training::preferences::data::REWARD_TOKENS;

/// Opens the answer of a question-answering sequence.
pub(crate) const ANSWER: &str = "\n### Answer:\n";

/// One space too many at the beginning of a text.
const SPARE: &str = r"^ (?=\s)";

/// Trains the tokenizer on texts and gives its `tokenizer.json`. The vocabulary has exactly the configured size.
pub(crate) fn train(
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
    // In a sequence of its own, for this space is not that of `SentencePiece`, which stands before a
    // prompt alone.
    let spare = Replace::new(ReplacePattern::Regex(SPARE.to_owned()), "")
        .map_err(|e| anyhow!("tokenizer: {e}"))?;
    let spaced = Normalizers::new(vec![Prepend::new(" ".to_owned()).into(), spare.into()]);
    let normalizers = Normalizers::new(vec![Lowercase.into(), spaced.into()]);
    tokenizer
        .with_normalizer(Some(normalizers))
        .map_err(|e| anyhow!("tokenizer: {e}"))?;
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
            "the tokenizer has {size} tokens, the vocabulary {}{}",
            config.vocabulary,
            too_small(config)
        ));
    }
    // Digits of scores must be single tokens; the format refuses the tokenizer otherwise.
    let conclusion = Format::conclusion().tokens(&TextTokenizer::new(tokenizer.clone()));
    conclusion.with_context(|| {
        let n = config.vocabulary;
        format!(
            "a vocabulary of {n} has no room for the scores as tokens{}",
            too_small(config)
        )
    })?;
    let json = tokenizer.to_string(false);
    json.map_err(anyhow::Error::from_boxed)
}

/// What to do where the vocabulary is too small; all panels that were trained so far had more.
fn too_small(config: &TrainConfig) -> String {
    format!(
        "\nhint: raise vocabulary and model.decoder.vocab_size, both {} now; 4096 is enough",
        config.vocabulary
    )
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
    // No stage of evaluations writes them, so that one of preferences finds them without a meaning.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_vocabulary_that_is_too_small_is_refused_with_a_hint() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let mut config = TrainConfig::read(&path).unwrap();
        for n in [100, 300] {
            config.vocabulary = n;
            // Of the scores, some become tokens with their space and some do not.
            let texts = (0..50).map(|_| "Score: 5".to_owned());
            let error = train(&config, texts).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("hint: raise vocabulary"), "{error}");
        }
    }

    #[test]
    fn a_word_is_the_same_token_wherever_it_stands() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let config = TrainConfig::read(&path).unwrap();
        let texts = [
            "left kidney",
            " Claims left kidney; the image shows it: they agree.\n",
            "Score: 0 1 2 3 4 5",
        ];
        let texts = texts.iter().cycle().take(300).map(|t| (*t).to_owned());
        let trained = train(&config, texts).unwrap();
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
