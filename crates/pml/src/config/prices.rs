//! What calls cost: `[prices]`.
//!
//! Prices decide nothing, so they are no rules of `[permissions]`. Dry runs add them up.

use rust_decimal::Decimal;

use super::error::ConfigComplaint;
use super::node::{ConfigMember, ConfigValue};
use super::permission::{RuleSubject, read_subject};
use super::section::{Section, wrong_type};

/// The highest price of one call. The sum over all calls of a run cannot overflow.
const MAX_AMOUNT: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);

const EXAMPLE: &str = "write an amount and a currency, such as \"0.002 USD\"";

/// The codes of currencies in ISO 4217.
const CURRENCIES: &[&str] = &[
    "AED", "AFN", "ALL", "AMD", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BHD", "BIF", "BMD",
    "BND", "BOB", "BRL", "BSD", "BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHF", "CLP", "CNY", "COP", "CRC",
    "CUP", "CVE", "CZK", "DJF", "DKK", "DOP", "DZD", "EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL",
    "GHS", "GIP", "GMD", "GNF", "GTQ", "GYD", "HKD", "HNL", "HTG", "HUF", "IDR", "ILS", "INR", "IQD", "IRR",
    "ISK", "JMD", "JOD", "JPY", "KES", "KGS", "KHR", "KMF", "KPW", "KRW", "KWD", "KYD", "KZT", "LAK", "LBP",
    "LKR", "LRD", "LSL", "LYD", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT", "MOP", "MRU", "MUR", "MVR", "MWK",
    "MXN", "MYR", "MZN", "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "OMR", "PAB", "PEN", "PGK", "PHP", "PKR",
    "PLN", "PYG", "QAR", "RON", "RSD", "RUB", "RWF", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE",
    "SOS", "SRD", "SSP", "STN", "SVC", "SYP", "SZL", "THB", "TJS", "TMT", "TND", "TOP", "TRY", "TTD", "TWD",
    "TZS", "UAH", "UGX", "USD", "UYU", "UZS", "VED", "VES", "VND", "VUV", "WST", "XAF", "XCD", "XCG", "XOF",
    "XPF", "YER", "ZAR", "ZMW", "ZWG",
];

/// What one call of some tools costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceRule {
    /// The tools that have the price.
    pub subject: RuleSubject,
    /// The price of one call.
    pub price: Price,
    /// The rule for display, such as `` `github:*` in [prices] ``.
    pub label: String,
    /// File and line, for messages.
    pub place: String,
}

/// A sum of money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// The amount; never negative.
    pub amount: Decimal,
    /// The code of the currency in ISO 4217.
    pub currency: &'static str,
}

/// Reads `[prices]`. Two prices for the same tools are an error, since it would be unclear which applies.
pub(super) fn prices(root: &Section<'_>) -> Result<Vec<PriceRule>, ConfigComplaint> {
    let Some(node) = root.get("prices") else { return Ok(Vec::new()) };
    let table = Section::open(root.file, node, "prices")?;
    let mut rules: Vec<PriceRule> = Vec::new();
    for member in table.members() {
        let rule = rule(&table, member)?;
        if let Some(other) = rules.iter().find(|other| other.subject == rule.subject) {
            let message =
                format!("`{}` is about the same tools as {} at {}", member.key, other.label, other.place);
            return Err(table.file.complaint(member.key_at, message).hint("keep one of them"));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn rule(table: &Section<'_>, member: &ConfigMember) -> Result<PriceRule, ConfigComplaint> {
    let place = table.file.complaint(member.key_at, "");
    Ok(PriceRule {
        subject: read_subject(table.file, member)?,
        price: price(table, member)?,
        label: format!("`{}` in [prices]", member.key),
        place: format!("{}:{}", place.shown_path, place.line),
    })
}

fn price(table: &Section<'_>, member: &ConfigMember) -> Result<Price, ConfigComplaint> {
    let path = table.member_path(&member.key);
    let ConfigValue::Text(text) = &member.node.value else {
        return Err(wrong_type(table.file, &member.node, &path, "a text").hint(EXAMPLE));
    };
    let Some((amount, unit)) = text.trim().split_once(char::is_whitespace) else {
        return Err(unreadable(table, member, text));
    };
    let Ok(amount) = Decimal::from_str_exact(amount) else { return Err(unreadable(table, member, text)) };
    let wrong = |what: String| table.file.complaint(member.node.at, what);
    if amount.is_sign_negative() || amount > MAX_AMOUNT {
        return Err(wrong(format!("`{path}` is `{text}`"))
            .hint(format!("write an amount between 0 and {MAX_AMOUNT}, for one call")));
    }
    let unit = unit.trim();
    let Some(currency) = CURRENCIES.iter().find(|currency| **currency == unit) else {
        let hint = "write the code of a currency, such as `USD` or `EUR`";
        return Err(wrong(format!("`{path}` is in `{unit}`, which is no currency")).hint(hint));
    };
    Ok(Price { amount, currency })
}

fn unreadable(table: &Section<'_>, member: &ConfigMember, text: &str) -> ConfigComplaint {
    let message = format!("`{}` is `{text}`", table.member_path(&member.key));
    table.file.complaint(member.node.at, message).hint(EXAMPLE)
}
