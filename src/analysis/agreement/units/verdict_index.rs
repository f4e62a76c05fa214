//! Index of verdicts by case id.

use std::collections::HashMap;

use crate::analysis::verdicts::PairVerdict;

/// The verdicts of each case.
pub(crate) struct VerdictIndex<'a> {
    cases: HashMap<&'a str, Vec<usize>>,
}

impl<'a> VerdictIndex<'a> {
    /// Indexes verdicts by case id, and by the number at the end of the id if it is unambiguous.
    pub(crate) fn new(verdicts: &'a [PairVerdict]) -> Self {
        let mut cases: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, verdict) in verdicts.iter().enumerate() {
            cases.entry(&verdict.case).or_default().push(i);
        }
        // Importers put a prefix before the numbers of a data set.
        let mut short: HashMap<&str, Vec<usize>> = HashMap::new();
        for (case, verdicts_of_case) in &cases {
            if let Some((_, number)) = case.rsplit_once('-')
                && number.chars().all(|c| c.is_ascii_digit())
                && !cases.contains_key(number)
            {
                short.entry(number).or_default().extend(verdicts_of_case);
            }
        }
        short.retain(|_, indices| {
            let mut all = indices.iter().filter_map(|i| verdicts.get(*i));
            let first = all.next();
            all.all(|verdict| Some(&verdict.case) == first.map(|v| &v.case))
        });
        cases.extend(short);
        Self { cases }
    }

    /// Returns the indices of the verdicts on a case.
    pub(crate) fn find_case(&self, case: &str) -> &[usize] {
        self.cases.get(case).map_or(&[], Vec::as_slice)
    }
}
