//! Lookup tables of modality transforms, windows and palettes.

use dicom_object::mem::InMemElement;
use dicom_object::{InMemDicomObject, Tag};

use super::super::error::DecodeError;
use super::error::damaged;

/// A table of values (PS3.3 C.11.1.1.1): below and above it, its ends count.
#[derive(Clone, Debug)]
pub(super) struct Table {
    first: f64,
    bits: u32,
    values: Vec<f64>,
}

impl Table {
    /// The table of an object's (or an item's) descriptor and data.
    pub(super) fn read(
        item: &InMemDicomObject,
        [descriptor, data]: [Tag; 2],
    ) -> Result<Self, DecodeError> {
        let broken = || damaged("a lookup table of it cannot be read");
        let numbers = |tag: Tag| {
            item.get(tag)
                .and_then(|e: &InMemElement| e.to_multi_int::<i64>().ok())
        };
        let descriptor = numbers(descriptor).ok_or_else(broken)?;
        let [entries, first, bits] = descriptor.as_slice() else {
            return Err(broken());
        };
        // The number of entries has 16 bits, and 2¹⁶ of them are written as none.
        let entries = if *entries == 0 {
            1 << 16
        } else {
            *entries & 0xffff
        } as usize;
        let bits = u32::try_from(*bits)
            .ok()
            .filter(|bits| (1..=16).contains(bits))
            .ok_or_else(broken)?;
        let mut data = numbers(data).ok_or_else(broken)?;
        if data.len() * 2 == entries || data.len() * 2 == entries + 1 {
            // Two entries of 8 bits in each word.
            data = data
                .iter()
                .flat_map(|v| [v & 0xff, (v >> 8) & 0xff])
                .collect();
        }
        let mask = (1_i64 << bits) - 1;
        let values: Vec<f64> = data
            .iter()
            .take(entries)
            .map(|v| (v & mask) as f64)
            .collect();
        if values.len() < entries {
            return Err(broken());
        }
        Ok(Self {
            first: *first as f64,
            bits,
            values,
        })
    }

    /// What the table has for a value.
    pub(super) fn apply(&self, value: f64) -> f64 {
        let last = self.values.len().saturating_sub(1);
        let at = (value - self.first).clamp(0.0, last as f64) as usize;
        self.values.get(at).copied().unwrap_or_default()
    }

    /// The same from 0 to 1.
    pub(super) fn unit(&self, value: f64) -> f64 {
        self.apply(value) / f64::from((1_u32 << self.bits) - 1)
    }

    /// The same as a byte, the lower bits cut off.
    pub(super) fn byte(&self, value: f64) -> u8 {
        (self.apply(value) as u16 >> self.bits.saturating_sub(8)) as u8
    }
}
