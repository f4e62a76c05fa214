//! Conversion of a `SentencePiece` model to a tokenizer, as transformers does for Llama
//! (`LlamaConverter` and `SpmConverter` in its `convert_slow_tokenizer.py`, with the options that
//! match `SentencePiece` exactly).

mod proto;

use std::collections::HashMap;

use acem3_experts::charsmap;
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
/// Piece types (`Type` in `sentencepiece_model.proto`).
const UNKNOWN_PIECE: u64 = 2;
pub(super) const CONTROL_PIECE: u64 = 3;
pub(super) const USER_PIECE: u64 = 4;
const NORMAL_PIECE: u64 = 1;
/// Model types: unigram, and byte-pair encoding.
const MODEL_UNIGRAM: u64 = 1;
const MODEL_BPE: u64 = 2;
/// Score of a piece that must not be used: lower than that of any text of known characters.
const UNUSED_SCORE: f64 = -1e6;

/// Maximum number of pairs of pieces that form a piece, per piece. Known vocabularies have two to
/// three. Each pair has two texts, so pieces that are parts of each other would take much memory.
const MAX_MERGES_PER_PIECE: usize = 16;

/// Representation of the space between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpaceStyle {
    /// As the character U+2581 at the beginning of a word.
    Prefix,
    /// As a plain space, or at the end of a word.
    Other,
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
    pub model_type: u64,
    /// True if unknown characters are encoded as bytes.
    pub byte_fallback: bool,
    /// Id of the unknown piece.
    pub unk_id: usize,
    /// Id of the beginning-of-sequence piece.
    pub bos_id: usize,
    /// True if a space is inserted before every text.
    pub adds_space_prefix: bool,
    /// Normalization table (`precompiled_charsmap`); empty for none.
    charsmap: Vec<u8>,
    /// True if spaces are trimmed at the ends and collapsed between words.
    collapses_spaces: bool,
    /// Representation of the space between words.
    space_style: SpaceStyle,
}

impl Default for SentencePieceModel {
    /// Returns a model without pieces and with the default settings of the file format.
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            scores: Vec::new(),
            model_type: 1,
            byte_fallback: false,
            unk_id: 0,
            bos_id: 1,
            adds_space_prefix: true,
            charsmap: Vec::new(),
            collapses_spaces: true,
            space_style: SpaceStyle::Prefix,
        }
    }
}

/// Converts a model file. `adds_bos`: true if texts begin with the beginning-of-sequence token.
pub(super) fn convert(bytes: &[u8], adds_bos: bool) -> Result<Tokenizer> {
    let model = SentencePieceModel::parse(bytes).context("not a SentencePiece model")?;
    let hint = "hint: use a checkpoint with a tokenizer.json";
    if !matches!(model.model_type, MODEL_UNIGRAM | MODEL_BPE) {
        bail!(
            "model_type is {}, expected unigram (1) or byte-pair encoding (2)\n{hint}",
            model.model_type
        );
    }
    if model.space_style != SpaceStyle::Prefix {
        bail!("the representation of spaces is not supported\n{hint}");
    }
    model.to_tokenizer(adds_bos)
}

impl SentencePieceModel {
    /// Creates the model of a GGUF file (llama.cpp's `llm_tokenizer_spm`): byte-pair encoding,
    /// without collapsing spaces.
    pub(super) fn from_gguf(pieces: Vec<(String, u64)>, scores: Vec<f64>) -> Self {
        Self {
            pieces,
            scores,
            model_type: MODEL_BPE,
            byte_fallback: true,
            collapses_spaces: false,
            ..Self::default()
        }
    }

    /// Builds the tokenizer. `adds_bos`: true if texts begin with the beginning-of-sequence token.
    pub(super) fn to_tokenizer(&self, adds_bos: bool) -> Result<Tokenizer> {
        let mut tokenizer = match self.model_type {
            MODEL_UNIGRAM => Tokenizer::new(self.build_unigram()?),
            _ => Tokenizer::new(self.build_bpe()?),
        };
        add_normalizer_and_decoder(&mut tokenizer, self)?;
        if let (true, Some((piece, CONTROL_PIECE))) = (adds_bos, self.pieces.get(self.bos_id)) {
            let id = u32::try_from(self.bos_id)?;
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
        let merges = generate_merges(&self.pieces, &self.scores)?;
        let unknown = self.pieces.get(self.unk_id);
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

    /// Builds the unigram model. Pieces without text (control, byte, unused) stay in the vocabulary
    /// with a score that rules them out, unless a character of their name is unknown.
    fn build_unigram(&self) -> Result<Unigram> {
        let scored = self.pieces.iter().zip(&self.scores);
        let scored = scored.map(|((piece, kind), score)| match *kind {
            NORMAL_PIECE | USER_PIECE => (piece.clone(), *score),
            _ => (piece.clone(), UNUSED_SCORE),
        });
        let unigram = Unigram::from(scored.collect(), Some(self.unk_id), self.byte_fallback);
        unigram.map_err(|error| anyhow!("{error}"))
    }
}

/// Adds normalizer, decoder and special tokens.
fn add_normalizer_and_decoder(tokenizer: &mut Tokenizer, model: &SentencePieceModel) -> Result<()> {
    let to_error = |error: tokenizers::Error| anyhow!("{error}");
    let mut steps = Vec::new();
    if !model.charsmap.is_empty() {
        let map = charsmap::parse(&model.charsmap)?;
        steps.push(map.into());
    }
    if model.collapses_spaces {
        let runs = ReplacePattern::Regex(" {2,}".to_owned());
        let ends = normalizers::Strip::new(true, true);
        steps.push(Replace::new(runs, " ").map_err(to_error)?.into());
        steps.push(ends.into());
    }
    if model.adds_space_prefix {
        steps.push(Prepend::new(SPACE.to_owned()).into());
    }
    steps.push(Replace::new(" ", SPACE).map_err(to_error)?.into());
    tokenizer.with_normalizer(Some(Sequence::new(steps))).map_err(to_error)?;
    let mut decoders = vec![
        Replace::new(SPACE, " ").map_err(to_error)?.into(),
        ByteFallback::new().into(),
        Fuse::new().into(),
    ];
    if model.adds_space_prefix {
        decoders.push(Strip::new(' ', 1, 0).into());
    }
    tokenizer.with_decoder(Some(Decoders::new(decoders)));
    for (piece, kind) in &model.pieces {
        let token = AddedToken::from(piece.clone(), *kind != USER_PIECE).normalized(false);
        match *kind {
            UNKNOWN_PIECE | CONTROL_PIECE => {
                tokenizer.add_special_tokens([token]).map_err(to_error)?
            }
            USER_PIECE => tokenizer.add_tokens([token]).map_err(to_error)?,
            _ => 0,
        };
    }
    Ok(())
}

/// Returns all pairs of pieces that form a piece, better pieces first, then earlier ones
/// (`generate_merges` in transformers' `tokenization_utils_base.py`).
fn generate_merges(pieces: &[(String, u64)], scores: &[f64]) -> Result<Vec<(String, String)>> {
    let score = |id: &usize| scores.get(*id).copied().unwrap_or(0.0);
    let mut ids_by_score: Vec<usize> = (0..pieces.len()).collect();
    ids_by_score.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let mut ranks = vec![0; pieces.len()];
    for (rank, id) in ids_by_score.into_iter().enumerate() {
        if let Some(slot) = ranks.get_mut(id) {
            *slot = rank;
        }
    }
    let ids: HashMap<&str, usize> = pieces.iter().map(|(p, _)| p.as_str()).zip(0..).collect();
    let mut merges = Vec::new();
    for (rank_of_piece, (piece, _)) in ranks.into_iter().zip(pieces) {
        let cuts = piece.char_indices().skip(1);
        let mut pairs: Vec<(usize, usize, &str, &str)> = cuts
            .filter_map(|(cut, _)| {
                let (left, right) = piece.split_at_checked(cut)?;
                Some((*ids.get(left)?, *ids.get(right)?, left, right))
            })
            .collect();
        pairs.sort_unstable();
        if merges.len() + pairs.len() > pieces.len().saturating_mul(MAX_MERGES_PER_PIECE) {
            bail!(
                "the {} pieces form more than {MAX_MERGES_PER_PIECE} pairs per piece\n\
                 hint: the tokenizer is damaged; download it again",
                pieces.len()
            );
        }
        merges.extend(pairs.into_iter().map(|(_, _, left, right)| {
            let lengths = (left.chars().count(), right.chars().count());
            ((rank_of_piece, lengths), (left.to_owned(), right.to_owned()))
        }));
    }
    merges.sort_by_key(|(rank, _)| *rank);
    Ok(merges.into_iter().map(|(_, pair)| pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_model_is_rejected() {
        for malformed in [&b""[..], b"\x0a\xff", b"\x0a\x02\x0a\x05", b"\x0f", b"not a model"] {
            assert!(convert(malformed, true).is_err(), "{malformed:?}");
        }
    }

    #[test]
    fn merges_are_sorted_by_score_and_id() {
        let pieces = ["a", "b", "ab", "aba", "ba"].map(|p| (p.to_owned(), 1));
        let joined_pairs = |scores: &[f64]| -> Vec<String> {
            let merges = generate_merges(&pieces, scores).unwrap();
            merges.iter().map(|(l, r)| format!("{l}+{r}")).collect()
        };
        assert_eq!(joined_pairs(&[]), ["a+b", "a+ba", "ab+a", "b+a"]);
        // A better score precedes a lower id.
        let scores = [0.0, 0.0, -3.0, -2.0, -1.0];
        assert_eq!(joined_pairs(&scores), ["b+a", "a+ba", "ab+a", "a+b"]);
    }

    #[test]
    fn pairs_of_repetitive_pieces_are_limited() {
        let repeated = |n: usize| -> Vec<(String, u64)> {
            (1..=n).map(|length| ("a".repeat(length), 1)).collect()
        };
        assert_eq!(generate_merges(&repeated(30), &[]).unwrap().len(), 30 * 29 / 2);
        let error = generate_merges(&repeated(40), &[]).unwrap_err().to_string();
        assert!(error.contains("more than 16 pairs per piece"), "{error}");
    }
}
