//! Conversion of a `SentencePiece` model to a tokenizer, as transformers does for Llama
//! (`LlamaConverter` and `SpmConverter` in its `convert_slow_tokenizer.py`, with the options that match
//! `SentencePiece` exactly).

mod charsmap;
mod proto;

use std::collections::HashMap;

use anyhow::{Context, Result, anyhow, bail};
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as Decoders;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{self, Prepend, Replace, Sequence};
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, Tokenizer};

/// The character that `SentencePiece` writes for a space.
const SPACE: &str = "\u{2581}";
/// Piece types.
const UNKNOWN: u64 = 2;
pub(super) const CONTROL: u64 = 3;
pub(super) const USER: u64 = 4;
const ORDINARY: u64 = 1;
/// Model types: unigram, and byte-pair encoding.
const MODEL_UNIGRAM: u64 = 1;
const MODEL_BPE: u64 = 2;
/// Score of a piece that must not be used: lower than that of any text of known characters.
const UNUSED_SCORE: f64 = -1e6;

/// Representation of the space between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpaceStyle {
    /// As the character U+2581 at the beginning of a word.
    Letters,
    /// As a plain space, or at the end of a word.
    Otherwise,
}

/// A piece and its type.
type VocabularyPiece = (String, u64);

/// The fields of a model file that affect tokenization.
pub(super) struct SentencePieceModel {
    /// Pieces and their types, by id.
    pub pieces: Vec<VocabularyPiece>,
    /// Score of each piece, higher is better; if empty, earlier pieces are better.
    pub scores: Vec<f64>,
    /// Model type.
    pub kind: u64,
    /// Whether unknown characters are encoded as bytes.
    pub byte_fallback: bool,
    /// Id of the unknown piece.
    pub unknown: usize,
    /// Id of the beginning-of-sequence piece.
    pub start: usize,
    /// Whether a space is inserted before every text.
    pub prefix: bool,
    /// Normalization table (`precompiled_charsmap`); empty for none.
    charsmap: Vec<u8>,
    /// Whether spaces are trimmed at the ends and collapsed between words.
    collapses: bool,
    /// Representation of the space between words.
    spaces: SpaceStyle,
}

impl Default for SentencePieceModel {
    /// Returns a model without pieces and with the default settings of the file format.
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            scores: Vec::new(),
            kind: 1,
            byte_fallback: false,
            unknown: 0,
            start: 1,
            prefix: true,
            charsmap: Vec::new(),
            collapses: true,
            spaces: SpaceStyle::Letters,
        }
    }
}

/// Converts a model file. `start`: whether texts begin with the beginning-of-sequence token.
pub(super) fn convert(bytes: &[u8], start: bool) -> Result<Tokenizer> {
    let model = SentencePieceModel::parse(bytes).context("not a SentencePiece model")?;
    let other = "hint: use a checkpoint with a tokenizer.json";
    if !matches!(model.kind, MODEL_UNIGRAM | MODEL_BPE) {
        bail!(
            "model_type is {}, expected unigram (1) or byte-pair encoding (2)\n{other}",
            model.kind
        );
    }
    if model.spaces != SpaceStyle::Letters {
        bail!("its representation of spaces is not supported\n{other}");
    }
    model.tokenizer(start)
}

impl SentencePieceModel {
    /// Creates the model of a GGUF file (llama.cpp's `llm_tokenizer_spm`): byte-pair encoding, without
    /// collapsing spaces.
    pub(super) fn of_gguf(pieces: Vec<(String, u64)>, scores: Vec<f64>) -> Self {
        Self {
            pieces,
            scores,
            kind: MODEL_BPE,
            byte_fallback: true,
            collapses: false,
            ..Self::default()
        }
    }

    /// Builds the tokenizer. `start`: whether texts begin with the beginning-of-sequence token.
    pub(super) fn tokenizer(&self, start: bool) -> Result<Tokenizer> {
        let mut tokenizer = match self.kind {
            MODEL_UNIGRAM => Tokenizer::new(self.build_unigram()?),
            _ => Tokenizer::new(self.build_bpe()?),
        };
        add_normalizer_and_decoder(&mut tokenizer, self)?;
        if let (true, Some((piece, CONTROL))) = (start, self.pieces.get(self.start)) {
            let id = u32::try_from(self.start)?;
            let template = TemplateProcessing::builder()
                .try_single(format!("{piece} $A"))
                .map_err(|error| anyhow!("{error}"))?
                .special_tokens(vec![(piece.clone(), id)])
                .build()?;
            tokenizer.with_post_processor(Some(template));
        }
        Ok(tokenizer)
    }

    fn build_bpe(&self) -> Result<BPE> {
        let merges = merges(&self.pieces, &self.scores);
        let unknown = self.pieces.get(self.unknown);
        let (unknown, _) = unknown.context("no unknown piece")?;
        let ids = (0u32..).zip(&self.pieces);
        let vocabulary: Vocab = ids.map(|(id, (piece, _))| (piece.clone(), id)).collect();
        let bpe = BPE::builder()
            .vocab_and_merges(vocabulary, merges)
            .unk_token(unknown.clone())
            .fuse_unk(true)
            .byte_fallback(self.byte_fallback)
            .build();
        bpe.map_err(|error| anyhow!("{error}"))
    }

    /// Builds the unigram model. Pieces without text (control, byte, unused) stay in the vocabulary with a
    /// score that rules them out, unless a character of their name is unknown.
    fn build_unigram(&self) -> Result<Unigram> {
        let scored = self.pieces.iter().zip(&self.scores);
        let scored = scored.map(|((piece, kind), score)| match *kind {
            ORDINARY | USER => (piece.clone(), *score),
            _ => (piece.clone(), UNUSED_SCORE),
        });
        let unigram = Unigram::from(scored.collect(), Some(self.unknown), self.byte_fallback);
        unigram.map_err(|error| anyhow!("{error}"))
    }
}

/// Adds normalizer, decoder and special tokens.
fn add_normalizer_and_decoder(tokenizer: &mut Tokenizer, model: &SentencePieceModel) -> Result<()> {
    let wrong = |error: tokenizers::Error| anyhow!("{error}");
    let mut steps = Vec::new();
    if !model.charsmap.is_empty() {
        let map = charsmap::read(&model.charsmap).context("precompiled_charsmap")?;
        steps.push(map.into());
    }
    if model.collapses {
        let runs = ReplacePattern::Regex(" {2,}".to_owned());
        let ends = normalizers::Strip::new(true, true);
        steps.push(Replace::new(runs, " ").map_err(wrong)?.into());
        steps.push(ends.into());
    }
    if model.prefix {
        steps.push(Prepend::new(SPACE.to_owned()).into());
    }
    steps.push(Replace::new(" ", SPACE).map_err(wrong)?.into());
    tokenizer
        .with_normalizer(Some(Sequence::new(steps)))
        .map_err(wrong)?;
    let mut decoders = vec![
        Replace::new(SPACE, " ").map_err(wrong)?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if model.prefix {
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    tokenizer.with_decoder(Some(Decoders::new(decoders)));
    for (piece, kind) in &model.pieces {
        let token = AddedToken::from(piece.clone(), *kind != USER).normalized(false);
        match *kind {
            UNKNOWN | CONTROL => tokenizer.add_special_tokens([token]).map_err(wrong)?,
            USER => tokenizer.add_tokens([token]).map_err(wrong)?,
            _ => 0,
        };
    }
    Ok(())
}

/// Returns all pairs of pieces that form a piece, better pieces first, then earlier ones
/// (`generate_merges` in transformers' `tokenization_utils_base.py`).
fn merges(pieces: &[(String, u64)], scores: &[f64]) -> Vec<(String, String)> {
    let score = |place: &usize| scores.get(*place).copied().unwrap_or(0.0);
    let mut best: Vec<usize> = (0..pieces.len()).collect();
    best.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let mut ranks = vec![0; pieces.len()];
    for (rank, place) in best.into_iter().enumerate() {
        if let Some(slot) = ranks.get_mut(place) {
            *slot = rank;
        }
    }
    let ids: HashMap<&str, usize> = pieces.iter().map(|(p, _)| p.as_str()).zip(0..).collect();
    let mut merges = Vec::new();
    for (whole, (piece, _)) in ranks.into_iter().zip(pieces) {
        let cuts = piece.char_indices().skip(1);
        let mut pairs: Vec<(usize, usize, &str, &str)> = cuts
            .filter_map(|(cut, _)| {
                let (left, right) = piece.split_at_checked(cut)?;
                Some((*ids.get(left)?, *ids.get(right)?, left, right))
            })
            .collect();
        pairs.sort_unstable();
        merges.extend(pairs.into_iter().map(|(_, _, left, right)| {
            let lengths = (left.chars().count(), right.chars().count());
            ((whole, lengths), (left.to_owned(), right.to_owned()))
        }));
    }
    merges.sort_by_key(|(rank, _)| *rank);
    merges.into_iter().map(|(_, pair)| pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_model_is_rejected() {
        for bad in [
            &b""[..],
            b"\x0a\xff",
            b"\x0a\x02\x0a\x05",
            b"\x0f",
            b"not a model",
        ] {
            assert!(convert(bad, true).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn merges_are_sorted_by_score_and_id() {
        let pieces = ["a", "b", "ab", "aba", "ba"].map(|p| (p.to_owned(), 1));
        let joined = |scores: &[f64]| -> Vec<String> {
            let merges = merges(&pieces, scores);
            merges.iter().map(|(l, r)| format!("{l}+{r}")).collect()
        };
        assert_eq!(joined(&[]), ["a+b", "a+ba", "ab+a", "b+a"]);
        // A better score precedes a lower id.
        let scores = [0.0, 0.0, -3.0, -2.0, -1.0];
        assert_eq!(joined(&scores), ["b+a", "a+ba", "ab+a", "a+b"]);
    }
}
