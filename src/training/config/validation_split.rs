//! What of a file is learned from, and what validates.

use crate::training::stages::stage::VALIDATION;

/// Puts a tenth at the end, which validates, and tells how many come before it: taken all over the file, for in one that
/// is sorted stand members, lengths or qualities together.
pub(crate) fn split<T>(all: Vec<T>) -> (Vec<T>, usize) {
    let held = (all.len() / 10).clamp(1, VALIDATION as usize);
    let stride = all.len().checked_div(held).unwrap_or_default().max(1);
    let mut number = 0;
    let validates = |_: &T| {
        number += 1;
        number % stride == 0 && number / stride <= held
    };
    let (held, mut all): (Vec<T>, Vec<T>) = all.into_iter().partition(validates);
    let learned = all.len();
    all.extend(held);
    (all, learned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_validates_stands_all_over_a_file() {
        let (all, learned) = split((1..=40).collect());
        assert_eq!((learned, &all[learned..]), (36, &[10, 20, 30, 40][..]));
        assert_eq!(all[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
        let (all, learned) = split((0..10_000).collect());
        assert_eq!(all.len() - learned, VALIDATION as usize);
        assert!(
            all[learned..]
                .windows(2)
                .all(|pair| pair[1] - pair[0] == 208)
        );
        assert_eq!(split(vec![7]), (vec![7], 0));
        assert_eq!(split::<u8>(Vec::new()), (Vec::new(), 0));
    }
}
