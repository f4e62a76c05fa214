//! Trains the tokenizer of a panel without an initial model: byte-level BPE with one special token
//! for each fixed phrase of the prompt format.
//!
//! Special tokens for fixed phrases make prompts fit into the short context of a small model.
//! Quoted text is tokenized without special tokens, so a response cannot imitate the format.
//!
//! Text is lower-cased and prefixed with a space. A word then has the same tokens in every
//! position, so a model can copy a claim from a response into its analysis. Invisible characters have
//! no tokens, so padding with them cannot change a verdict.

use acem3_conclusion::MergePrompts;
use acem3_experts::prompt::{
    BranchPrompts, EvaluationFormat, FormatStep, JudgeInput, PromptPiece, Rubric,
};
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

/// Heading of the answer in a question-answering sequence.
pub(crate) const ANSWER_HEADING: &str = "\n### Answer:\n";

/// Pattern of a leading space before other whitespace.
const EXTRA_SPACE: &str = r"^ (?=\s)";

/// Patterns of characters that nobody sees, with what replaces them: characters without width, and
/// long white space at an end or inside of a text. Two line breaks stay, because prompts contain them.
const INVISIBLE: [(&str, &str); 3] =
    [(r"[\u200b-\u200f\u2060\ufeff\u00ad]", ""), (r"^\s{3,}|\s{3,}$", ""), (r"\s{3,}", " ")];

/// Trains the tokenizer on texts and returns its `tokenizer.json`. The vocabulary has at most the
/// configured size.
///
/// # Errors
/// If the vocabulary is too small for the special tokens or the scores.
pub(crate) fn train_tokenizer(
    config: &TrainConfig,
    texts: impl Iterator<Item = String> + Send,
) -> Result<String> {
    let line_splitter =
        Split::new(SplitPattern::String("\n".to_owned()), SplitDelimiterBehavior::Isolated, false)
            .map_err(|e| anyhow!("tokenizer: {e}"))?;
    let mut tokenizer = Tokenizer::new(BPE::default());
    // `TextTokenizer` removes a `Prepend` at the top level of the normalizers: in `SentencePiece`
    // tokenizers it adds a space that belongs only at the start of a prompt. Here every text begins
    // with a space, so the `Prepend` is in a nested sequence, which `TextTokenizer` keeps.
    let prepend_space = Normalizers::new(vec![
        Prepend::new(" ".to_owned()).into(),
        replace_pattern(EXTRA_SPACE, "")?.into(),
    ]);
    let mut normalizers = vec![Lowercase.into()];
    for (pattern, replacement) in INVISIBLE {
        normalizers.push(replace_pattern(pattern, replacement)?.into());
    }
    normalizers.push(prepend_space.into());
    let normalizers = Normalizers::new(normalizers);
    tokenizer.with_normalizer(Some(normalizers)).map_err(|e| anyhow!("tokenizer: {e}"))?;
    tokenizer.with_pre_tokenizer(Some(Sequence::new(vec![
        line_splitter.into(),
        ByteLevel::new(false, true, true).into(),
    ])));
    tokenizer.with_decoder(Some(ByteLevel::new(false, true, true)));
    let special_tokens: Vec<AddedToken> = fixed_phrases(config)?
        .into_iter()
        .map(|p| AddedToken::from(p, true).normalized(false))
        .collect();
    let mut trainer: TrainerWrapper = BpeTrainer::builder()
        .vocab_size(config.vocabulary)
        .min_frequency(1)
        .show_progress(false)
        .special_tokens(special_tokens)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
        .into();
    tokenizer.train(&mut trainer, texts).map_err(|e| anyhow!("tokenizer: {e}"))?;
    let size = tokenizer.get_vocab_size(true);
    if size > config.vocabulary {
        return Err(anyhow!(
            "the tokenizer has {size} tokens, expected at most {} (the value of vocabulary){}",
            config.vocabulary,
            vocabulary_hint(config)
        ));
    }
    // Fails if a score is not a single token.
    let conclusion =
        EvaluationFormat::for_conclusion().tokenize(&TextTokenizer::new(tokenizer.clone()));
    conclusion.with_context(|| {
        let n = config.vocabulary;
        format!(
            "vocabulary is {n}, which is too small to encode every score as one token{}",
            vocabulary_hint(config)
        )
    })?;
    let json = tokenizer.to_string(false);
    json.map_err(anyhow::Error::from_boxed)
}

fn replace_pattern(pattern: &str, replacement: &str) -> Result<Replace> {
    Replace::new(ReplacePattern::Regex(pattern.to_owned()), replacement)
        .map_err(|e| anyhow!("tokenizer: {e}"))
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
    let input = JudgeInput::pair(true, "q", ["a", "b"]);
    let without_image = JudgeInput { has_image: false, ..input.clone() };
    let evaluations = [(); 3].map(|()| vec![PromptPiece::Quoted(String::new())]);
    let mut phrases = vec![ANSWER_HEADING.to_owned()];
    // The vocabulary always contains the reward tokens, each as one special token. Stages of kind
    // `rtdpo` and `adto` use them, and evaluation stages if `rewarded` is set.
    phrases.extend(config.reward_tokens.texts());
    let mut add_phrases = |pieces: Vec<PromptPiece>| {
        phrases.extend(pieces.into_iter().filter_map(|piece| match piece {
            PromptPiece::Trusted(text) => Some(text),
            _ => None,
        }));
    };
    for input in [&input, &without_image] {
        for aspect in Aspect::ALL {
            add_phrases(branches.pieces(aspect, input)?);
        }
        add_phrases(merge.pieces(input, &evaluations)?);
    }
    let formats = Aspect::ALL.map(EvaluationFormat::for_aspect);
    for step in formats
        .iter()
        .chain([&EvaluationFormat::for_conclusion()])
        .flat_map(EvaluationFormat::steps)
    {
        if let FormatStep::Literal(text) = step {
            phrases.push(text.clone());
        }
    }
    // Line breaks stay ordinary text.
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
            // No score except 5 becomes one token together with the space before it.
            let texts = (0..50).map(|_| "Score: 5".to_owned());
            let error = train_tokenizer(&config, texts).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("hint: raise vocabulary"), "{error}");
        }
    }

    #[test]
    fn words_have_same_tokens_in_every_position() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/mini/train.toml");
        let mut config = TrainConfig::read(&path).unwrap();
        let tokens = "expression = { good = \"[Good EXP]\", bad = \"[Bad EXP]\" }";
        config.reward_tokens = toml::from_str(tokens).unwrap();
        let texts = [
            "left kidney",
            " The image shows left kidney; the response claims it: they agree.\n",
            "Score: 0 1 2 3 4 5",
        ];
        let texts = texts.iter().cycle().take(300).map(|t| (*t).to_owned());
        let json = train_tokenizer(&config, texts).unwrap();
        let tokenizer = TextTokenizer::parse(json.as_bytes()).unwrap();
        let claim = tokenizer.encode_quoted("Left Kidney").unwrap();
        assert_eq!(claim.len(), 2);
        for text in [" left kidney", "LEFT KIDNEY", "left kidney"] {
            assert_eq!(tokenizer.encode_quoted(text).unwrap(), claim, "{text}");
        }
        let analysis = tokenizer
            .encode_quoted(" The image shows left kidney; the response claims it")
            .unwrap();
        assert!(analysis.windows(2).any(|two| two == claim));
        assert_eq!(tokenizer.decode(&claim).unwrap(), " left kidney");
        let [line_break] = tokenizer.encode_quoted("\n").unwrap()[..] else {
            panic!("expected one token for a line break");
        };
        assert_eq!(tokenizer.encode_quoted("kidney\n").unwrap(), [claim[1], line_break]);
        for token in config.reward_tokens.texts() {
            assert_eq!(tokenizer.encode_trusted(&token).unwrap().len(), 1);
        }
        // Invisible characters have no tokens; one or two line breaks do.
        for blank in [" ", "\n", "\t", "\u{a0}", "\u{2003}", "  \n"].map(|unit| unit.repeat(40)) {
            for text in [format!("{blank}left kidney"), format!("left kidney{blank}")] {
                assert_eq!(tokenizer.encode_quoted(&text).unwrap(), claim, "{text:?}");
            }
            let inside = tokenizer.encode_quoted(&format!("left{blank}kidney")).unwrap();
            assert_eq!(inside, claim, "{blank:?}");
        }
        assert_eq!(tokenizer.encode_quoted("left\u{200b} kid\u{ad}ney").unwrap(), claim);
        assert_eq!(tokenizer.encode_quoted("\n\n").unwrap(), [line_break; 2]);
    }
}
