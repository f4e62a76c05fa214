//! Products of query rows with panels of a matrix.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use super::panel_lanes::PanelLanes;

/// Columns of a panel.
pub(super) const LANES: usize = 16;

/// A product of query rows with panels of a matrix.
pub(super) trait PanelProduct {
    /// Returns the panels.
    fn panels(&self) -> Range<usize>;

    /// Computes the product of `R` rows with `P` panels, from this row and this panel on.
    fn multiply<L: PanelLanes, const R: usize, const P: usize>(
        &mut self,
        lanes: L,
        row: usize,
        panel: usize,
    );
}

/// Computes the product of all these rows with all panels, as many at a time as the sums fit into the
/// registers of the processor.
#[inline(always)]
pub(super) fn multiply_rows<L: PanelLanes>(
    lanes: L,
    rows: &Range<usize>,
    product: &mut impl PanelProduct,
) {
    let mut row = rows.start;
    while row < rows.end {
        row += match (rows.end - row, L::WIDE) {
            (4.., true) => multiply_panels::<L, 4, 4>(lanes, row, product),
            (4.., false) => multiply_panels::<L, 4, 1>(lanes, row, product),
            (2.., true) => multiply_panels::<L, 2, 4>(lanes, row, product),
            (2.., false) => multiply_panels::<L, 2, 2>(lanes, row, product),
            _ => multiply_panels::<L, 1, 4>(lanes, row, product),
        };
    }
}

/// Computes the product of `R` rows with all panels, `P` panels at a time. Returns `R`.
#[inline(always)]
fn multiply_panels<L: PanelLanes, const R: usize, const P: usize>(
    lanes: L,
    row: usize,
    product: &mut impl PanelProduct,
) -> usize {
    let mut panels = product.panels();
    while panels.len() >= P {
        product.multiply::<L, R, P>(lanes, row, panels.start);
        panels.start += P;
    }
    while panels.len() >= 2 {
        product.multiply::<L, R, 2>(lanes, row, panels.start);
        panels.start += 2;
    }
    for panel in panels {
        product.multiply::<L, R, 1>(lanes, row, panel);
    }
    R
}

/// Adds the products of rows with panels to the sums.
///
/// The products of a sum are added one after the other, so a sum depends neither on `R` nor on `P`, nor
/// on the registers of the processor.
#[inline(always)]
pub(super) fn add_products<L: PanelLanes, const R: usize, const P: usize>(
    lanes: L,
    mut x: [&[f32]; R],
    mut panels: [&[[f32; LANES]]; P],
    sums: &mut [[L::Row; P]; R],
) {
    // Slices of one length need no check of an index.
    let depth = x.first().map_or(0, |x| x.len());
    for x in &mut x {
        *x = &x[..depth];
    }
    for panel in &mut panels {
        *panel = &panel[..depth];
    }
    // The compiler keeps local arrays in registers.
    let mut registers = *sums;
    for k in 0..depth {
        let mut weights = [lanes.zeros(); P];
        for p in 0..P {
            weights[p] = lanes.load(&panels[p][k]);
        }
        for r in 0..R {
            for p in 0..P {
                registers[r][p] = lanes.multiply_add(x[r][k], weights[p], registers[r][p]);
            }
        }
    }
    *sums = registers;
}
