//! Marker segments of a JPEG file: checks that the file is complete and determines its colour
//! space.

use jpeg_decoder::ColorTransform;

/// Segment of the main image. A thumbnail, with its own segments, is the payload of such a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JpegSegment<'a> {
    pub(super) code: u8,
    pub(super) payload: &'a [u8],
    /// The bytes after the segment.
    pub(super) after: &'a [u8],
}

/// Code of the end-of-image marker.
pub(super) const END_OF_IMAGE: u8 = 0xd9;
/// Code of the start-of-scan marker.
pub(super) const START_OF_SCAN: u8 = 0xda;

/// Iterator over the segments of a file that skips the entropy-coded data between them.
pub(super) struct JpegSegments<'a>(&'a [u8]);

impl<'a> JpegSegments<'a> {
    /// Creates an iterator over the segments of a file.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for JpegSegments<'a> {
    type Item = JpegSegment<'a>;

    fn next(&mut self) -> Option<JpegSegment<'a>> {
        const RESTART: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
        loop {
            let marker = self.0.iter().position(|b| *b == 0xff)?;
            let rest = self.0.get(marker + 1..)?;
            match rest {
                // A fill byte before the marker.
                [0xff, ..] => self.0 = rest,
                // An escaped data byte (0x00), or a marker without a payload.
                [0x00 | 0x01 | 0xd8, ..] => self.0 = &rest[1..],
                [code, ..] if RESTART.contains(code) => self.0 = &rest[1..],
                [END_OF_IMAGE, after @ ..] => {
                    self.0 = after;
                    return Some(JpegSegment { code: END_OF_IMAGE, payload: &[], after });
                }
                [code, high, low, ..] => {
                    let length = usize::from(u16::from_be_bytes([*high, *low]));
                    let payload = rest.get(3..1 + length).unwrap_or_default();
                    self.0 = rest.get(1 + length..).unwrap_or_default();
                    return Some(JpegSegment { code: *code, payload, after: self.0 });
                }
                _ => return None,
            }
        }
    }
}

/// Returns true if the file contains the end-of-image marker.
///
/// The decoder fills missing rows with grey, and the judge must not score a partial image.
pub(in crate::image) fn has_end_marker(bytes: &[u8]) -> bool {
    JpegSegments::new(bytes).any(|segment| segment.code == END_OF_IMAGE)
}

/// Returns the largest number of scans of an image in the file.
///
/// The frames of a DICOM object are several images in one stream.
pub(in crate::image) fn max_scans(bytes: &[u8]) -> usize {
    let (mut max, mut scans) = (0, 0);
    for segment in JpegSegments::new(bytes) {
        match segment.code {
            END_OF_IMAGE => scans = 0,
            START_OF_SCAN => {
                scans += 1;
                max = scans.max(max);
            }
            _ => {}
        }
    }
    max
}

/// Returns the colour space of the components by libjpeg's rules (`default_decompress_parms`,
/// jdapimin.c): a JFIF header takes precedence over an Adobe header, which takes precedence over
/// the component names.
pub(super) fn colour_space(bytes: &[u8]) -> ColorTransform {
    let (mut has_jfif, mut adobe_transform) = (false, None);
    for JpegSegment { code, payload, .. } in JpegSegments::new(bytes) {
        match (code, payload) {
            (0xe0, [b'J', b'F', b'I', b'F', 0, ..]) => has_jfif = true,
            (0xee, [b'A', b'd', b'o', b'b', b'e', _, _, _, _, _, _, transform, ..]) => {
                adobe_transform = Some(*transform);
            }
            // A frame: precision, height, width, number of components, three bytes per component.
            (0xc0..=0xc3, [_, _, _, _, _, 3, red, _, _, green, _, _, blue, ..]) => {
                let is_named_rgb = [*red, *green, *blue] == *b"RGB";
                return match adobe_transform {
                    _ if has_jfif => ColorTransform::YCbCr,
                    Some(0) => ColorTransform::RGB,
                    None if is_named_rgb => ColorTransform::RGB,
                    _ => ColorTransform::YCbCr,
                };
            }
            (0xc0..=0xc3, [_, _, _, _, _, 4, ..]) => {
                return match adobe_transform {
                    None | Some(0) => ColorTransform::CMYK,
                    Some(_) => ColorTransform::YCCK,
                };
            }
            (END_OF_IMAGE, _) => break,
            _ => {}
        }
    }
    ColorTransform::Grayscale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_marker_inside_a_segment_does_not_count() {
        let complete =
            b"\xff\xd8\xff\xe1\0\x04\xff\xd9\xff\xda\0\x03\x01ab\xff\0c\xff\xd0d\xff\xff\xd9";
        assert!(has_end_marker(complete));
        assert!(has_end_marker(&[complete.as_slice(), b"trailing"].concat()));
        for end in 0..complete.len() {
            assert!(!has_end_marker(&complete[..end]), "{end}");
        }
    }

    #[test]
    fn colour_space_follows_the_rules_of_libjpeg() {
        const JFIF: &[u8] = b"\xff\xe0\0\x07JFIF\0";
        let adobe =
            |transform| [b"\xff\xee\0\x0eAdobe\0d\0\0\0\0", [transform].as_slice()].concat();
        let frame = |names: &[u8]| {
            let length = 8 + 3 * names.len() as u8;
            let mut frame = vec![0xff, 0xc0, 0, length, 8, 0, 1, 0, 1, names.len() as u8];
            for name in names {
                frame.extend([*name, 0x11, 0]);
            }
            frame
        };
        let detect = |segments: &[&[u8]]| {
            colour_space(&[b"\xff\xd8".as_slice(), &segments.concat()].concat())
        };
        let three_components = frame(&[1, 2, 3]);
        let four_components = frame(&[1, 2, 3, 4]);
        assert_eq!(detect(&[&three_components]), ColorTransform::YCbCr);
        assert_eq!(detect(&[&frame(b"RGB")]), ColorTransform::RGB);
        assert_eq!(detect(&[JFIF, &frame(b"RGB")]), ColorTransform::YCbCr);
        assert_eq!(detect(&[&adobe(0), &three_components]), ColorTransform::RGB);
        assert_eq!(detect(&[&adobe(1), &frame(b"RGB")]), ColorTransform::YCbCr);
        assert_eq!(detect(&[JFIF, &adobe(0), &three_components]), ColorTransform::YCbCr);
        assert_eq!(detect(&[&four_components]), ColorTransform::CMYK);
        assert_eq!(detect(&[&adobe(0), &four_components]), ColorTransform::CMYK);
        assert_eq!(detect(&[&adobe(2), &four_components]), ColorTransform::YCCK);
        assert_eq!(detect(&[&frame(&[1])]), ColorTransform::Grayscale);
    }
}
