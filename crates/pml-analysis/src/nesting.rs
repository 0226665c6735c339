//! Estimates the cost of parsing a text before the parser runs.
//!
//! The parser recurses. Where TypeScript is ambiguous (`(` may begin the parameters of an arrow function, `<` may begin
//! type arguments) it tries one reading, backtracks and tries the other. Nested ambiguities double the work each: three
//! hundred bytes are enough to exhaust any memory. One pass over the bytes counts them. It scans strings, templates,
//! comments and regular expressions like the parser, builds nothing, and never recurses. It refuses only what nobody
//! writes by hand.

use std::ops::Range;

/// Maximum estimated number of token readings. The longest program allowed has some hundred thousand tokens, nearly all
/// of them read once or twice.
const MAX_READINGS: u64 = 1_000_000;
/// Initial capacity for nested brackets.
const USUAL_DEPTH: usize = 16;

/// Reason why a text is not parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NestingRefusal {
    /// Brackets nested deeper than the limit; span of the first one too deep.
    Deep(Range<usize>),
    /// Too many nested ambiguities; span where the limit was exceeded.
    Ambiguous(Range<usize>),
    /// A decorator, which is not supported anyway and would allow expressions among types.
    Decorator(Range<usize>),
    /// A `/` that only a parser can identify as a division or a regular expression, followed by a quote.
    Slash(Range<usize>),
}

/// Checks `source` before it is parsed.
pub(crate) fn check_nesting(source: &str, max_depth: usize) -> Result<(), NestingRefusal> {
    NestingScan::new(source.as_bytes(), max_depth).tokens()
}

/// A closing bracket without an opening one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StrayBracket {
    /// Offset of the bracket.
    pub(crate) at: usize,
    /// Offset of the innermost open bracket there, if any.
    pub(crate) open: Option<usize>,
}

/// Brackets without a partner.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UnpairedBrackets {
    /// The first closing bracket without a partner.
    pub(crate) stray: Option<StrayBracket>,
    /// Offset of the innermost bracket that is open at the end.
    pub(crate) open: Option<usize>,
}

/// Pairs the brackets of a text that could not be parsed; nothing when it cannot be scanned to its end.
pub(crate) fn find_unpaired_brackets(source: &str) -> UnpairedBrackets {
    let mut scan = NestingScan::new(source.as_bytes(), usize::MAX);
    match scan.tokens() {
        Ok(()) => UnpairedBrackets { open: scan.open_bracket(), stray: scan.stray },
        Err(_) => UnpairedBrackets::default(),
    }
}

/// What the previous token implies for the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PreviousToken {
    /// A value ended: `(` calls it, `/` divides it.
    Value,
    /// A value must follow: `(` groups, `/` begins a regular expression.
    Operator,
    /// Like `Operator`, but a following `(` belongs to a statement: `if`, `while`, `for`, `with`.
    Head,
    /// Either `Value` or `Operator`.
    Either,
}

/// An open bracket.
struct OpenBracket {
    at: usize,
    closes: u8,
    /// How often the parser may return to it.
    readings: u64,
    /// Unclosed `<` around it. Among types they are read once more in all; each of them counts again when an expression
    /// stands among the types.
    around: u64,
    /// Unclosed `<` within it.
    angles: u64,
    /// Number of `=>` since the last comma: after each, the parser looks for the end of a condition.
    arrows: u64,
    /// Whether it may begin the parameters of an arrow function or of a function type.
    doubt: bool,
    /// Whether it is the head of a statement: the token after `)` does not follow a value.
    head: bool,
}

impl OpenBracket {
    fn new(at: usize, closes: u8) -> OpenBracket {
        OpenBracket { at, closes, readings: 1, around: 0, angles: 0, arrows: 0, doubt: false, head: false }
    }

    /// How often the parser may return to what is opened in it.
    fn inner_readings(&self) -> u64 {
        self.readings.saturating_mul(if self.doubt { 2 } else { 1 })
    }

    /// How often the parser may read a token in it.
    fn token_readings(&self) -> u64 {
        self.inner_readings().saturating_mul((1 + self.around + self.angles) * (1 + self.arrows))
    }

    /// Switches from types to expressions. `new f<…>` reads its types four times.
    fn enter_expression(&mut self) {
        let around = std::mem::take(&mut self.around);
        self.readings = self.readings.saturating_mul(1 + 3 * around);
    }
}

struct NestingScan<'s> {
    text: &'s [u8],
    at: usize,
    max_depth: usize,
    frames: Vec<OpenBracket>,
    before: PreviousToken,
    line_began: bool,
    after_dot: bool,
    readings: u64,
    stray: Option<StrayBracket>,
}

impl<'s> NestingScan<'s> {
    fn new(text: &'s [u8], max_depth: usize) -> NestingScan<'s> {
        let mut frames = Vec::with_capacity(USUAL_DEPTH);
        frames.push(OpenBracket::new(0, 0));
        NestingScan {
            text,
            at: 0,
            max_depth,
            frames,
            before: PreviousToken::Operator,
            line_began: true,
            after_dot: false,
            readings: 0,
            stray: None,
        }
    }

    fn frame(&mut self) -> &mut OpenBracket {
        self.frames.last_mut().expect("the outermost frame is never closed: nothing equals its closing byte")
    }

    fn open_bracket(&self) -> Option<usize> {
        self.frames[1..].last().map(|frame| frame.at)
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    /// Scans all tokens.
    fn tokens(&mut self) -> Result<(), NestingRefusal> {
        while self.token()? {}
        Ok(())
    }

    /// Scans one token. Returns false at the end.
    fn token(&mut self) -> Result<bool, NestingRefusal> {
        let from = self.at.min(self.text.len());
        (self.at, self.line_began) = match &self.text[from..] {
            // Fast path: nearly always nothing or one blank precedes a token.
            [first, ..] if begins_token(*first) => (from, false),
            [b' ', first, ..] if begins_token(*first) => (from + 1, false),
            _ => {
                let at = self.after_space(from).min(self.text.len());
                let space = &self.text[from..at];
                (at, space.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0xE2)))
            }
        };
        let start = self.at;
        if start >= self.text.len() {
            return Ok(false);
        }
        self.count(1);
        if self.readings > MAX_READINGS {
            return Err(NestingRefusal::Ambiguous(start..start + 1));
        }
        let after_dot = std::mem::take(&mut self.after_dot);
        match self.byte(start) {
            b'(' => self.open_parenthesis()?,
            b'[' => self.open_square()?,
            b'{' => self.open(OpenBracket::new(start, b'}'), 1)?,
            close @ (b')' | b']' | b'}') => self.close(close)?,
            quote @ (b'"' | b'\'') => self.string(quote),
            b'`' => self.template()?,
            b'/' => self.slash()?,
            b'@' => return Err(NestingRefusal::Decorator(start..start + 1)),
            byte if is_word(byte) => self.word(after_dot),
            _ => self.operator(),
        }
        Ok(true)
    }

    /// Counts the readings of this many tokens.
    fn count(&mut self, tokens: u64) {
        let readings = self.frame().token_readings().saturating_mul(tokens);
        self.readings = self.readings.saturating_add(readings);
    }

    fn open_square(&mut self) -> Result<(), NestingRefusal> {
        // The name of a member may be an expression, even among the members of a type.
        let may_be_name = self.frame().closes == b'}';
        self.open(OpenBracket::new(self.at, b']'), 1)?;
        if may_be_name {
            self.frame().enter_expression();
        }
        Ok(())
    }

    fn open_parenthesis(&mut self) -> Result<(), NestingRefusal> {
        let mut frame = OpenBracket::new(self.at, b')');
        frame.head = self.before == PreviousToken::Head;
        let belongs_to_it = matches!(self.before, PreviousToken::Value | PreviousToken::Head);
        // In a template of types the parser continues after what would be a call.
        frame.doubt = (!belongs_to_it || self.frame().closes == b'`') && self.may_begin_parameters();
        self.open(frame, 1)
    }

    /// Whether the `(` here could begin parameters as well as an expression or a type.
    fn may_begin_parameters(&self) -> bool {
        let mut at = self.after_space(self.at + 1);
        loop {
            match self.byte(at) {
                b'[' | b'{' | b'.' | b')' => return true,
                byte if is_word(byte) => {}
                _ => return false,
            }
            let end = self.after_word(at);
            let next = self.after_space(end);
            match (self.byte(next), self.byte(next + 1)) {
                (b',' | b')' | b':' | b'?', _) => return true,
                (b'=', second) => return second != b'=',
                _ if is_modifier(&self.text[at..end]) => at = next,
                _ => return false,
            }
        }
    }

    fn open(&mut self, mut frame: OpenBracket, length: usize) -> Result<(), NestingRefusal> {
        if self.frames.len() > self.max_depth {
            return Err(NestingRefusal::Deep(self.at..self.at + length));
        }
        let outer = self.frame();
        frame.readings = outer.inner_readings();
        frame.around = outer.around + outer.angles;
        self.frames.push(frame);
        self.at += length;
        self.before = PreviousToken::Operator;
        Ok(())
    }

    /// A closing bracket without a partner is left to the parser.
    fn close(&mut self, byte: u8) -> Result<(), NestingRefusal> {
        self.at += 1;
        let closes = self.frame().closes;
        let in_template = closes == b'`' && byte == b'}';
        if closes != byte && !in_template {
            let stray = StrayBracket { at: self.at - 1, open: self.open_bracket() };
            self.stray.get_or_insert(stray);
            self.before = PreviousToken::Either;
            return Ok(());
        }
        let frame = self.frames.pop().expect("its closing byte has just been compared");
        if in_template {
            return self.template_text();
        }
        self.before = match byte {
            b')' if frame.head => PreviousToken::Operator,
            b'}' => PreviousToken::Either,
            _ => PreviousToken::Value,
        };
        Ok(())
    }

    fn string(&mut self, quote: u8) {
        self.at = end_of_string(self.text, self.at + 1, quote);
        self.before = PreviousToken::Value;
    }

    fn template(&mut self) -> Result<(), NestingRefusal> {
        self.at += 1;
        self.template_text()
    }

    fn template_text(&mut self) -> Result<(), NestingRefusal> {
        while self.at < self.text.len() {
            match self.byte(self.at) {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    break;
                }
                b'$' if self.byte(self.at + 1) == b'{' => {
                    return self.open(OpenBracket::new(self.at, b'`'), 2);
                }
                _ => self.at += 1,
            }
        }
        self.before = PreviousToken::Value;
        Ok(())
    }

    /// A division or a regular expression; comments have been skipped as space.
    fn slash(&mut self) -> Result<(), NestingRefusal> {
        match self.before {
            PreviousToken::Operator | PreviousToken::Head => {
                self.at = end_of_regular_expression(self.text, self.at + 1);
                self.before = PreviousToken::Value;
            }
            PreviousToken::Value => self.divide(),
            PreviousToken::Either => {
                let line =
                    self.text[self.at..].split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or(&[]);
                let matters = line.windows(2).any(|pair| matches!(pair, [b'/', b'/' | b'*']))
                    || line.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`' | 0xE2));
                if matters {
                    return Err(NestingRefusal::Slash(self.at..self.at + 1));
                }
                self.divide();
            }
        }
        Ok(())
    }

    fn divide(&mut self) {
        self.at += 1;
        self.before = PreviousToken::Operator;
    }

    fn word(&mut self, after_dot: bool) {
        let start = self.at;
        let value_before = matches!(self.before, PreviousToken::Value | PreviousToken::Either);
        self.at = self.after_word(start);
        if self.line_began && value_before {
            // Two values in a row: a statement, or a member of a type or class, has ended.
            self.rest();
        }
        self.before = match &self.text[start..self.at] {
            _ if self.members() || after_dot => PreviousToken::Value,
            b"await" if self.before == PreviousToken::Head => PreviousToken::Head,
            word => after_keyword(word),
        };
    }

    /// Scans the members `.a.b` that directly follow a word. Returns whether there are any.
    fn members(&mut self) -> bool {
        let start = self.at;
        while let [b'.', first, ..] = &self.text[self.at..]
            && is_word(*first)
            && !first.is_ascii_digit()
        {
            self.count(2);
            self.at = self.after_word(self.at + 1);
        }
        self.at > start
    }

    fn operator(&mut self) {
        let byte = self.byte(self.at);
        let pair = [byte, self.byte(self.at + 1)];
        match &pair {
            b"=>" => {
                self.frame().arrows += 1;
                self.take(2, PreviousToken::Operator);
            }
            b"++" | b"--" => self.take(2, PreviousToken::Either),
            b"<=" => self.take(2, PreviousToken::Operator),
            b"<<" => {
                self.frame().angles += 2;
                self.take(2, PreviousToken::Operator);
            }
            b"?." => self.optional(),
            // The default of a parameter.
            [b'=', next] if *next != b'=' => {
                self.frame().enter_expression();
                self.take(1, PreviousToken::Operator);
            }
            [b'<', _] => {
                self.frame().angles += 1;
                self.take(1, PreviousToken::Operator);
            }
            [b'>', _] => {
                self.frame().angles = self.frame().angles.saturating_sub(1);
                self.take(1, PreviousToken::Either);
            }
            [b';', _] => {
                self.rest();
                self.take(1, PreviousToken::Operator);
            }
            [b',', _] => {
                self.frame().arrows = 0;
                self.take(1, PreviousToken::Operator);
            }
            [b'.', b'0'..=b'9'] => {
                self.at = self.after_word(self.at + 1);
                self.before = PreviousToken::Value;
            }
            [b'.', b'.'] => self.take(3, PreviousToken::Operator),
            [b'.', _] => {
                self.after_dot = true;
                self.take(1, PreviousToken::Operator);
            }
            // The `!` of `value!` on the same line leaves it a value.
            [b'!', next] if *next != b'=' && self.before == PreviousToken::Value && !self.line_began => {
                self.take(1, PreviousToken::Value);
            }
            [_, _] => self.take(1, PreviousToken::Operator),
        }
    }

    fn optional(&mut self) {
        if self.byte(self.at + 2).is_ascii_digit() {
            return self.take(1, PreviousToken::Operator);
        }
        self.after_dot = true;
        // `a?.(` calls.
        self.take(2, PreviousToken::Value);
    }

    fn take(&mut self, length: usize, before: PreviousToken) {
        self.at = (self.at + length).min(self.text.len());
        self.before = before;
    }

    fn rest(&mut self) {
        let frame = self.frame();
        frame.angles = 0;
        frame.arrows = 0;
    }

    fn after_space(&self, mut at: usize) -> usize {
        loop {
            // Fast path: nearly always it is a blank or the first byte of a token.
            match self.byte(at) {
                b' ' | b'\n' => {
                    at += 1;
                    continue;
                }
                byte if begins_token(byte) => return at,
                _ => {}
            }
            match (self.byte(at), self.byte(at + 1)) {
                (b'/', b'/') => at = end_of_line(self.text, at),
                (b'/', b'*') => at = end_of_comment(self.text, at + 2),
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, _) => at += 1,
                (0xE2, 0x80) if matches!(self.byte(at + 2), 0xA8 | 0xA9) => at += 3,
                (0xC2, 0xA0) => at += 2,
                (0xEF, 0xBB) if self.byte(at + 2) == 0xBF => at += 3,
                _ => return at,
            }
        }
    }

    fn after_word(&self, start: usize) -> usize {
        let rest = &self.text[start..];
        let end = if self.byte(start).is_ascii_digit() {
            rest.iter().position(|byte| !is_word(*byte) && *byte != b'.')
        } else {
            rest.iter().position(|byte| !is_word(*byte))
        };
        start + end.unwrap_or(rest.len()).max(1)
    }
}

/// Whether the byte is neither space nor the beginning of a comment, whatever follows.
fn begins_token(byte: u8) -> bool {
    byte > b' ' && byte < 0x80 && byte != b'/'
}

/// Whether the word can precede a parameter.
fn is_modifier(word: &[u8]) -> bool {
    matches!(
        word,
        b"public"
            | b"private"
            | b"protected"
            | b"readonly"
            | b"override"
            | b"static"
            | b"abstract"
            | b"accessor"
            | b"async"
            | b"const"
            | b"declare"
            | b"default"
            | b"export"
            | b"in"
            | b"out"
    )
}

/// What may follow a word.
fn after_keyword(word: &[u8]) -> PreviousToken {
    match word {
        b"if" | b"while" | b"for" | b"with" => PreviousToken::Head,
        b"return" | b"throw" | b"case" | b"default" | b"do" | b"else" | b"typeof" | b"void" | b"delete"
        | b"new" | b"in" | b"instanceof" | b"await" | b"yield" | b"extends" | b"implements" | b"const"
        | b"var" | b"export" | b"function" | b"class" => PreviousToken::Operator,
        // These can be names too.
        b"of" | b"let" | b"static" | b"get" | b"set" | b"type" | b"declare" | b"abstract" | b"async"
        | b"as" | b"satisfies" | b"is" | b"keyof" | b"infer" | b"unique" | b"readonly" | b"asserts" => {
            PreviousToken::Either
        }
        _ => PreviousToken::Value,
    }
}

/// Whether the byte is part of a name, keyword or number; bytes outside ASCII count as such.
fn is_word(byte: u8) -> bool {
    WORDS[byte as usize]
}

const WORDS: [bool; 256] = {
    let mut words = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        words[byte] = byte >= 0x80
            || (byte as u8).is_ascii_alphanumeric()
            || matches!(byte as u8, b'_' | b'$' | b'#' | b'\\');
        byte += 1;
    }
    words
};

fn end_of_line(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < text.len() {
        match text[at] {
            b'\n' | b'\r' => break,
            0xE2 if matches!(text.get(at + 1..at + 3), Some([0x80, 0xA8 | 0xA9])) => break,
            _ => at += 1,
        }
    }
    at
}

fn end_of_comment(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or(&[]);
    rest.windows(2).position(|pair| pair == b"*/").map_or(text.len(), |length| from + length + 2)
}

fn end_of_string(text: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while at < text.len() {
        match text[at] {
            b'\\' if text.get(at + 1..at + 3) == Some(b"\r\n") => at += 3,
            b'\\' => at += 2,
            b'\n' | b'\r' => return at,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn end_of_regular_expression(text: &[u8], from: usize) -> usize {
    let end = end_of_line(text, from);
    let mut class = false;
    let mut at = from;
    while at < end {
        match text[at] {
            b'\\' => at += 1,
            b'[' => class = true,
            b']' => class = false,
            b'/' if !class => return at + 1,
            _ => {}
        }
        at += 1;
    }
    end
}

#[cfg(test)]
mod tests;
