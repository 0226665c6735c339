//! `pml man`: the manual page, made from the definition of the command line.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::{Arg, Command};

use crate::problem::{ErrorCode, Problem};

/// Prints the manual page.
pub(super) fn print(command: &Command) -> Result<(), Problem> {
    let mut command = command.clone();
    command.build();
    std::io::stdout().write_all(page(&command).as_bytes()).map_err(|error| {
        Problem::new(ErrorCode::Config, format!("the manual page could not be written: {error}"))
    })
}

/// The manual page in the language of `man`.
fn page(command: &Command) -> String {
    let name = command.get_name();
    let mut page = format!(
        ".TH {} 1 \"\" \"{name} {}\"\n.SH NAME\n{name} \\- {}\n",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION"),
        about(command),
    );
    writeln!(page, ".SH SYNOPSIS\n\\fB{name}\\fR [options] \\fIcommand\\fR").expect("a text takes all");
    page.push_str(".SH OPTIONS\n");
    options(command, &mut page, |_| true);
    page.push_str(".SH COMMANDS\n");
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        describe(below, name, &mut page);
    }
    page
}

/// A command with its own arguments, and the commands below it.
fn describe(command: &Command, above: &str, page: &mut String) {
    if command.get_name() == "help" {
        return;
    }
    let full = format!("{above} {}", command.get_name());
    writeln!(page, ".SS {}\n{}", escaped(&full), about(command)).expect("a text takes all");
    options(command, page, |argument| !argument.is_global_set());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        describe(below, &full, page);
    }
}

fn options(command: &Command, page: &mut String, shown: impl Fn(&Arg) -> bool) {
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set() && shown(argument)) {
        let short = argument.get_short().map(|short| format!("-{short}"));
        let long = argument.get_long().map(|long| format!("--{long}"));
        let names: Vec<String> = short.into_iter().chain(long).collect();
        let takes_value = names.is_empty() || argument.get_action().takes_values();
        let values = argument.get_value_names().unwrap_or_default();
        let values: Vec<String> = values.iter().map(|value| format!("\\fI{}\\fR", escaped(value))).collect();
        let mut head = format!("\\fB{}\\fR", escaped(&names.join(", ")));
        if takes_value {
            head = if names.is_empty() { values.join(" ") } else { format!("{head} {}", values.join(" ")) };
        }
        let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
        writeln!(page, ".TP\n{head}\n{}", escaped(&help.unwrap_or_default())).expect("a text takes all");
    }
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    escaped(&about.unwrap_or_default())
}

/// A text in which nothing is a command of `man`.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let guarded = lines.map(|line| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    });
    guarded.collect::<Vec<_>>().join("\n.br\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_option_and_no_accidental_command() {
        let option = Arg::new("deep").long("deep-end").value_name("N").help(".start of a\\line");
        let command =
            Command::new("pml").about("does it").subcommand(Command::new("go").about("goes").arg(option));
        let page = page(&command);
        expect_test::expect![[r"
            .SS pml go
            goes
            .TP
            \fB\-\-deep\-end\fR \fIN\fR
            \&.start of a\eline
        "]]
        .assert_eq(&page[page.find(".SS").unwrap()..]);
    }
}
