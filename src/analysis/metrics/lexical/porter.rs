//! Porter's stemmer (Porter, *An algorithm for suffix stripping*, 1980) with the extensions of
//! NLTK, as used by `rouge-score` (reference: `nltk/stem/porter.py` of nltk 3.10, mode
//! `NLTK_EXTENSIONS`).

/// Irregular words with their stems.
const IRREGULAR: [(&str, &str); 16] = [
    ("sky", "sky"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("news", "news"),
    ("innings", "inning"),
    ("inning", "inning"),
    ("outings", "outing"),
    ("outing", "outing"),
    ("cannings", "canning"),
    ("canning", "canning"),
    ("howe", "howe"),
    ("proceed", "proceed"),
    ("exceed", "exceed"),
    ("succeed", "succeed"),
];

/// Step 2: suffixes that are replaced after a stem of positive measure.
const STEP_2: [(&str, &str); 21] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
];

/// Step 3: suffixes that are replaced after a stem of positive measure.
const STEP_3: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// Step 4: suffixes that are removed after a stem of measure above one.
const STEP_4: [&str; 19] = [
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
];

/// Returns the stem of a word of lower-case ASCII letters and digits.
pub(crate) fn stem(word: &str) -> String {
    if let Some((_, stem)) = IRREGULAR.iter().find(|(irregular, _)| *irregular == word) {
        return (*stem).to_owned();
    }
    if word.len() <= 2 {
        return word.to_owned();
    }
    let mut word = word.to_owned();
    for step in [step_1a, step_1b, step_1c, step_2, step_3, step_4, step_5a, step_5b] {
        step(&mut word);
    }
    word
}

/// Step 1a: removes plural endings.
fn step_1a(word: &mut String) {
    if word.len() == 4 && word.ends_with("ies") || word.ends_with("sses") {
        drop_letters(word, if word.ends_with("sses") { 2 } else { 1 });
    } else if word.ends_with("ies") {
        drop_letters(word, 2);
    } else if word.ends_with('s') && !word.ends_with("ss") {
        drop_letters(word, 1);
    }
}

/// Step 1b: removes the endings of the past tense and of participles.
fn step_1b(word: &mut String) {
    if word.ends_with("ied") {
        let is_short = word.len() == 4;
        drop_letters(word, if is_short { 1 } else { 2 });
        return;
    }
    if let Some(stem) = word.strip_suffix("eed") {
        if measure(stem) > 0 {
            drop_letters(word, 1);
        }
        return;
    }
    let stem = ["ed", "ing"].iter().find_map(|suffix| word.strip_suffix(suffix));
    let Some(stem) = stem.filter(|stem| has_vowel(stem)) else {
        return;
    };
    *word = stem.to_owned();
    if ["at", "bl", "iz"].iter().any(|suffix| word.ends_with(suffix)) {
        word.push('e');
    } else if ends_doubled(word) {
        if !word.ends_with(['l', 's', 'z']) {
            drop_letters(word, 1);
        }
    } else if measure(word) == 1 && ends_cvc(word) {
        word.push('e');
    }
}

/// Step 1c: replaces `y` by `i` after a consonant that is not the whole stem.
fn step_1c(word: &mut String) {
    if let Some(stem) = word.strip_suffix('y')
        && stem.len() > 1
        && consonants(stem).last() == Some(&true)
    {
        *word = format!("{stem}i");
    }
}

fn step_2(word: &mut String) {
    if let Some(stem) = word.strip_suffix("alli").filter(|stem| measure(stem) > 0) {
        *word = format!("{stem}al");
        return step_2(word);
    }
    // The `l` of `logi` belongs to the stem, so that `theology` and `theologian` have the same
    // stem.
    if !replace_suffix(word, &STEP_2)
        && let Some(stem) = word.strip_suffix("ogi")
        && stem.ends_with('l')
        && measure(stem) > 0
    {
        drop_letters(word, 1);
    }
}

fn step_3(word: &mut String) {
    replace_suffix(word, &STEP_3);
}

fn step_4(word: &mut String) {
    let Some((suffix, stem)) =
        STEP_4.iter().find_map(|suffix| Some((*suffix, word.strip_suffix(suffix)?)))
    else {
        return;
    };
    if measure(stem) > 1 && (suffix != "ion" || stem.ends_with(['s', 't'])) {
        *word = stem.to_owned();
    }
}

/// Step 5a: removes a final `e`.
fn step_5a(word: &mut String) {
    if let Some(stem) = word.strip_suffix('e')
        && (measure(stem) > 1 || measure(stem) == 1 && !ends_cvc(stem))
    {
        drop_letters(word, 1);
    }
}

/// Step 5b: shortens a final `ll`.
fn step_5b(word: &mut String) {
    if word.ends_with("ll") && word.strip_suffix('l').is_some_and(|w| measure(w) > 1) {
        drop_letters(word, 1);
    }
}

/// Applies the first rule whose suffix matches, if the stem has a positive measure. Returns true if
/// a suffix matched.
fn replace_suffix(word: &mut String, rules: &[(&str, &str)]) -> bool {
    for (suffix, replacement) in rules {
        if let Some(stem) = word.strip_suffix(suffix) {
            if measure(stem) > 0 {
                *word = format!("{stem}{replacement}");
            }
            return true;
        }
    }
    false
}

fn drop_letters(word: &mut String, letters: usize) {
    word.truncate(word.len().saturating_sub(letters));
}

/// Returns a flag per letter, true for a consonant: all except the five vowels and a `y` after a
/// consonant.
fn consonants(word: &str) -> Vec<bool> {
    let mut flags: Vec<bool> = Vec::with_capacity(word.len());
    for letter in word.bytes() {
        flags.push(match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => flags.last().is_none_or(|before| !before),
            _ => true,
        });
    }
    flags
}

/// Returns Porter's measure of a stem: the number of consonants directly after a vowel.
fn measure(stem: &str) -> usize {
    let flags = consonants(stem);
    flags.windows(2).filter(|pair| *pair == [false, true]).count()
}

fn has_vowel(stem: &str) -> bool {
    consonants(stem).contains(&false)
}

fn ends_doubled(word: &str) -> bool {
    match word.as_bytes() {
        [.., a, b] => a == b && consonants(word).last() == Some(&true),
        _ => false,
    }
}

/// Returns true if a word ends with consonant, vowel and a consonant other than `w`, `x` and `y`,
/// or is a vowel followed by a consonant.
fn ends_cvc(word: &str) -> bool {
    match consonants(word).as_slice() {
        [.., true, false, true] => !word.ends_with(['w', 'x', 'y']),
        [false, true] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples from Porter's paper on which NLTK agrees.
    #[test]
    fn stems_match_examples_of_paper() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ponies", "poni"),
            ("ties", "tie"),
            ("feed", "feed"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("sing", "sing"),
            ("hopping", "hop"),
            ("failing", "fail"),
            ("filing", "file"),
            ("happy", "happi"),
            ("relational", "relat"),
            ("radicalli", "radic"),
            ("electrical", "electr"),
            ("adoption", "adopt"),
            ("rate", "rate"),
            ("cease", "ceas"),
            ("controll", "control"),
            ("theology", "theolog"),
            ("enjoy", "enjoy"),
            ("yyyyy", "yyyyy"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }
}
