//! Whether a JPEG file is whole.
//!
//! The decoder fills what is missing with grey, and a judge that sees half of an image must not give a
//! verdict on all of it.

/// Whether the marker that ends an image is there, at the level of the image's own markers: thumbnails have
/// such markers too.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    const RESTART: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
    let mut rest = bytes;
    loop {
        let Some(at) = rest.iter().position(|b| *b == 0xff) else {
            return false;
        };
        rest = rest.get(at + 1..).unwrap_or_default();
        match rest {
            [0xd9, ..] => return true,
            // A filling byte: the marker is yet to come.
            [0xff, ..] => {}
            // No marker but a data byte, or a marker that stands alone.
            [0x00 | 0x01 | 0xd8, ..] => rest = rest.get(1..).unwrap_or_default(),
            [code, ..] if RESTART.contains(code) => rest = rest.get(1..).unwrap_or_default(),
            [_, high, low, ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                rest = rest.get(1 + length..).unwrap_or_default();
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_images_own_end_counts() {
        let whole =
            b"\xff\xd8\xff\xe1\0\x04\xff\xd9\xff\xda\0\x03\x01ab\xff\0c\xff\xd0d\xff\xff\xd9";
        assert!(is_whole(whole));
        assert!(is_whole(&[whole.as_slice(), b"trailing"].concat()));
        for end in 0..whole.len() {
            assert!(!is_whole(&whole[..end]), "{end}");
        }
    }
}
