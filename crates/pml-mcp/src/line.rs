//! Lines of bounded length from a byte stream.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What a read gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line is in the buffer, without its end.
    Whole,
    /// The stream has ended.
    End,
    /// The line is longer than the limit; the rest of it is still unread.
    TooLong,
}

/// Reads one line into `buffer`, taking at most `limit` bytes. What follows the last line break
/// counts as a line only if something ended it: half a message is none.
pub(crate) async fn read(
    stream: &mut (impl AsyncBufRead + Unpin),
    buffer: &mut Vec<u8>,
    limit: usize,
) -> std::io::Result<Line> {
    buffer.clear();
    if buffer.capacity() > 1024 * 1024 {
        buffer.shrink_to(64 * 1024);
    }
    loop {
        let available = stream.fill_buf().await?;
        if available.is_empty() {
            return Ok(Line::End);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if buffer.len() + taken > limit {
            return Ok(Line::TooLong);
        }
        buffer.extend_from_slice(&available[..taken]);
        stream.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            if buffer.last() == Some(&b'\r') {
                buffer.pop();
            }
            return Ok(Line::Whole);
        }
    }
}

/// Whether a line holds nothing but white space or a byte order mark.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_end_at_breaks_and_the_limit_holds() {
        let mut stream = tokio::io::BufReader::with_capacity(3, &b"one\r\n\ntwo\nlonger line\nhalf"[..]);
        let mut buffer = Vec::new();
        let mut seen = Vec::new();
        loop {
            match read(&mut stream, &mut buffer, 6).await.unwrap() {
                Line::Whole => seen.push(String::from_utf8(buffer.clone()).unwrap()),
                other => break assert_eq!(other, Line::TooLong),
            }
        }
        assert_eq!(seen, ["one", "", "two"]);
    }

    #[tokio::test]
    async fn half_a_line_at_the_end_is_none() {
        let mut stream = &b"{\"a\":"[..];
        assert_eq!(read(&mut stream, &mut Vec::new(), 100).await.unwrap(), Line::End);
    }
}
