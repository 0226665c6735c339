//! Tables: aligned by what a terminal shows, as wide as it at most, with states in colour.
//!
//! Output that goes elsewhere is never cut: programs read it. Colours are removed there by `out`.

use terminal_size::{Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::style::{BOLD_RED, CYAN, DIM, GREEN, RESET, YELLOW};

/// Columns of blanks between two columns of a table.
const GAP: usize = 2;
/// A column is not made narrower than this: less would tell nothing.
const NARROWEST: usize = 10;

/// A table whose columns are as wide as their widest cells, or narrower where the terminal has no room for them.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let width = terminal_size_of(std::io::stdout()).map(|(Width(columns), _)| usize::from(columns));
    draw(head, rows, width)
}

fn draw(head: &[&str], rows: &[Vec<String>], room: Option<usize>) -> String {
    let natural = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([head[column].width()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..head.len()).map(natural).collect();
    if let Some(room) = room {
        narrow(&mut widths, room);
    }
    let is_state = |column: usize| ["state", "status"].contains(&head[column].to_lowercase().as_str());
    let line = |cells: &[&str]| {
        let last = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        let padded = cells[..last].iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let shown = fitted(cell, *width);
            let blanks = if column + 1 == last { 0 } else { width.saturating_sub(shown.width()) };
            let colour = if is_state(column) { state_colour(cell) } else { "" };
            let end = if colour.is_empty() { "" } else { RESET };
            format!("{colour}{shown}{end}{}", " ".repeat(blanks))
        });
        padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    let mut lines = vec![format!("{DIM}{}{RESET}", line(head))];
    lines.extend(rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>())));
    lines.join("\n")
}

/// Makes columns narrower until they fit: first the last one, which holds the longest texts, then the widest of the others.
/// The first one, which names the row, stays whole.
fn narrow(widths: &mut [usize], room: usize) {
    let count = widths.len();
    let mut over = (widths.iter().sum::<usize>() + GAP * count.saturating_sub(1)).saturating_sub(room);
    if let Some(last) = widths.last_mut().filter(|_| count > 1) {
        let less = over.min(last.saturating_sub(NARROWEST));
        *last -= less;
        over -= less;
    }
    while over > 0 {
        let between = widths.get_mut(1..count.saturating_sub(1)).unwrap_or_default();
        let Some(widest) = between.iter_mut().max().filter(|width| **width > NARROWEST) else { return };
        *widest -= 1;
        over -= 1;
    }
}

/// The text, cut to so many columns; what is missing is shown by `…`.
fn fitted(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(character);
    }
    kept.trim_end().to_owned() + "…"
}

/// The colour of a state, by its first word; empty for one that needs no attention.
fn state_colour(state: &str) -> &'static str {
    let word = state.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    match word.to_lowercase().as_str() {
        "done" | "active" | "ok" | "success" | "ready" | "viable" => GREEN,
        "failed" | "error" | "down" | "degraded" | "expired" | "denied" | "aborted" => BOLD_RED,
        "waiting" | "sleeps" | "interrupted" | "awaiting" | "sign" | "in" | "unknown" | "partial" => YELLOW,
        "running" | "starting" => CYAN,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[&[&str]]) -> Vec<Vec<String>> {
        cells.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_are_aligned_by_what_a_terminal_shows() {
        let drawn =
            draw(&["name", "for"], &rows(&[&["数える", "計算"], &["e\u{301}te", "x"], &["abc", "y"]]), None);
        assert_eq!(plain(&drawn), "name    for\n数える  計算\ne\u{301}te     x\nabc     y");
    }

    #[test]
    fn a_table_fits_the_terminal_and_keeps_its_names() {
        let long = rows(&[&[
            "run_0123456789",
            "failed TOOL_ERROR_OF_A_SERVER",
            "add up the sales of a quarter 数える数える",
        ]]);
        let head = ["run", "state", "for"];
        let fits = |room: usize| plain(&draw(&head, &long, Some(room)));
        for room in [40, 52, 60, 80] {
            let drawn = fits(room);
            assert!(drawn.lines().all(|line| line.width() <= room), "{room}: {drawn}");
            assert!(drawn.contains("run_0123456789"), "{drawn}");
        }
        assert!(fits(60).contains("failed TOOL_ERROR_OF_A_SERVER  add up the s…"), "{}", fits(60));
        assert!(fits(200).ends_with("数える数える") && !fits(200).contains('…'));
        assert!(plain(&draw(&head, &long, None)).ends_with("数える数える"), "what is no terminal gets all");
        assert!(fits(10).contains("run_0123456789"), "too narrow for anything");
    }

    #[test]
    fn states_have_colours_and_nothing_else_does() {
        let drawn = draw(
            &["run", "state"],
            &rows(&[&["done", "done"], &["b", "failed X"], &["c", "sleeps until"], &["d", "planned"]]),
            None,
        );
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[1], format!("done  {GREEN}done{RESET}"));
        assert_eq!(lines[2], format!("b     {BOLD_RED}failed X{RESET}"));
        assert_eq!(lines[3], format!("c     {YELLOW}sleeps until{RESET}"));
        assert_eq!(lines[4], "d     planned");
    }

    #[test]
    fn empty_cells_at_the_end_leave_no_blanks() {
        assert_eq!(plain(&draw(&["a", "b"], &rows(&[&["x", ""], &["", ""]]), Some(5))), "a  b\nx\n");
    }
}
