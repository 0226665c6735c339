//! What the calls of a real run would cost.

use std::collections::BTreeMap;

use pml_model::ToolId;
use rust_decimal::Decimal;

use crate::approve::specificity;
use crate::config::{Price, PriceRule};
use crate::report::{CostAmount, EstimatedCost};

/// The cost of calls of `tools`; `None` if the operator gives no prices. Calls of a `free` tool cost nothing unless a
/// price says otherwise.
pub(super) fn estimate<'t>(
    prices: &[PriceRule],
    tools: impl Iterator<Item = &'t ToolId>,
    free: impl Fn(&ToolId) -> bool,
) -> Option<EstimatedCost> {
    if prices.is_empty() {
        return None;
    }
    let mut sums: BTreeMap<&str, Decimal> = BTreeMap::new();
    let (mut priced_calls, mut unpriced_calls) = (0, 0);
    for tool in tools {
        match price_of(prices, tool) {
            Some(price) => {
                *sums.entry(price.currency).or_default() += price.amount;
                priced_calls += 1;
            }
            None => unpriced_calls += u32::from(!free(tool)),
        }
    }
    let amounts = sums
        .into_iter()
        .map(|(currency, amount)| CostAmount { amount: amount.normalize(), currency: currency.to_owned() });
    Some(EstimatedCost { amounts: amounts.collect(), priced_calls, unpriced_calls })
}

/// The price of one call: that of the most specific pattern, as for rules.
fn price_of<'p>(prices: &'p [PriceRule], tool: &ToolId) -> Option<&'p Price> {
    let covering = prices.iter().filter(|rule| rule.subject.covers(tool.server.as_str(), &tool.tool));
    // Of equally specific patterns the first in the file counts.
    covering.rev().max_by_key(|rule| specificity(&rule.subject)).map(|rule| &rule.price)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{RuleSubject, WildcardPattern};

    fn rule(server: &str, tool: &str, amount: &str, currency: &'static str) -> PriceRule {
        PriceRule {
            subject: RuleSubject { server: WildcardPattern::new(server), tool: WildcardPattern::new(tool) },
            price: Price { amount: Decimal::from_str_exact(amount).unwrap(), currency },
            label: String::new(),
            place: String::new(),
        }
    }

    fn told(prices: &[PriceRule], tools: &[&str]) -> Option<String> {
        let tools: Vec<ToolId> = tools.iter().map(|tool| ToolId::parse(tool).unwrap()).collect();
        estimate(prices, tools.iter(), |tool| tool.server.as_str() == "fs").map(|cost| cost.to_string())
    }

    #[test]
    fn the_most_specific_price_of_each_call_counts() {
        let prices = [
            rule("*", "*", "1", "EUR"),
            rule("hub", "*", "0.1", "USD"),
            rule("hub", "search*", "0.2", "USD"),
            rule("hub", "search", "0.35", "USD"),
            rule("h*", "get*", "0.001", "USD"),
            rule("*b", "get*", "9", "USD"),
        ];
        for (tool, cost) in [
            ("hub:search", "0.35 USD"),
            ("hub:search_code", "0.2 USD"),
            ("hub:list", "0.1 USD"),
            ("hub:get", "0.001 USD"),
            ("mail:send", "1 EUR"),
        ] {
            assert_eq!(told(&prices, &[tool]), Some(format!("{cost} for 1 call")), "{tool}");
        }
    }

    #[test]
    fn sums_are_exact_by_currency_and_calls_without_a_price_are_counted() {
        let prices = [rule("hub", "*", "0.1", "USD"), rule("mail", "send", "0.20", "EUR")];
        let tools = ["hub:a", "hub:b", "hub:c", "mail:send", "mail:list", "fs:read"];
        assert_eq!(
            told(&prices, &tools).as_deref(),
            Some("0.2 EUR + 0.3 USD for 4 calls; 1 call has no price")
        );
        assert_eq!(told(&prices, &["x:a", "x:b"]).as_deref(), Some("unknown; 2 calls have no price"));
        assert_eq!(told(&prices, &["fs:read"]).as_deref(), Some("nothing"));
        assert_eq!(told(&[], &tools), None);
    }
}
