//! Text, one document a line, as words.
//!
//! A word is a run of letters and digits with a letter in it, lower-cased; an apostrophe between two of them is part
//! of the word.

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
            if is_apostrophe(character) {
                word.push('\'');
            } else {
                lettered |= character.is_alphabetic();
                push_lowercase(word, character);
            }
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

fn push_lowercase(word: &mut String, character: char) {
    if character.is_ascii() {
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
}
