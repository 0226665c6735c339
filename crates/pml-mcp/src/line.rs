//! Lines of bounded length from a byte stream.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    /// A complete line is in the buffer, without its line break.
    Whole,
    /// The stream has ended.
    End,
    /// The line exceeds the limit; the rest of it is unread.
    TooLong,
}

/// Reads one line into `buffer`, at most `limit` bytes. Bytes after the last line break are not a line: half a message
/// is no message.
pub(crate) async fn read_line(
    stream: &mut (impl AsyncBufRead + Unpin),
    buffer: &mut Vec<u8>,
    limit: usize,
) -> std::io::Result<LineRead> {
    buffer.clear();
    if buffer.capacity() > 1024 * 1024 {
        buffer.shrink_to(64 * 1024);
    }
    loop {
        let available = stream.fill_buf().await?;
        if available.is_empty() {
            return Ok(LineRead::End);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(available.len());
        if buffer.len() + taken > limit {
            return Ok(LineRead::TooLong);
        }
        buffer.extend_from_slice(&available[..taken]);
        stream.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            if buffer.last() == Some(&b'\r') {
                buffer.pop();
            }
            return Ok(LineRead::Whole);
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
            match read_line(&mut stream, &mut buffer, 6).await.unwrap() {
                LineRead::Whole => seen.push(String::from_utf8(buffer.clone()).unwrap()),
                other => break assert_eq!(other, LineRead::TooLong),
            }
        }
        assert_eq!(seen, ["one", "", "two"]);
    }

    #[tokio::test]
    async fn half_a_line_at_the_end_is_none() {
        let mut stream = &b"{\"a\":"[..];
        assert_eq!(read_line(&mut stream, &mut Vec::new(), 100).await.unwrap(), LineRead::End);
    }
}
