//! Parser of the protocol buffer of a model file (`sentencepiece_model.proto`); most fields are
//! skipped.

use anyhow::{Context, Result, bail};

use super::{SentencePieceModel, SpaceStyle, VocabularyPiece};

/// Longest piece in bytes. Trained `SentencePiece` pieces have at most 16 characters by default.
const MAX_PIECE_LEN: usize = 4096;

impl SentencePieceModel {
    /// Parses a model file.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let mut model = Self::default();
        for field in ProtoMessage(bytes) {
            match field? {
                (1, ProtoValue::Bytes(bytes)) => {
                    let (piece, score) = parse_piece(bytes)?;
                    model.pieces.push(piece);
                    model.scores.push(f64::from(score));
                }
                (2, ProtoValue::Bytes(trainer)) => model.read_trainer_spec(trainer)?,
                (3, ProtoValue::Bytes(normalizer)) => model.read_normalizer_spec(normalizer)?,
                _ => {}
            }
        }
        if model.pieces.is_empty() {
            bail!("no pieces");
        }
        Ok(model)
    }

    fn read_trainer_spec(&mut self, bytes: &[u8]) -> Result<()> {
        for field in ProtoMessage(bytes) {
            match field? {
                (3, ProtoValue::Number(kind)) => self.model_type = kind,
                (24, ProtoValue::Number(1)) => self.space_style = SpaceStyle::Other,
                (35, ProtoValue::Number(flag)) => self.byte_fallback = flag != 0,
                (40, ProtoValue::Number(id)) => self.unk_id = usize::try_from(id)?,
                // A model without such a token stores -1.
                (41, ProtoValue::Number(id)) => {
                    self.bos_id = usize::try_from(id).unwrap_or(usize::MAX);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_normalizer_spec(&mut self, bytes: &[u8]) -> Result<()> {
        for field in ProtoMessage(bytes) {
            match field? {
                (2, ProtoValue::Bytes(charsmap)) => charsmap.clone_into(&mut self.charsmap),
                (3, ProtoValue::Number(flag)) => self.adds_space_prefix = flag != 0,
                (4, ProtoValue::Number(flag)) => self.collapses_spaces = flag != 0,
                (5, ProtoValue::Number(0)) => self.space_style = SpaceStyle::Other,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Parses a piece with its type, and its score.
fn parse_piece(bytes: &[u8]) -> Result<(VocabularyPiece, f32)> {
    let (mut piece, mut score) = ((String::new(), 1), 0.0);
    for field in ProtoMessage(bytes) {
        match field? {
            (1, ProtoValue::Bytes(text)) if text.len() > MAX_PIECE_LEN => {
                bail!("piece of {} bytes, expected at most {MAX_PIECE_LEN}", text.len())
            }
            (1, ProtoValue::Bytes(text)) => std::str::from_utf8(text)?.clone_into(&mut piece.0),
            (2, ProtoValue::Real(value)) => score = value,
            (3, ProtoValue::Number(kind)) => piece.1 = kind,
            _ => {}
        }
    }
    if !score.is_finite() {
        bail!("score of a piece is not a finite number");
    }
    Ok((piece, score))
}

/// Iterator over the fields of a message.
struct ProtoMessage<'a>(&'a [u8]);

enum ProtoValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Real(f32),
    Other,
}

impl<'a> ProtoMessage<'a> {
    fn read_varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for i in 0..10 {
            let (byte, rest) = self.0.split_first().context("unexpected end of file")?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        bail!("malformed number, longer than 10 bytes")
    }

    fn read_bytes(&mut self, n: u64) -> Result<&'a [u8]> {
        let split = self.0.split_at_checked(usize::try_from(n)?);
        let (bytes, rest) = split.context("unexpected end of file")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn read_field(&mut self) -> Result<(u64, ProtoValue<'a>)> {
        let tag = self.read_varint()?;
        let value = match tag & 7 {
            0 => ProtoValue::Number(self.read_varint()?),
            1 => {
                self.read_bytes(8)?;
                ProtoValue::Other
            }
            2 => {
                let n = self.read_varint()?;
                ProtoValue::Bytes(self.read_bytes(n)?)
            }
            5 => ProtoValue::Real(f32::from_le_bytes(self.read_bytes(4)?.try_into()?)),
            kind => bail!("unknown wire type {kind}"),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for ProtoMessage<'a> {
    type Item = Result<(u64, ProtoValue<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read_field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}
