//! A `SentencePiece` model as a tokenizer, converted as transformers does for Llama
//! (`LlamaConverter` and `SpmConverter` in its `convert_slow_tokenizer.py`, in the form that equals
//! `SentencePiece`).

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

/// How `SentencePiece` writes a space.
const SPACE: &str = "\u{2581}";
/// Kinds of pieces.
const UNKNOWN: u64 = 2;
pub(super) const CONTROL: u64 = 3;
pub(super) const USER: u64 = 4;
const ORDINARY: u64 = 1;
/// The kind of model that takes the likeliest pieces, and the one that joins pairs.
const LIKELIEST: u64 = 1;
const PAIRS: u64 = 2;
/// The score of a piece that a text should not become: less than that of any text whose letters are known.
const NEVER: f64 = -1e6;

/// How a model writes the space between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpaceStyle {
    /// As a letter at the beginning of a word.
    Letters,
    /// As it is, or at the end of a word.
    Otherwise,
}

/// A piece and its kind.
type VocabularyPiece = (String, u64);

/// What counts in a model's file.
pub(super) struct SentencePieceModel {
    /// Its pieces and their kinds, by their ids.
    pub pieces: Vec<VocabularyPiece>,
    /// The score of each piece, the best being taken or joined first; where it is empty, the first is best.
    pub scores: Vec<f64>,
    /// The kind of model.
    pub kind: u64,
    /// Whether letters that it does not know are spelled in bytes.
    pub byte_fallback: bool,
    /// The id of the piece for what it cannot spell.
    pub unknown: usize,
    /// The id of the piece that texts begin with.
    pub start: usize,
    /// Whether texts are read as if a space stood before them.
    pub prefix: bool,
    /// The rules by which it changes letters before all else; empty for none.
    charsmap: Vec<u8>,
    /// Whether it drops spaces at the ends and all but one between words.
    collapses: bool,
    /// How it writes the space between words.
    spaces: SpaceStyle,
}

impl Default for SentencePieceModel {
    /// No pieces; all else as in a file that does not say it.
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

/// The tokenizer of a model's file. `start`: whether texts begin with the beginning-of-sequence token.
pub(super) fn convert(bytes: &[u8], start: bool) -> Result<Tokenizer> {
    let model = SentencePieceModel::parse(bytes).context("it is not a SentencePiece model")?;
    let other = "hint: use a checkpoint that brings tokenizer.json";
    if !matches!(model.kind, LIKELIEST | PAIRS) {
        bail!(
            "its model_type is {}, expected unigram (1) or byte-pair encoding (2)\n{other}",
            model.kind
        );
    }
    if model.spaces != SpaceStyle::Letters {
        bail!("it writes spaces in a way that is not supported\n{other}");
    }
    model.tokenizer(start)
}

impl SentencePieceModel {
    /// What a GGUF file says of such a model (llama.cpp's `llm_tokenizer_spm`): pairs, and spaces
    /// left as they are.
    pub(super) fn of_gguf(pieces: Vec<(String, u64)>, scores: Vec<f64>) -> Self {
        Self {
            pieces,
            scores,
            kind: PAIRS,
            byte_fallback: true,
            collapses: false,
            ..Self::default()
        }
    }

    /// The tokenizer. `start`: whether texts begin with the beginning-of-sequence token.
    pub(super) fn tokenizer(&self, start: bool) -> Result<Tokenizer> {
        let mut tokenizer = match self.kind {
            LIKELIEST => Tokenizer::new(self.likeliest()?),
            _ => Tokenizer::new(self.pairs()?),
        };
        dress(&mut tokenizer, self)?;
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

    fn pairs(&self) -> Result<BPE> {
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

    /// Pieces that are no text of their own (control, bytes, unused) are in the vocabulary, and taken only where a
    /// letter of their names is unknown.
    fn likeliest(&self) -> Result<Unigram> {
        let scored = self.pieces.iter().zip(&self.scores);
        let scored = scored.map(|((piece, kind), score)| match *kind {
            ORDINARY | USER => (piece.clone(), *score),
            _ => (piece.clone(), NEVER),
        });
        let unigram = Unigram::from(scored.collect(), Some(self.unknown), self.byte_fallback);
        unigram.map_err(|error| anyhow!("{error}"))
    }
}

/// Spaces in and out, and the control tokens.
fn dress(tokenizer: &mut Tokenizer, model: &SentencePieceModel) -> Result<()> {
    let wrong = |error: tokenizers::Error| anyhow!("{error}");
    let mut steps = Vec::new();
    if !model.charsmap.is_empty() {
        let map = charsmap::read(&model.charsmap).context("its table of letters")?;
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

/// All pairs of pieces that make a piece, those of better pieces first, else of earlier ones
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
    fn what_is_no_model_is_an_error() {
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
    fn pairs_of_earlier_pieces_come_first() {
        let pieces = ["a", "b", "ab", "aba", "ba"].map(|p| (p.to_owned(), 1));
        let joined = |scores: &[f64]| -> Vec<String> {
            let merges = merges(&pieces, scores);
            merges.iter().map(|(l, r)| format!("{l}+{r}")).collect()
        };
        assert_eq!(joined(&[]), ["a+b", "a+ba", "ab+a", "b+a"]);
        // Better ones before earlier ones.
        let scores = [0.0, 0.0, -3.0, -2.0, -1.0];
        assert_eq!(joined(&scores), ["b+a", "a+ba", "ab+a", "a+b"]);
    }
}
