//! Frame and scan headers (ITU-T T.81, B.2.2 and B.2.3).

/// Frame header of a Huffman-coded image.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) is_progressive: bool,
    pub(super) components: Vec<FrameComponent>,
    /// Width and height in units of the largest sampling factors, eight samples each.
    pub(super) units: [usize; 2],
}

/// A component of a frame.
#[derive(Clone, Debug)]
pub(super) struct FrameComponent {
    id: u8,
    /// Horizontal and vertical sampling factors.
    pub(super) sampling: [usize; 2],
    /// Width and height in blocks of a scan of this component alone.
    pub(super) blocks: [usize; 2],
}

/// Scan header.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    pub(super) components: Vec<ScanComponent>,
    /// First and last coefficient, in zigzag order.
    pub(super) band: [u8; 2],
    /// True if earlier scans coded the higher bits of these coefficients.
    pub(super) is_refinement: bool,
    /// Number of lower bits that later scans code.
    pub(super) missing_bits: u8,
}

/// A component of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanComponent {
    /// Index in the frame.
    pub(super) index: usize,
    /// Number of the table for DC coefficients.
    pub(super) dc_table: usize,
    /// Number of the table for AC coefficients.
    pub(super) ac_table: usize,
}

impl Frame {
    /// Parses a frame header; `None` if it is malformed or its height is in a later segment.
    pub(super) fn parse(code: u8, payload: &[u8]) -> Option<Self> {
        let [_, h1, h0, w1, w0, count, components @ ..] = payload else {
            return None;
        };
        let size = [u16::from_be_bytes([*w1, *w0]), u16::from_be_bytes([*h1, *h0])];
        let size = size.map(usize::from);
        let components = components.as_chunks::<3>().0.get(..usize::from(*count))?;
        let mut components: Vec<FrameComponent> = components
            .iter()
            .map(|[id, sampling, _]| FrameComponent {
                id: *id,
                sampling: [usize::from(sampling >> 4), usize::from(sampling & 15)],
                blocks: [0; 2],
            })
            .collect();
        let is_valid =
            |c: &FrameComponent| c.sampling.iter().all(|factor| (1..=4).contains(factor));
        if components.is_empty() || !components.iter().all(is_valid) || size.contains(&0) {
            return None;
        }
        let max = |axis: usize| components.iter().map(|c| c.sampling[axis]).max().unwrap_or(1);
        let max = [max(0), max(1)];
        for component in &mut components {
            let blocks = |axis: usize| {
                (size[axis] * component.sampling[axis]).div_ceil(max[axis]).div_ceil(8)
            };
            component.blocks = [blocks(0), blocks(1)];
        }
        let units = [size[0].div_ceil(8 * max[0]), size[1].div_ceil(8 * max[1])];
        Some(Self { is_progressive: code == 0xc2, components, units })
    }
}

impl Scan {
    /// Parses a scan header; `None` if it is malformed.
    pub(super) fn parse(payload: &[u8], frame: &Frame) -> Option<Self> {
        let (count, rest) = payload.split_first()?;
        let (components, rest) = rest.split_at_checked(2 * usize::from(*count))?;
        let [first, last, bits, ..] = rest else {
            return None;
        };
        let components: Option<Vec<ScanComponent>> = components
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[id, tables]| {
                let index = frame.components.iter().position(|component| component.id == *id)?;
                let (dc_table, ac_table) = (usize::from(tables >> 4), usize::from(tables & 15));
                Some(ScanComponent { index, dc_table, ac_table })
            })
            .collect();
        let components = components.filter(|components| !components.is_empty())?;
        let band = if frame.is_progressive { [*first, *last] } else { [0, 63] };
        let (high, low) = if frame.is_progressive { (bits >> 4, bits & 15) } else { (0, 0) };
        let is_valid = band[0] <= band[1] && band[1] <= 63;
        is_valid.then_some(Self { components, band, is_refinement: high > 0, missing_bits: low })
    }
}
