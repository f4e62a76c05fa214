//! Splits the data of a scan at its restart markers.

/// Iterator over the data between the restart markers of a scan.
pub(super) struct RestartIntervals<'a> {
    /// The data from the next interval on; `None` after the last interval.
    rest: Option<&'a [u8]>,
    units: usize,
}

impl<'a> RestartIntervals<'a> {
    /// Creates an iterator. `data` starts after the scan header. `units`: number of units between
    /// two markers, or 0 if the scan has no markers.
    pub(super) fn new(data: &'a [u8], units: usize) -> Self {
        Self { rest: Some(data), units }
    }

    /// Returns the number of units in an interval; `None` if the scan is one interval.
    pub(super) fn units(&self) -> Option<usize> {
        (self.units > 0).then_some(self.units)
    }

    /// Returns true after the last interval.
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_none()
    }
}

impl<'a> Iterator for RestartIntervals<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let data = self.rest.take()?;
        let mut start = 0;
        loop {
            let Some(found) = data
                .get(start..)?
                .windows(2)
                .position(|pair| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xff))
            else {
                return Some(data);
            };
            let marker = start + found;
            match data.get(marker + 1) {
                Some(0xd0..=0xd7) if self.units > 0 => {
                    self.rest = data.get(marker + 2..);
                    return data.get(..marker);
                }
                // A restart marker where none is expected.
                Some(0xd0..=0xd7) => start = marker + 2,
                _ => return data.get(..marker),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_split_at_restart_markers() {
        let data = b"ab\xff\0c\xff\xd0d\xff\xd1\xff\xd9rest";
        let mut intervals = RestartIntervals::new(data, 4);
        assert_eq!(intervals.next().unwrap(), b"ab\xff\0c");
        assert_eq!(intervals.next().unwrap(), b"d");
        assert!(!intervals.is_at_end());
        assert_eq!(intervals.next().unwrap(), b"");
        assert!(intervals.is_at_end() && intervals.next().is_none());
        let all: Vec<_> = RestartIntervals::new(data, 0).collect();
        assert_eq!(all, [b"ab\xff\0c\xff\xd0d\xff\xd1"]);
    }
}
