//! Bits and Huffman codes of entropy-coded JPEG data (ITU-T T.81, annex F).

/// Why a code cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeError {
    /// The data ends.
    EndOfData,
    /// The bits are no code of the table.
    InvalidCode,
}

/// Reads the bits of the data between two markers.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// The next bits, the first one in the highest position.
    bits: u64,
    /// Number of valid bits in `bits`.
    count: u32,
}

impl<'a> BitReader<'a> {
    /// Creates a reader of data without markers.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, bits: 0, count: 0 }
    }

    fn fill(&mut self) {
        while self.count <= 56 {
            let Some((byte, rest)) = self.bytes.split_first() else {
                return;
            };
            // A zero follows each data byte of value 255.
            self.bytes = if *byte == 0xff { rest.get(1..).unwrap_or_default() } else { rest };
            self.bits |= u64::from(*byte) << (56 - self.count);
            self.count += 8;
        }
    }

    /// Skips up to 16 bits and returns their value.
    pub(super) fn take(&mut self, count: u32) -> Result<u32, CodeError> {
        if count == 0 {
            return Ok(0);
        }
        if self.count < count {
            self.fill();
        }
        let value = self.bits >> (64 - count);
        self.count = self.count.checked_sub(count).ok_or(CodeError::EndOfData)?;
        self.bits <<= count;
        Ok(value as u32)
    }

    /// Reads a code and returns its symbol.
    pub(super) fn symbol(&mut self, table: &HuffmanTable) -> Result<u8, CodeError> {
        if self.count < 16 {
            self.fill();
        }
        let index = (self.bits >> 48) as usize;
        let [length, symbol] = table.codes.get(index).copied().unwrap_or_default();
        if u32::from(length) > self.count || self.count == 0 {
            return Err(CodeError::EndOfData);
        }
        if length == 0 {
            return Err(CodeError::InvalidCode);
        }
        self.take(u32::from(length))?;
        Ok(symbol)
    }
}

/// Huffman table.
#[derive(Clone)]
pub(super) struct HuffmanTable {
    /// Length and symbol of the code that starts each sequence of 16 bits; length 0 for none.
    codes: Vec<[u8; 2]>,
}

impl HuffmanTable {
    /// Builds a table from the number of codes of each length from 1 to 16, and their symbols in
    /// the order of the codes; `None` if there are more codes than a length allows.
    pub(super) fn new(counts: &[u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut codes = Vec::with_capacity(1 << 16);
        let mut symbols = symbols.iter();
        for (length, count) in (1_u8..).zip(counts) {
            for symbol in symbols.by_ref().take(usize::from(*count)) {
                codes.resize(codes.len() + (1 << (16 - length)), [length, *symbol]);
            }
        }
        if codes.len() > 1 << 16 {
            return None;
        }
        codes.resize(1 << 16, [0, 0]);
        Some(Self { codes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_codes_are_read() {
        let mut counts = [0; 16];
        (counts[0], counts[1], counts[2]) = (1, 1, 1);
        // Codes 0, 10 and 110.
        let table = HuffmanTable::new(&counts, &[7, 8, 9]).unwrap();
        let mut reader = BitReader::new(&[0b0101_1001, 0xff, 0, 0b1100_0000]);
        let symbols: Vec<u8> = (0..4).map(|_| reader.symbol(&table).unwrap()).collect();
        assert_eq!(symbols, [7, 8, 9, 7]);
        assert_eq!(reader.take(9), Ok(0b1_1111_1111));
        assert_eq!(reader.symbol(&table), Ok(9));
        assert_eq!(reader.take(5), Ok(0));
        assert_eq!(reader.take(1), Err(CodeError::EndOfData));
        assert_eq!(BitReader::new(&[]).symbol(&table), Err(CodeError::EndOfData));
        assert_eq!(BitReader::new(&[0xff, 0]).symbol(&table), Err(CodeError::InvalidCode));
        counts[0] = 3;
        assert!(HuffmanTable::new(&counts, &[1, 2, 3, 4, 5]).is_none());
    }
}
