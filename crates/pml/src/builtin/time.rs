//! Dates, times and time zones.
//!
//! Only `now` reads the clock. The time zone database is built into the program, so every machine gives the same
//! results; the machine's own zone is never used.

use jiff::civil::DateTime;
use jiff::fmt::{rfc2822, strtime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit, Zoned};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tool::{
    BuiltinFailure, BuiltinSpec, BuiltinTool, QuotedName, READS, StopSignal, failure, object_schema,
};

/// The longest time or pattern, in bytes.
const MAX_TEXT_BYTES: usize = 200;

/// The tools of the server.
pub(super) fn tools() -> Vec<BuiltinTool> {
    vec![
        BuiltinTool::blocking(now_spec(), now),
        BuiltinTool::blocking(parse_spec(), parse),
        BuiltinTool::blocking(convert_spec(), convert),
        BuiltinTool::blocking(add_spec(), add),
        BuiltinTool::blocking(diff_spec(), diff),
    ]
}

/// A point in time in one zone.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TimeAnswer {
    time: String,
    timezone: String,
    weekday: String,
    unix_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

fn moment_schema(more: &[(&str, Value)]) -> Value {
    let mut properties = json!({
        "time": { "type": "string", "format": "date-time", "description": "RFC 3339, with the offset of the zone." },
        "timezone": { "type": "string", "description": "The zone it is told in." },
        "weekday": { "type": "string", "description": "Such as `Monday`." },
        "unixMs": { "type": "integer", "description": "Milliseconds since 1970 in UTC." },
    });
    let mut required = vec!["time", "timezone", "weekday", "unixMs"];
    for (name, schema) in more {
        properties[*name] = schema.clone();
        required.push(name);
    }
    object_schema(properties, &required)
}

fn moment(time: &Zoned) -> TimeAnswer {
    TimeAnswer {
        time: time.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string(),
        timezone: time.time_zone().iana_name().map_or_else(|| time.offset().to_string(), ToOwned::to_owned),
        weekday: time.strftime("%A").to_string(),
        unix_ms: time.timestamp().as_millisecond(),
        text: None,
    }
}

fn time_schema(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_TEXT_BYTES, "description": description })
}

fn zone_schema(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "description": description })
}

const TIME: &str =
    "Such as `2026-03-01T09:30:00Z`, `2026-03-01 09:30`, `2026-03-01` or `Sun, 1 Mar 2026 09:30:00 GMT`.";
const ZONE: &str = "IANA name such as `Europe/Paris`, or `UTC`";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeNowArguments {
    timezone: Option<String>,
}

fn now_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "now",
        title: "Tell the time",
        description:
            "Tells the current date and time. It reads the clock, so every call may answer differently."
                .into(),
        effect: READS,
        input: object_schema(json!({ "timezone": zone_schema(&format!("{ZONE}; UTC unless told.")) }), &[]),
        output: moment_schema(&[]),
    }
}

fn now(arguments: &TimeNowArguments, _: &StopSignal) -> Result<TimeAnswer, BuiltinFailure> {
    Ok(moment(&Timestamp::now().to_zoned(zone(arguments.timezone.as_deref())?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeParseArguments {
    text: String,
    pattern: String,
    timezone: Option<String>,
}

fn parse_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "parse",
        title: "Parse a time",
        description:
            "Reads a date or time that is written by a pattern of strptime, such as `%d/%m/%Y %H:%M`. \
                      Times in common forms need no parsing: the other tools read them as they are."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "text": time_schema("The text to read."),
                "pattern": time_schema("How it is written: `%Y` year, `%m` month, `%d` day, `%H` hour, `%M` minute, `%S` second, `%z` offset, `%s` Unix seconds."),
                "timezone": zone_schema(&format!("{ZONE}: the zone of a text that names none; UTC unless told.")),
            }),
            &["text", "pattern"],
        ),
        output: moment_schema(&[]),
    }
}

fn parse(arguments: &TimeParseArguments, _: &StopSignal) -> Result<TimeAnswer, BuiltinFailure> {
    check_text_length("text", &arguments.text)?;
    check_text_length("pattern", &arguments.pattern)?;
    let zone = zone(arguments.timezone.as_deref())?;
    let unfit = |error| {
        failure!("{} does not fit {}: {error}", QuotedName(&arguments.text), QuotedName(&arguments.pattern))
    };
    let parsed = strtime::parse(&arguments.pattern, &arguments.text).map_err(unfit)?;
    if let Ok(time) = parsed.to_timestamp() {
        return Ok(moment(&time.to_zoned(zone)));
    }
    let civil = match (parsed.to_datetime(), parsed.to_date()) {
        (Ok(time), _) => time,
        (Err(_), Ok(date)) => date.at(0, 0, 0, 0),
        (Err(_), Err(error)) => return Err(unfit(error)),
    };
    civil.to_zoned(zone).map(|time| moment(&time)).map_err(unfit)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeConvertArguments {
    time: String,
    from: Option<String>,
    timezone: Option<String>,
    pattern: Option<String>,
}

fn convert_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "convert",
        title: "Convert and format a time",
        description: "Tells a time in another time zone, and writes it by a pattern of strftime.".into(),
        effect: READS,
        input: object_schema(
            json!({
                "time": time_schema(TIME),
                "from": zone_schema(&format!("{ZONE}: the zone of a time that names none; UTC unless told.")),
                "timezone": zone_schema(&format!("{ZONE}: the zone to tell it in; `from` unless told.")),
                "pattern": time_schema("How to write `text`; `%Y-%m-%d %H:%M:%S` unless told."),
            }),
            &["time"],
        ),
        output: moment_schema(&[(
            "text",
            json!({ "type": "string", "description": "The time by the pattern." }),
        )]),
    }
}

fn convert(arguments: &TimeConvertArguments, _: &StopSignal) -> Result<TimeAnswer, BuiltinFailure> {
    let from = zone(arguments.from.as_deref())?;
    let to = match &arguments.timezone {
        Some(name) => zone(Some(name))?,
        None => from.clone(),
    };
    let time = read(&arguments.time, &from)?.with_time_zone(to);
    let pattern = arguments.pattern.as_deref().unwrap_or("%Y-%m-%d %H:%M:%S");
    check_text_length("pattern", pattern)?;
    let text = strtime::format(pattern, &time)
        .map_err(|error| failure!("pattern {} cannot be written: {error}", QuotedName(pattern)))?;
    Ok(TimeAnswer { text: Some(text), ..moment(&time) })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeAddArguments {
    time: String,
    timezone: Option<String>,
    #[serde(default)]
    years: i64,
    #[serde(default)]
    months: i64,
    #[serde(default)]
    weeks: i64,
    #[serde(default)]
    days: i64,
    #[serde(default)]
    hours: i64,
    #[serde(default)]
    minutes: i64,
    #[serde(default)]
    seconds: i64,
}

fn add_spec() -> BuiltinSpec {
    let amount = |unit: &str| json!({ "type": "integer", "description": format!("{unit} to add; negative to go back.") });
    BuiltinSpec {
        name: "add",
        title: "Add to a time",
        description: "Adds years, months, weeks, days, hours, minutes and seconds to a time. Calendar units follow \
                      the calendar of the zone: a month after January 31 is the last of February, and a day across \
                      a change of the clocks keeps the time of day.".into(),
        effect: READS,
        input: object_schema(
            json!({
                "time": time_schema(TIME),
                "timezone": zone_schema(&format!("{ZONE}: the zone to calculate in; UTC unless told.")),
                "years": amount("Years"),
                "months": amount("Months"),
                "weeks": amount("Weeks"),
                "days": amount("Days"),
                "hours": amount("Hours"),
                "minutes": amount("Minutes"),
                "seconds": amount("Seconds"),
            }),
            &["time"],
        ),
        output: moment_schema(&[]),
    }
}

fn add(arguments: &TimeAddArguments, _: &StopSignal) -> Result<TimeAnswer, BuiltinFailure> {
    let zone = zone(arguments.timezone.as_deref())?;
    let time = read(&arguments.time, &zone)?.with_time_zone(zone);
    // Calendar units first, clock units second, because the units of one span must not differ in sign.
    let far = |error: jiff::Error| failure!("the time cannot be calculated: {error}");
    let mut sum = time;
    for span in [
        Span::new().try_years(arguments.years),
        Span::new().try_months(arguments.months),
        Span::new().try_weeks(arguments.weeks),
        Span::new().try_days(arguments.days),
        Span::new().try_hours(arguments.hours),
        Span::new().try_minutes(arguments.minutes),
        Span::new().try_seconds(arguments.seconds),
    ] {
        sum = sum.checked_add(span.map_err(far)?).map_err(far)?;
    }
    Ok(moment(&sum))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeDiffArguments {
    from: String,
    to: String,
    timezone: Option<String>,
}

#[derive(Serialize)]
struct TimeDiffAnswer {
    seconds: f64,
    days: i32,
    duration: String,
}

fn diff_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "diff",
        title: "Time between",
        description:
            "Counts the days and seconds between two dates or times; negative when the second is earlier."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "from": time_schema(TIME),
                "to": time_schema("The other time, in the same forms."),
                "timezone": zone_schema(&format!("{ZONE}: the zone to calculate in; UTC unless told.")),
            }),
            &["from", "to"],
        ),
        output: object_schema(
            json!({
                "seconds": { "type": "number", "description": "The whole difference in seconds." },
                "days": { "type": "integer", "description": "The whole days in it, by the calendar." },
                "duration": { "type": "string", "description": "ISO 8601 by the calendar, such as `P1Y2M3DT4H`." },
            }),
            &["seconds", "days", "duration"],
        ),
    }
}

fn diff(arguments: &TimeDiffArguments, _: &StopSignal) -> Result<TimeDiffAnswer, BuiltinFailure> {
    let zone = zone(arguments.timezone.as_deref())?;
    let from = read(&arguments.from, &zone)?.with_time_zone(zone.clone());
    let to = read(&arguments.to, &zone)?.with_time_zone(zone);
    let far = |error: jiff::Error| failure!("the difference cannot be calculated: {error}");
    Ok(TimeDiffAnswer {
        seconds: to.timestamp().duration_since(from.timestamp()).as_secs_f64(),
        days: from.until((Unit::Day, &to)).map_err(far)?.get_days(),
        duration: from.until((Unit::Year, &to)).map_err(far)?.to_string(),
    })
}

fn zone(name: Option<&str>) -> Result<TimeZone, BuiltinFailure> {
    let Some(name) = name else { return Ok(TimeZone::UTC) };
    check_text_length("timezone", name)?;
    TimeZone::get(name).map_err(|_| {
        failure!("there is no time zone {}; use an IANA name such as `Europe/Paris`", QuotedName(name))
    })
}

/// Parses a time in one of the common forms; `zone` applies where the text names none.
fn read(text: &str, zone: &TimeZone) -> Result<Zoned, BuiltinFailure> {
    check_text_length("time", text)?;
    let text = text.trim();
    if let Ok(time) = text.parse::<Zoned>() {
        return Ok(time);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.to_zoned(zone.clone()));
    }
    if let Ok(time) = rfc2822::parse(text) {
        return Ok(time);
    }
    let unread = |error: jiff::Error| {
        failure!(
            "{} is no time that can be read: {error}; write it like `2026-03-01T09:30:00Z`",
            QuotedName(text)
        )
    };
    text.parse::<DateTime>().and_then(|time| time.to_zoned(zone.clone())).map_err(unread)
}

fn check_text_length(name: &str, text: &str) -> Result<(), BuiltinFailure> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(failure!("`{name}` is {} bytes; at most {MAX_TEXT_BYTES} are taken", text.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::builtin::check::{answer, server};

    #[track_caller]
    fn check(tool: &str, arguments: &str, expected: &Expect) {
        crate::builtin::check::check(&server("time"), tool, arguments, expected);
    }

    #[tokio::test]
    async fn now_is_told_in_the_zone_asked_for() {
        let told = answer(&server("time"), "now", r#"{"timezone":"Asia/Tokyo"}"#).await.unwrap();
        assert!(told.contains(r#"+09:00","timezone":"Asia/Tokyo""#), "{told}");
    }

    #[test]
    fn times_are_told_in_another_zone() {
        check(
            "convert",
            r#"{"time":"2026-03-01T15:00","from":"Europe/Paris","timezone":"Asia/Tokyo"}"#,
            &expect![[
                r#"{"time":"2026-03-01T23:00:00+09:00","timezone":"Asia/Tokyo","weekday":"Sunday","unixMs":1772373600000,"text":"2026-03-01 23:00:00"}"#
            ]],
        );
        check(
            "convert",
            r#"{"time":"Sun, 1 Mar 2026 09:30:00 GMT","pattern":"%d.%m.%y"}"#,
            &expect![[
                r#"{"time":"2026-03-01T09:30:00+00:00","timezone":"UTC","weekday":"Sunday","unixMs":1772357400000,"text":"01.03.26"}"#
            ]],
        );
        check(
            "convert",
            r#"{"time":"1969-12-31T23:59:59.5Z"}"#,
            &expect![[
                r#"{"time":"1969-12-31T23:59:59.5+00:00","timezone":"UTC","weekday":"Wednesday","unixMs":-500,"text":"1969-12-31 23:59:59"}"#
            ]],
        );
    }

    #[test]
    fn patterns_are_read() {
        check(
            "parse",
            r#"{"text":"01/03/2026 09:30","pattern":"%d/%m/%Y %H:%M","timezone":"America/New_York"}"#,
            &expect![[
                r#"{"time":"2026-03-01T09:30:00-05:00","timezone":"America/New_York","weekday":"Sunday","unixMs":1772375400000}"#
            ]],
        );
        check(
            "parse",
            r#"{"text":"1700000000","pattern":"%s"}"#,
            &expect![[
                r#"{"time":"2023-11-14T22:13:20+00:00","timezone":"UTC","weekday":"Tuesday","unixMs":1700000000000}"#
            ]],
        );
        check(
            "parse",
            r#"{"text":"2026-02-30","pattern":"%Y-%m-%d"}"#,
            &expect![
                "error: `2026-02-30` does not fit `%Y-%m-%d`: invalid date: parameter 'day' for `2026-02` is invalid, must be in range `1..=28`"
            ],
        );
    }

    #[test]
    fn addition_follows_the_calendar_of_the_zone() {
        check(
            "add",
            r#"{"time":"2026-01-31","months":1}"#,
            &expect![[
                r#"{"time":"2026-02-28T00:00:00+00:00","timezone":"UTC","weekday":"Saturday","unixMs":1772236800000}"#
            ]],
        );
        // The clocks go forward in between, and the time of day stays.
        check(
            "add",
            r#"{"time":"2026-03-28T12:00","timezone":"Europe/Paris","days":1,"hours":-1}"#,
            &expect![[
                r#"{"time":"2026-03-29T11:00:00+02:00","timezone":"Europe/Paris","weekday":"Sunday","unixMs":1774774800000}"#
            ]],
        );
        check(
            "add",
            r#"{"time":"2026-01-01","years":99999}"#,
            &expect![
                "error: the time cannot be calculated: parameter 'years' is not in the required range of -19998..=19998"
            ],
        );
    }

    #[test]
    fn differences_are_calendar_and_clock() {
        check(
            "diff",
            r#"{"from":"2024-02-28","to":"2025-03-01T06:00"}"#,
            &expect![[r#"{"seconds":31730400.0,"days":367,"duration":"P1Y1DT6H"}"#]],
        );
        check(
            "diff",
            r#"{"from":"2026-01-01T00:00:01.25Z","to":"2026-01-01"}"#,
            &expect![[r#"{"seconds":-1.25,"days":0,"duration":"-PT1.25S"}"#]],
        );
    }

    #[test]
    fn what_is_no_time_or_zone_is_named() {
        check(
            "convert",
            r#"{"time":"tomorrow"}"#,
            &expect![
                "error: `tomorrow` is no time that can be read: failed to parse four digit integer as year: invalid digit, expected 0-9 but got t; write it like `2026-03-01T09:30:00Z`"
            ],
        );
        check(
            "now",
            r#"{"timezone":"Mars/Olympus"}"#,
            &expect!["error: there is no time zone `Mars/Olympus`; use an IANA name such as `Europe/Paris`"],
        );
        check(
            "convert",
            r#"{"time":"2026-01-01","pattern":"%!"}"#,
            &expect![
                "error: pattern `%!` cannot be written: strftime formatting failed: found unrecognized specifier directive `!`"
            ],
        );
    }
}
