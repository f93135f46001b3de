//! Rust text, split just far enough for the house rules.
//!
//! It distinguishes comments, literals and code, so that a word in a message is not mistaken for a
//! call, and a rule can name in a literal what it forbids. Nothing else is parsed: macros are not
//! expanded and names are not resolved.

/// A Rust file, split into tokens and comments.
#[derive(Debug)]
pub(crate) struct Source {
    /// The words and punctuation marks of the code.
    tokens: Vec<Token>,
    /// The comments line by line, with everything else replaced by spaces.
    pub(crate) comments: Vec<String>,
}

/// A word or a punctuation mark of the code, and its line, counted from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// What a character belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

impl Source {
    /// Splits a file.
    pub(crate) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let parts = parts(&chars);
        let view = |wanted: Part| -> String {
            let keep = |(char, part): (&char, &Part)| match *char {
                '\n' => '\n',
                char if *part == wanted => char,
                _ => ' ',
            };
            chars.iter().zip(&parts).map(keep).collect()
        };
        Self {
            tokens: tokens(&view(Part::Code)),
            comments: view(Part::Comment).lines().map(|line| line.trim().to_owned()).collect(),
        }
    }

    /// Returns all tokens.
    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Returns the tokens without the items marked `#[cfg(test)]`.
    pub(crate) fn tokens_of_product(&self) -> Vec<Token> {
        let mut kept = Vec::new();
        let mut rest = self.tokens.as_slice();
        while let Some(token) = rest.first() {
            if spells(rest, &["#", "[", "cfg", "(", "test", ")", "]"]) {
                rest = after_item(rest);
            } else {
                kept.push(token.clone());
                rest = &rest[1..];
            }
        }
        kept
    }
}

/// Whether the tokens begin with these.
pub(crate) fn spells(tokens: &[Token], wanted: &[&str]) -> bool {
    tokens.len() >= wanted.len() && tokens.iter().zip(wanted).all(|(own, word)| own.text == *word)
}

/// Returns the lines on which a path such as `std::fs` is named, also inside `use std::{fs, io}`.
pub(crate) fn lines_naming(tokens: &[Token], path: &[&str]) -> Vec<usize> {
    let Some((first, rest)) = path.split_first() else { return Vec::new() };
    let mut lines = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if token.text == *first {
            lines.extend(follow(&tokens[index..], rest));
        }
    }
    lines
}

/// Returns the line on which `path` continues after the first of `tokens`, if it does.
fn follow(tokens: &[Token], path: &[&str]) -> Option<usize> {
    let Some((next, rest)) = path.split_first() else { return tokens.first().map(|t| t.line) };
    if !spells(tokens.get(1..)?, &[":", ":"]) {
        return None;
    }
    let tokens = tokens.get(3..)?;
    if tokens.first()?.text == *next {
        return follow(tokens, rest);
    }
    if tokens.first()?.text != "{" {
        return None;
    }
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return None,
            "}" => depth -= 1,
            word if word == *next && depth == 1 => {
                let before = tokens[index - 1].text.as_str();
                if matches!(before, "{" | ",")
                    && let Some(line) = follow(&tokens[index..], rest)
                {
                    return Some(line);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns what follows the first item of the tokens, after its `;` or its closing brace.
fn after_item(tokens: &[Token]) -> &[Token] {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    return &tokens[index + 1..];
                }
            }
            ";" if depth == 0 => return &tokens[index + 1..],
            _ => {}
        }
    }
    &[]
}

fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, text) in code.lines().enumerate() {
        let line = index + 1;
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let end = if is_word(first) {
                rest.find(|char| !is_word(char)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let (token, behind) = rest.split_at(end);
            tokens.push(Token { line, text: token.to_owned() });
            rest = behind.trim_start();
        }
    }
    tokens
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Returns for each character what it belongs to. The quotes of a literal count as part of it.
fn parts(chars: &[char]) -> Vec<Part> {
    let mut parts = Vec::with_capacity(chars.len());
    while parts.len() < chars.len() {
        let at = parts.len();
        let rest = &chars[at..];
        let in_word = at > 0 && is_word(chars[at - 1]);
        let (part, length) = match rest {
            ['/', '/', ..] => (Part::Comment, line_comment(rest)),
            ['/', '*', ..] => (Part::Comment, block_comment(rest)),
            ['"', ..] => (Part::Literal, quoted(rest, '"')),
            ['\'', '\\', ..] | ['\'', _, '\'', ..] => (Part::Literal, quoted(rest, '\'')),
            ['r', ..] | ['b' | 'c', 'r', ..] if !in_word => match raw_string(rest) {
                Some(length) => (Part::Literal, length),
                None => (Part::Code, 1),
            },
            _ => (Part::Code, 1),
        };
        let end = chars.len().min(at + length);
        parts.resize(end, part);
    }
    parts
}

fn line_comment(chars: &[char]) -> usize {
    chars.iter().position(|char| *char == '\n').unwrap_or(chars.len())
}

fn block_comment(chars: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < chars.len() {
        match &chars[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(chars: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Returns the length of `r#"…"#` and similar literals, if one begins here.
fn raw_string(chars: &[char]) -> Option<usize> {
    let prefix = 1 + chars.iter().position(|char| *char == 'r')?;
    let hashes = chars[prefix..].iter().take_while(|char| **char == '#').count();
    let start = prefix + hashes + 1;
    if chars.get(start - 1) != Some(&'"') {
        return None;
    }
    let closing = |at: usize| {
        chars[at] == '"'
            && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    let end = (start..chars.len()).find(|at| closing(*at))?;
    Some(end + 1 + hashes)
}

#[cfg(test)]
mod tests;
