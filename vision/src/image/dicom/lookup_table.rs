//! Lookup tables of modality transforms, windows and palettes.

use dicom_object::mem::InMemElement;
use dicom_object::{InMemDicomObject, Tag};

use super::super::error::DecodeError;
use super::error::damaged;

/// Lookup table (PS3.3 C.11.1.1.1). Inputs outside of its range are clamped to the first or last
/// entry.
#[derive(Clone, Debug)]
pub(super) struct LookupTable {
    /// Input of the first entry.
    first_input: f64,
    /// Bits per entry, 1 to 16.
    bits: u32,
    values: Vec<f64>,
}

impl LookupTable {
    /// Reads a table from the descriptor and data elements of an object or a sequence item.
    pub(super) fn read(
        item: &InMemDicomObject,
        [descriptor, data]: [Tag; 2],
    ) -> Result<Self, DecodeError> {
        let malformed = || damaged("malformed lookup table");
        let numbers =
            |tag: Tag| item.get(tag).and_then(|e: &InMemElement| e.to_multi_int::<i64>().ok());
        let descriptor = numbers(descriptor).ok_or_else(malformed)?;
        let [entries, first, bits] = descriptor.as_slice() else {
            return Err(malformed());
        };
        // The number of entries has 16 bits; 0 stands for 2¹⁶ entries.
        let entries = if *entries == 0 { 1 << 16 } else { *entries & 0xffff } as usize;
        let bits = u32::try_from(*bits)
            .ok()
            .filter(|bits| (1..=16).contains(bits))
            .ok_or_else(malformed)?;
        let mut data = numbers(data).ok_or_else(malformed)?;
        if data.len() * 2 == entries || data.len() * 2 == entries + 1 {
            // Each word contains two entries of 8 bits.
            data = data.iter().flat_map(|v| [v & 0xff, (v >> 8) & 0xff]).collect();
        }
        let mask = (1_i64 << bits) - 1;
        let values: Vec<f64> = data.iter().take(entries).map(|v| (v & mask) as f64).collect();
        if values.len() < entries {
            return Err(malformed());
        }
        Ok(Self { first_input: *first as f64, bits, values })
    }

    /// Returns the entry for an input.
    pub(super) fn look_up(&self, value: f64) -> f64 {
        let last = self.values.len().saturating_sub(1);
        let index = (value - self.first_input).clamp(0.0, last as f64) as usize;
        self.values.get(index).copied().unwrap_or_default()
    }

    /// Returns the entry for an input, scaled to 0 to 1.
    pub(super) fn look_up_unit(&self, value: f64) -> f64 {
        self.look_up(value) / f64::from((1_u32 << self.bits) - 1)
    }

    /// Returns the upper eight bits of the entry for an input.
    pub(super) fn look_up_byte(&self, value: f64) -> u8 {
        (self.look_up(value) as u16 >> self.bits.saturating_sub(8)) as u8
    }
}
