//! The lines of a log that say why.
//!
//! A Python program ends with a hundred lines of traceback of which one tells what happened, repeats it under two log
//! levels, and puts twenty warnings about its own libraries before it.

use crate::cause::Cause;

mod line;

pub(crate) use line::blackened;
use line::{Line, Weight};

/// Lines that are shown.
const LINES: usize = 4;
/// Characters of all of them together.
const CHARACTERS: usize = 600;
/// What is left of a line must say something.
const WORTH: usize = 40;

/// The lines that tell most, whole and in their order.
pub(crate) fn meaningful(text: &str) -> Vec<String> {
    let lines = distinct(line::read(text));
    let last_error = lines.iter().rposition(|line| line.weight == Weight::Error);
    let decisive = last_error.or(lines.len().checked_sub(1));
    let mut ranks: Vec<usize> = (0..lines.len()).collect();
    // What went wrong comes first in a log, what followed from it afterwards; so lines whose meaning is known count
    // more than later ones.
    ranks.sort_by_key(|&i| {
        let known = Cause::of_line(&lines[i].text).is_some();
        std::cmp::Reverse((Some(i) == decisive, lines[i].weight, known, i))
    });
    ranks.truncate(LINES);
    // Beside an error nobody needs to read what is none.
    if last_error.is_some() {
        ranks.retain(|&i| lines[i].weight > Weight::Plain);
    }
    ranks.sort_unstable();
    ranks.into_iter().map(|i| lines[i].text.clone()).collect()
}

/// Lines cut so that all of them together are readable; the last ones have the most room.
pub(crate) fn shortened(lines: &[String]) -> Vec<String> {
    let mut room = CHARACTERS;
    let mut kept: Vec<String> = Vec::new();
    for line in lines.iter().rev() {
        if room < WORTH && !kept.is_empty() {
            break;
        }
        let short = cut(line, room);
        room -= short.chars().count();
        kept.push(short);
    }
    kept.reverse();
    kept
}

/// The beginning of a text in whole words, so that a secret in it is there wholly, and can be masked, or not at all.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    if text.char_indices().nth(characters).is_none() {
        return text.to_owned();
    }
    // the mark takes room too
    let end = text.char_indices().nth(characters.saturating_sub(2)).map_or(0, |(end, _)| end);
    let whole = text[..end].rfind(char::is_whitespace).unwrap_or(0);
    format!("{} …", text[..whole].trim_end())
}

/// Without lines that say what a later one says again. Numbers make no difference: attempts are counted in them.
fn distinct(lines: Vec<Line>) -> Vec<Line> {
    let mut kept: Vec<(String, Line)> = Vec::new();
    for line in lines.into_iter().rev() {
        let key: String = line.text.chars().filter(|c| !c.is_ascii_digit()).collect();
        let said_again = |later: &str| key == later || (later.len() >= WORTH && key.ends_with(later));
        match kept.iter_mut().find(|(later, _)| said_again(later)) {
            Some((_, later)) => later.weight = later.weight.max(line.weight),
            None => kept.push((key, line)),
        }
    }
    kept.reverse();
    kept.into_iter().map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests;
