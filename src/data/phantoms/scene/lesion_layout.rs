//! Positions of the lesions of a scene: in the tissue, on the given side, and apart from each
//! other.

use super::body_frame::BodyFrame;
use super::lesion::{Lesion, LesionSide, LesionSize, PhantomKind};
use crate::data::phantoms::random_choice::RandomChoice;

/// Number of random layouts to try before using the fixed layout.
const MAX_LAYOUTS: usize = 80;
/// Number of positions to try for one lesion of a layout.
const MAX_POSITIONS: usize = 40;

/// Lesions to place, and the body that contains them.
pub(crate) struct LesionSpec {
    pub(crate) kind: PhantomKind,
    pub(crate) frame: BodyFrame,
    pub(crate) count: usize,
    pub(crate) side: LesionSide,
    pub(crate) size: LesionSize,
}

/// Places the lesions of a scene with at least one lesion.
pub(crate) fn place_lesions(spec: &LesionSpec, rng: &mut impl RandomChoice) -> Vec<Lesion> {
    let halves = choose_halves(spec, rng);
    let shapes: Vec<(f32, f32)> = halves.iter().map(|_| choose_shape(spec.size, rng)).collect();
    for _ in 0..MAX_LAYOUTS {
        if let Some(found) = try_layout(spec, &halves, &shapes, rng) {
            return found;
        }
    }
    fixed_layout(&halves, &shapes)
}

/// Chooses the half of each lesion; true is left.
fn choose_halves(spec: &LesionSpec, rng: &mut impl RandomChoice) -> Vec<bool> {
    let first_is_left = rng.chance(0.5);
    (0..spec.count)
        .map(|i| match spec.side {
            LesionSide::Left => true,
            LesionSide::Right => false,
            LesionSide::Both => (i % 2 == 0) == first_is_left,
        })
        .collect()
}

fn choose_shape(size: LesionSize, rng: &mut impl RandomChoice) -> (f32, f32) {
    let radius = match size {
        LesionSize::Small => rng.between(4.0, 5.0),
        LesionSize::Large => rng.between(9.0, 10.0),
    };
    (radius, rng.between(0.9, 1.1))
}

fn try_layout(
    spec: &LesionSpec,
    halves: &[bool],
    shapes: &[(f32, f32)],
    rng: &mut impl RandomChoice,
) -> Option<Vec<Lesion>> {
    let mut placed: Vec<Lesion> = Vec::with_capacity(halves.len());
    // Minimum distance between two lesions in pixels. Three large lesions must fit into one lung.
    let gap = if spec.size == LesionSize::Small { 9.0 } else { 5.0 };
    for (&left, &(radius, stretch)) in halves.iter().zip(shapes) {
        let spot = (0..MAX_POSITIONS).find_map(|_| {
            let offset = rng.between(10.0, 56.0);
            let x = if left { 64.0 - offset } else { 64.0 + offset };
            let lesion = Lesion { x, y: rng.between(10.0, 118.0), radius, stretch };
            let apart = placed.iter().all(|other| {
                let (dx, dy) = (other.x - lesion.x, other.y - lesion.y);
                let room = (other.radius + radius) * 1.1 + gap;
                dx * dx + dy * dy >= room * room
            });
            (apart && is_in_tissue(spec, &lesion)).then_some(lesion)
        })?;
        placed.push(spot);
    }
    Some(placed)
}

/// Returns true if the lesion is in tissue, away from the midline and the edge.
fn is_in_tissue(spec: &LesionSpec, lesion: &Lesion) -> bool {
    let outer = lesion.radius * 1.1;
    let midline = match spec.kind {
        PhantomKind::Ct | PhantomKind::Histology => 5.0,
        PhantomKind::Mri => 10.0,
        PhantomKind::Radiograph => 3.0,
    };
    if (lesion.x - 64.0).abs() < outer + midline {
        return false;
    }
    let (u, v) = spec.frame.to_body_axes(lesion.x, lesion.y);
    match spec.kind {
        PhantomKind::Ct | PhantomKind::Mri => is_in_ellipse((u, v), spec.frame.axes, outer + 7.0),
        PhantomKind::Radiograph => {
            let lung = spec.frame.lungs();
            is_in_ellipse((u.abs() - lung.offset, v), (lung.axes.0, lung.axes.1), outer + 1.0)
        }
        PhantomKind::Histology => {
            let edge = outer + 4.0;
            lesion.x > edge && lesion.x < 128.0 - edge && lesion.y > edge && lesion.y < 128.0 - edge
        }
    }
}

fn is_in_ellipse((u, v): (f32, f32), axes: (f32, f32), margin: f32) -> bool {
    let (a, b) = ((axes.0 - margin).max(1.0), (axes.1 - margin).max(1.0));
    (u / a) * (u / a) + (v / b) * (v / b) <= 1.0
}

/// Returns the fixed layout, which fits every body: one column in each half.
fn fixed_layout(halves: &[bool], shapes: &[(f32, f32)]) -> Vec<Lesion> {
    let rows = [64.0, 37.0, 91.0];
    let positions = halves.iter().zip(shapes).zip(rows);
    positions
        .map(|((&left, &(radius, stretch)), y)| {
            let x = if left { 36.0 } else { 92.0 };
            Lesion { x, y, radius, stretch }
        })
        .collect()
}
