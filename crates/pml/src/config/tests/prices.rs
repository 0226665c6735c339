//! Prices of calls.

use super::complaints::complaints;
use super::*;

#[test]
fn prices_are_read_for_servers_tools_and_patterns() {
    let home = user(
        "[prices]\ngithub = \"0 USD\"\n\"github:search_*\" = \" 0.0020  EUR \"\n\"*\" = \"1000000 JPY\"\n",
    );
    let line = |rule: &PriceRule| {
        let (subject, Price { amount, currency }) = (&rule.subject, &rule.price);
        let (server, tool) = (subject.server.as_str(), subject.tool.as_str());
        format!("{} {}: {server} {tool}: {amount} {currency}\n", rule.place, rule.label)
    };
    let prices: String = home.load().unwrap().prices.iter().map(line).collect();
    expect![[r#"
        ~/pml/pml.toml:2 `github` in [prices]: github *: 0 USD
        ~/pml/pml.toml:3 `github:search_*` in [prices]: github search_*: 0.0020 EUR
        ~/pml/pml.toml:4 `*` in [prices]: * *: 1000000 JPY
    "#]]
    .assert_eq(&prices);
    assert!(user("").load().unwrap().prices.is_empty());
}

#[test]
fn wrong_prices_are_told_with_their_place() {
    expect![[r#"
        ~/pml/pml.toml:1:10: `prices` must be a table, not a text
        hint: give it keys and values of its own
        ~/pml/pml.toml:2:10: `prices.github` must be a text, not a number with a fraction
        hint: write an amount and a currency, such as "0.002 USD"
        ~/pml/pml.toml:2:10: `prices.github` must be a text, not a number with a fraction
        hint: write an amount and a currency, such as "0.002 USD"
        ~/pml/pml.toml:2:10: `prices.github` must be a text, not a number
        hint: write an amount and a currency, such as "0.002 USD"
        ~/pml/pml.toml:2:10: `prices.github` is ``
        hint: write an amount and a currency, such as "0.002 USD"
        ~/pml/pml.toml:2:10: `prices.github` is `0.1`
        hint: write an amount and a currency, such as "0.002 USD"
        ~/pml/pml.toml:2:10: `prices.github` is `NaN USD`
        hint: write an amount and a currency, such as "0.002 USD"
        ~/pml/pml.toml:2:10: `prices.github` is `inf USD`
        hint: write an amount and a currency, such as "0.002 USD"
        ~/pml/pml.toml:2:10: `prices.github` is `free USD`
        hint: write an amount and a currency, such as "0.002 USD"
        ~/pml/pml.toml:2:10: `prices.github` is `-0.1 USD`
        hint: write an amount between 0 and 1000000, for one call
        ~/pml/pml.toml:2:10: `prices.github` is `1000001 USD`
        hint: write an amount between 0 and 1000000, for one call
        ~/pml/pml.toml:2:10: `prices.github` is in `usd`, which is no currency
        hint: write the code of a currency, such as `USD` or `EUR`
        ~/pml/pml.toml:2:10: `prices.github` is in `credits`, which is no currency
        hint: write the code of a currency, such as `USD` or `EUR`
        ~/pml/pml.toml:2:1: `f s` names no tools
        hint: write a server (`github`), a tool (`"github:search"`) or a pattern (`"github:get_*"`)
        ~/pml/pml.toml:3:1: `github:*` is about the same tools as `github` in [prices] at ~/pml/pml.toml:2
        hint: keep one of them
    "#]]
    .assert_eq(&complaints(&[
        "prices = \"1 EUR\"",
        "[prices]\ngithub = 0.1",
        "[prices]\ngithub = nan",
        "[prices]\ngithub = 1",
        "[prices]\ngithub = \"\"",
        "[prices]\ngithub = \"0.1\"",
        "[prices]\ngithub = \"NaN USD\"",
        "[prices]\ngithub = \"inf USD\"",
        "[prices]\ngithub = \"free USD\"",
        "[prices]\ngithub = \"-0.1 USD\"",
        "[prices]\ngithub = \"1000001 USD\"",
        "[prices]\ngithub = \"0.1 usd\"",
        "[prices]\ngithub = \"0.1 credits\"",
        "[prices]\n\"f s\" = \"0.1 USD\"",
        "[prices]\ngithub = \"0.1 USD\"\n\"github:*\" = \"0.2 USD\"",
    ]));
}

#[test]
fn a_price_of_a_misspelt_server_is_warned_about() {
    let home = user("[prices]\nhtp = \"0.1 USD\"\n");
    let warnings = home.load().unwrap().findings.warnings;
    let told: Vec<String> =
        warnings.iter().map(|warning| format!("{} ({})", warning.message, warning.hint)).collect();
    assert_eq!(
        told,
        ["~/pml/pml.toml:2: `htp` in [prices] is about no server there is (did you mean `http`?)"]
    );
}
