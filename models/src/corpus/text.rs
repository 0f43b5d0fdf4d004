//! Text, one document a line, as words.
//!
//! A word is a run of letters and digits with a letter in it, lower-cased; an apostrophe between two of them is part
//! of the word.

use std::convert::Infallible;

use super::LineProblem;
use super::read::Builder;

/// Adds the document of a line; `word` is room for one.
pub(super) fn line(line: &[u8], word: &mut String, builder: &mut Builder) -> Result<(), LineProblem> {
    if memchr::memchr(0, line).is_some() {
        return Err(LineProblem::Binary);
    }
    let text = std::str::from_utf8(line).map_err(|_| LineProblem::Binary)?;
    for_each_word(text, word, |word| {
        let number = builder.words.number(word)?;
        builder.add(number, 1)
    })?;
    builder.end_document()
}

/// A word of a list in the letters that text would have it in.
pub(super) fn folded(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    word.chars().for_each(|character| push_folded(&mut folded, character));
    folded
}

/// As [`folded`], if text could have it as one word.
pub(super) fn folded_word(word: &str) -> Option<String> {
    let folded = folded(word);
    let mut whole = false;
    let Ok(()) = for_each_word(word, &mut String::new(), |found| {
        whole |= found == folded;
        Ok::<(), Infallible>(())
    });
    whole.then_some(folded)
}

fn for_each_word<E>(text: &str, word: &mut String, mut receive: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if !is_inner(character) {
            continue;
        }
        word.clear();
        let mut lettered = false;
        let mut next = Some(character);
        while let Some(character) = next {
            lettered |= character.is_alphabetic();
            push_folded(word, character);
            let mut ahead = characters.clone();
            let following = ahead.next().filter(|&following| {
                is_inner(following) || (is_apostrophe(following) && ahead.next().is_some_and(is_inner))
            });
            next = following.and_then(|_| characters.next());
        }
        if lettered {
            receive(word)?;
        }
    }
    Ok(())
}

/// Whether a character is part of a word: a letter, a digit, or a mark above or below the letter before.
fn is_inner(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || (!character.is_ascii() && (character.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&character)))
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '\u{2019}')
}

fn push_folded(word: &mut String, character: char) {
    if is_apostrophe(character) {
        word.push('\'');
    } else if character.is_ascii() {
        word.push(character.to_ascii_lowercase());
    } else {
        word.extend(character.to_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        let push = |word: &str| {
            words.push(word.to_owned());
            Ok::<(), ()>(())
        };
        for_each_word(text, &mut String::new(), push).unwrap();
        words
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        assert_eq!(
            words("The cat's 2nd hat, 'quoted' -- don\u{2019}t!"),
            ["the", "cat's", "2nd", "hat", "quoted", "don't"]
        );
        assert_eq!(words("1984 3:4 9'9 ''"), Vec::<String>::new());
        assert_eq!(
            words("Ünïcode ÉTÉ e\u{301}te\u{301} 日本語 don''t"),
            ["ünïcode", "été", "e\u{301}te\u{301}", "日本語", "don", "t"]
        );
        assert_eq!(words("a_b-c\td"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn a_listed_word_is_folded_as_text_is() {
        for listed in ["PARIS", "Café", "don\u{2019}T", "ΟΔΟΣ", "İstanbul", "2nd"] {
            assert_eq!(folded_word(listed), words(listed).pop(), "{listed}");
        }
        for never in ["New York", "1984", "C++", "'tis", "", "state-of-the-art", "9'9"] {
            assert_eq!(folded_word(never), None, "{never}");
        }
    }
}
