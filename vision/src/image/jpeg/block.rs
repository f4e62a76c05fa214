//! Reads the codes of one block of a scan without computing its coefficients (ITU-T T.81, F.2.2 and
//! G.1.2).

use super::bit_reader::{BitReader, CodeError, HuffmanTable};

/// Position in the data of a scan, up to the next restart marker.
pub(super) struct ScanPosition<'a> {
    pub(super) bits: BitReader<'a>,
    /// Number of following blocks without further new coefficients.
    pub(super) end_of_band_run: u32,
}

/// How a scan codes the blocks of a component.
#[derive(Clone, Copy)]
pub(super) struct BlockCoding<'a> {
    pub(super) dc_table: Option<&'a HuffmanTable>,
    pub(super) ac_table: Option<&'a HuffmanTable>,
    /// First and last coefficient, in zigzag order.
    pub(super) band: [u8; 2],
    pub(super) is_progressive: bool,
    /// True if earlier scans coded the higher bits of these coefficients.
    pub(super) is_refinement: bool,
}

impl BlockCoding<'_> {
    /// Reads a block. Bit `k` of `nonzero` is set if coefficient `k` is not zero so far.
    pub(super) fn read(
        &self,
        position: &mut ScanPosition<'_>,
        nonzero: &mut u64,
    ) -> Result<(), CodeError> {
        let mut first = self.band[0];
        if first == 0 {
            if self.is_refinement {
                position.bits.take(1)?;
            } else {
                let table = self.dc_table.ok_or(CodeError::InvalidCode)?;
                let length = position.bits.symbol(table)?;
                position.bits.take(u32::from(length).min(16))?;
            }
            first = 1;
        }
        if first > self.band[1] || (self.is_progressive && self.band[0] == 0) {
            Ok(())
        } else if self.is_refinement {
            self.refine_band(position, nonzero)
        } else {
            self.read_band(first, position, nonzero)
        }
    }

    /// Reads the AC coefficients of the first scan that contains them.
    fn read_band(
        &self,
        first: u8,
        position: &mut ScanPosition<'_>,
        nonzero: &mut u64,
    ) -> Result<(), CodeError> {
        if position.end_of_band_run > 0 {
            position.end_of_band_run -= 1;
            return Ok(());
        }
        let table = self.ac_table.ok_or(CodeError::InvalidCode)?;
        let mut k = u32::from(first);
        while k <= u32::from(self.band[1]) {
            let symbol = position.bits.symbol(table)?;
            let (run, length) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if length > 0 {
                k += run;
                position.bits.take(length)?;
                *nonzero |= 1_u64.checked_shl(k).unwrap_or(0);
                k += 1;
            } else if run == 15 {
                k += 16;
            } else if self.is_progressive {
                position.end_of_band_run = (1 << run) - 1 + position.bits.take(run)?;
                break;
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Reads one more bit of the AC coefficients.
    fn refine_band(
        &self,
        position: &mut ScanPosition<'_>,
        nonzero: &mut u64,
    ) -> Result<(), CodeError> {
        let table = self.ac_table.ok_or(CodeError::InvalidCode)?;
        let mut k = self.band[0];
        while position.end_of_band_run == 0 && k <= self.band[1] {
            let symbol = position.bits.symbol(table)?;
            let (run, length) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if length > 0 {
                position.bits.take(1)?;
            } else if run < 15 {
                position.end_of_band_run = (1 << run) + position.bits.take(run)?;
                break;
            }
            k = self.skip_zeros(k, run, position, *nonzero)?;
            if length > 0 && k <= self.band[1] {
                *nonzero |= 1 << k;
            }
            k += 1;
        }
        if position.end_of_band_run > 0 {
            position.end_of_band_run -= 1;
            while k <= self.band[1] {
                if *nonzero & (1 << k) != 0 {
                    position.bits.take(1)?;
                }
                k += 1;
            }
        }
        Ok(())
    }

    /// Skips `run` zero coefficients from `k` on and reads a bit of each other coefficient. Returns
    /// the position of the next zero coefficient.
    fn skip_zeros(
        &self,
        mut k: u8,
        mut run: u32,
        position: &mut ScanPosition<'_>,
        nonzero: u64,
    ) -> Result<u8, CodeError> {
        while k <= self.band[1] {
            if nonzero & (1 << k) != 0 {
                position.bits.take(1)?;
            } else if run == 0 {
                break;
            } else {
                run -= 1;
            }
            k += 1;
        }
        Ok(k)
    }
}
