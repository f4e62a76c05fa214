//! The marker segments of a JPEG file: whether it is whole, and what its colours are.

use jpeg_decoder::ColorTransform;

/// A segment of the image itself. Thumbnails have segments too, inside of one of these.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    code: u8,
    payload: &'a [u8],
}

/// The marker that ends an image.
const END: u8 = 0xd9;

/// Goes from marker to marker, over the entropy-coded data between them.
pub(super) struct Segments<'a>(&'a [u8]);

impl<'a> Segments<'a> {
    /// The segments of a file.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        const RESTART: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
        loop {
            let at = self.0.iter().position(|b| *b == 0xff)?;
            let rest = self.0.get(at + 1..)?;
            match rest {
                // A filling byte: the marker is yet to come.
                [0xff, ..] => self.0 = rest,
                // No marker but a data byte, or a marker that stands alone.
                [0x00 | 0x01 | 0xd8, ..] => self.0 = &rest[1..],
                [code, ..] if RESTART.contains(code) => self.0 = &rest[1..],
                [END, after @ ..] => {
                    self.0 = after;
                    return Some(Segment {
                        code: END,
                        payload: &[],
                    });
                }
                [code, high, low, ..] => {
                    let length = usize::from(u16::from_be_bytes([*high, *low]));
                    let payload = rest.get(3..1 + length).unwrap_or_default();
                    self.0 = rest.get(1 + length..).unwrap_or_default();
                    return Some(Segment {
                        code: *code,
                        payload,
                    });
                }
                _ => return None,
            }
        }
    }
}

/// Whether the marker that ends an image is there. The decoder fills what is missing with grey, and a judge
/// that sees half of an image must not give a verdict on all of it.
pub(in crate::image) fn is_whole(bytes: &[u8]) -> bool {
    Segments::of(bytes).any(|segment| segment.code == END)
}

/// What the components stand for, by libjpeg's rules (`default_decompress_parms`, jdapimin.c): a JFIF header
/// decides before Adobe's, and that before the components' names.
pub(super) fn colours(bytes: &[u8]) -> ColorTransform {
    let (mut jfif, mut adobe) = (false, None);
    for Segment { code, payload } in Segments::of(bytes) {
        match (code, payload) {
            (0xe0, [b'J', b'F', b'I', b'F', 0, ..]) => jfif = true,
            (
                0xee,
                [
                    b'A',
                    b'd',
                    b'o',
                    b'b',
                    b'e',
                    _,
                    _,
                    _,
                    _,
                    _,
                    _,
                    transform,
                    ..,
                ],
            ) => {
                adobe = Some(*transform);
            }
            // A frame: precision, height, width, and then three bytes for each component.
            (0xc0..=0xc3, [_, _, _, _, _, 3, red, _, _, green, _, _, blue, ..]) => {
                let named = [*red, *green, *blue] == *b"RGB";
                return match adobe {
                    _ if jfif => ColorTransform::YCbCr,
                    Some(0) => ColorTransform::RGB,
                    None if named => ColorTransform::RGB,
                    _ => ColorTransform::YCbCr,
                };
            }
            (0xc0..=0xc3, [_, _, _, _, _, 4, ..]) => {
                return match adobe {
                    None | Some(0) => ColorTransform::CMYK,
                    Some(_) => ColorTransform::YCCK,
                };
            }
            (END, _) => break,
            _ => {}
        }
    }
    ColorTransform::Grayscale
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

    #[test]
    fn colours_are_found_by_the_rules_of_libjpeg() {
        const JFIF: &[u8] = b"\xff\xe0\0\x07JFIF\0";
        let adobe = |t| [b"\xff\xee\0\x0eAdobe\0d\0\0\0\0", [t].as_slice()].concat();
        let frame = |names: &[u8]| {
            let length = 8 + 3 * names.len() as u8;
            let mut frame = vec![0xff, 0xc0, 0, length, 8, 0, 1, 0, 1, names.len() as u8];
            for name in names {
                frame.extend([*name, 0x11, 0]);
            }
            frame
        };
        let of = |parts: &[&[u8]]| colours(&[b"\xff\xd8".as_slice(), &parts.concat()].concat());
        let three = frame(&[1, 2, 3]);
        let four = frame(&[1, 2, 3, 4]);
        assert_eq!(of(&[&three]), ColorTransform::YCbCr);
        assert_eq!(of(&[&frame(b"RGB")]), ColorTransform::RGB);
        assert_eq!(of(&[JFIF, &frame(b"RGB")]), ColorTransform::YCbCr);
        assert_eq!(of(&[&adobe(0), &three]), ColorTransform::RGB);
        assert_eq!(of(&[&adobe(1), &frame(b"RGB")]), ColorTransform::YCbCr);
        assert_eq!(of(&[JFIF, &adobe(0), &three]), ColorTransform::YCbCr);
        assert_eq!(of(&[&four]), ColorTransform::CMYK);
        assert_eq!(of(&[&adobe(0), &four]), ColorTransform::CMYK);
        assert_eq!(of(&[&adobe(2), &four]), ColorTransform::YCCK);
        assert_eq!(of(&[&frame(&[1])]), ColorTransform::Grayscale);
    }
}
