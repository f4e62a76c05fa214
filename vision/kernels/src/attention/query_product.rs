//! Products of queries with panels of keys, or of their weights with panels of values.

#![expect(
    clippy::inline_always,
    reason = "vector instructions need to be part of the function that enables them"
)]

use std::ops::Range;

use super::panel_lanes::PanelLanes;
use super::panels::LANES;

/// A product of the queries of a block, or of their weights, with panels.
pub(super) trait QueryProduct {
    /// Returns the panels.
    fn panels(&self) -> Range<usize>;

    /// Computes the product of `Q` queries with `P` panels, from this query and this panel on.
    fn multiply<L: PanelLanes, const Q: usize, const P: usize>(
        &mut self,
        lanes: L,
        query: usize,
        panel: usize,
    );
}

/// Computes the product of all these queries with all panels, as many at a time as the registers have
/// room for.
#[inline(always)]
pub(super) fn multiply_queries<L: PanelLanes>(
    lanes: L,
    queries: &Range<usize>,
    product: &mut impl QueryProduct,
) {
    let mut query = queries.start;
    while query < queries.end {
        query += match (queries.end - query, L::HAS_16_SUMS) {
            (4.., true) => multiply_panels::<L, 4, 4>(lanes, query, product),
            (4.., false) => multiply_panels::<L, 4, 1>(lanes, query, product),
            (2.., true) => multiply_panels::<L, 2, 4>(lanes, query, product),
            (2.., false) => multiply_panels::<L, 2, 2>(lanes, query, product),
            _ => multiply_panels::<L, 1, 4>(lanes, query, product),
        };
    }
}

/// Computes the product of `Q` queries with all panels, `P` panels at a time. Returns `Q`.
#[inline(always)]
fn multiply_panels<L: PanelLanes, const Q: usize, const P: usize>(
    lanes: L,
    query: usize,
    product: &mut impl QueryProduct,
) -> usize {
    let mut panels = product.panels();
    while panels.len() >= P {
        product.multiply::<L, Q, P>(lanes, query, panels.start);
        panels.start += P;
    }
    while P > 2 && panels.len() >= 2 {
        product.multiply::<L, Q, 2>(lanes, query, panels.start);
        panels.start += 2;
    }
    for panel in panels {
        product.multiply::<L, Q, 1>(lanes, query, panel);
    }
    Q
}

/// Multiplies each slice of `x` with each panel, and adds the results to the sums.
///
/// The products of a sum are added one after the other, so a sum depends neither on `Q` nor on `P`, nor
/// on the registers of the processor.
#[inline(always)]
pub(super) fn add_products<L: PanelLanes, const Q: usize, const P: usize>(
    lanes: L,
    mut x: [&[f32]; Q],
    mut panels: [&[[f32; LANES]]; P],
    sums: &mut [[L::Row; P]; Q],
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
        for q in 0..Q {
            for p in 0..P {
                registers[q][p] = lanes.multiply_add(x[q][k], weights[p], registers[q][p]);
            }
        }
    }
    *sums = registers;
}

/// Loads the first `P` rows.
#[inline(always)]
pub(super) fn load_rows<L: PanelLanes, const P: usize>(
    lanes: L,
    values: &[[f32; LANES]],
) -> [L::Row; P] {
    let values = &values[..P];
    let mut rows = [lanes.zeros(); P];
    for p in 0..P {
        rows[p] = lanes.load(&values[p]);
    }
    rows
}

/// Stores `P` rows.
#[inline(always)]
pub(super) fn store_rows<L: PanelLanes, const P: usize>(
    lanes: L,
    rows: [L::Row; P],
    values: &mut [[f32; LANES]],
) {
    let values = &mut values[..P];
    for p in 0..P {
        lanes.store(rows[p], &mut values[p]);
    }
}
