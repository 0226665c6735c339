//! Data flow between the calls of a plan.

use pml_language::Reading;

use super::super::feeds::{CallOrder, PlannedCalls, infer_flow};
use super::*;

const TOOLS: [&str; 12] = [
    "find_song_lyrics(title:string*, artist:string*) -> lyrics:string",
    "translate_text(text:string*, source_language:string*, target_language:string*) -> translated_text:string",
    "send_sms(phone_number:string*, message:string*) -> sms_status:string",
    "calculate_distance(origin:string*, destination:string*) -> distance:number",
    "calculate_shipping_cost(weight:number*, distance:number*) -> shipping_cost:number",
    "calculate_sales_tax(amount:number*, tax_rate:number*) -> sales_tax:number",
    "encrypt_data(data:string*, encryption_key:string*) -> encrypted_data:string",
    "fs:read(path:string*) -> content:string",
    "json:parse(json:string*) -> value:object",
    "http:post(url:string*, body:object*, headers:object)",
    "crm:find_user(email:string*) -> user_id:string",
    "shop:list_orders(user_id:string*) -> orders:array",
];

/// The edges as `from.field -> to.parameter`, then the order when the calls had none.
#[track_caller]
fn check(names: &[&str], order: CallOrder, request: Option<&str>, expected: &[&str]) {
    let all: Vec<ToolFields> = TOOLS.iter().map(|text| tool(text)).collect();
    let tools: Vec<&ToolFields> = names
        .iter()
        .map(|name| all.iter().find(|tool| tool.id == *name).expect("one of the tools"))
        .collect();
    let request = request.map(Reading::of);
    let flow = infer_flow(&PlannedCalls {
        tools: &tools,
        order,
        request: request.as_ref(),
        known_arguments: &[],
        similarity: None,
    });
    let mut found = Vec::new();
    for edge in &flow.edges {
        for one in &edge.mapping {
            found.push(format!("{}.{} -> {}.{}", names[edge.from], one.from, names[edge.to], one.to));
        }
    }
    if order == CallOrder::AnyOrder {
        found.push(flow.order.iter().map(|call| names[*call]).collect::<Vec<_>>().join(", "));
    }
    assert_eq!(found, expected);
}

#[test]
fn what_the_request_leaves_open_comes_from_the_call_it_speaks_of() {
    check(
        &["calculate_distance", "find_song_lyrics", "send_sms"],
        CallOrder::AsListed,
        Some(
            "Calculate the distance from Paris to Rome. Find the lyrics of the song 'Imagine' by 'John Lennon', then send them to 555-1234.",
        ),
        &["find_song_lyrics.lyrics -> send_sms.message"],
    );
    check(
        &["find_song_lyrics", "calculate_distance", "encrypt_data"],
        CallOrder::AsListed,
        Some(
            "Find the lyrics of 'Imagine' by 'John Lennon', calculate the distance from Paris to Rome, and encrypt the lyrics with the key 'abc'.",
        ),
        &["find_song_lyrics.lyrics -> encrypt_data.data"],
    );
}

#[test]
fn what_the_request_answers_comes_from_nobody() {
    check(
        &["find_song_lyrics", "translate_text"],
        CallOrder::AsListed,
        Some(
            "Find the lyrics of 'Imagine' by 'John Lennon' and translate the text 'Hello, how are you?' from English to French.",
        ),
        &[],
    );
    check(
        &["calculate_distance", "calculate_shipping_cost"],
        CallOrder::AsListed,
        Some(
            "Calculate the distance from Paris to Rome, and calculate the shipping cost for a weight of 5 and a distance of 100.",
        ),
        &[],
    );
    check(
        &["calculate_distance", "calculate_shipping_cost"],
        CallOrder::AsListed,
        Some(
            "Calculate the distance from Paris to Rome, and then the shipping cost for a package that weighs 5 pounds.",
        ),
        &["calculate_distance.distance -> calculate_shipping_cost.distance"],
    );
}

#[test]
fn a_chain_is_followed_and_several_can_feed_one() {
    check(
        &["fs:read", "json:parse", "http:post"],
        CallOrder::AsListed,
        Some("Read and parse the JSON file /tmp/a.json, then post it to https://example.com/hook."),
        &["fs:read.content -> json:parse.json", "json:parse.value -> http:post.body"],
    );
    check(
        &["find_song_lyrics", "crm:find_user", "shop:list_orders", "send_sms"],
        CallOrder::AsListed,
        None,
        &["crm:find_user.user_id -> shop:list_orders.user_id", "shop:list_orders.orders -> send_sms.message"],
    );
}

#[test]
fn without_an_order_one_is_found() {
    check(
        &["http:post", "json:parse", "fs:read"],
        CallOrder::AnyOrder,
        Some("Read and parse the JSON file /tmp/a.json, then post it to https://example.com/hook."),
        &[
            "json:parse.value -> http:post.body",
            "fs:read.content -> json:parse.json",
            "fs:read, json:parse, http:post",
        ],
    );
    check(
        &["shop:list_orders", "crm:find_user"],
        CallOrder::AnyOrder,
        Some("Which orders has the customer with the email a@b.example?"),
        &["crm:find_user.user_id -> shop:list_orders.user_id", "crm:find_user, shop:list_orders"],
    );
    check(
        &["shop:list_orders", "crm:find_user"],
        CallOrder::AnyOrder,
        None,
        &["crm:find_user.user_id -> shop:list_orders.user_id", "crm:find_user, shop:list_orders"],
    );
}

#[test]
fn two_calls_of_one_tool_fill_two_parameters() {
    let airport = tool("search_airport(query:string*) -> sky_id:string");
    let flight = tool("search_flight(origin_sky_id:string*, destination_sky_id:string*) -> price:number");
    let tools = [&airport, &airport, &flight];
    let flow = infer_flow(&PlannedCalls {
        tools: &tools,
        order: CallOrder::AsListed,
        request: None,
        known_arguments: &[],
        similarity: None,
    });
    let found: Vec<(usize, &str)> =
        flow.edges.iter().map(|edge| (edge.from, edge.mapping[0].to.as_str())).collect();
    assert_eq!(found, [(0, "origin_sky_id"), (1, "destination_sky_id")]);
}

#[test]
fn a_tool_that_declares_nothing_follows_what_it_gives_back() {
    let find = tool("find_bus() -> origin:string, destination:string, price:number");
    let buy = tool("buy_ticket() -> origin:string, destination:string, price:number, group_size:number");
    let joke = tool("get_random_joke() -> joke:string");
    let tools = [&find, &joke, &buy];
    let flow = infer_flow(&PlannedCalls {
        tools: &tools,
        order: CallOrder::AsListed,
        request: None,
        known_arguments: &[],
        similarity: None,
    });
    let found: Vec<(usize, usize, usize)> =
        flow.edges.iter().map(|edge| (edge.from, edge.to, edge.mapping.len())).collect();
    assert_eq!(found, [(0, 2, 0)]);
}

#[test]
fn what_is_known_is_not_looked_for() {
    let (find, list) = (tool(TOOLS[10]), tool(TOOLS[11]));
    let calls = PlannedCalls {
        tools: &[&find, &list],
        order: CallOrder::AsListed,
        request: None,
        known_arguments: &[(1, "user_id")],
        similarity: None,
    };
    assert!(infer_flow(&calls).edges.is_empty());
}

#[test]
fn a_similarity_of_descriptions_can_be_brought_along() {
    let (give, take) = (tool("a:lookup() -> iban:string"), tool("b:pay(account:string*)"));
    let calls = PlannedCalls {
        tools: &[&give, &take],
        order: CallOrder::AsListed,
        request: None,
        known_arguments: &[],
        similarity: None,
    };
    assert!(infer_flow(&calls).edges.is_empty());
    let flow = infer_flow(&PlannedCalls { similarity: Some(&|_, _| 0.9), ..calls });
    assert_eq!(flow.edges.len(), 1);
}

#[test]
fn there_are_never_circles() {
    let one = tool("a:one(x:string*) -> y:string");
    let other = tool("b:other(y:string*) -> x:string");
    let flow = infer_flow(&PlannedCalls {
        tools: &[&one, &other, &one],
        order: CallOrder::AnyOrder,
        request: None,
        known_arguments: &[],
        similarity: None,
    });
    for (place, call) in flow.order.iter().enumerate() {
        let later = |edge: &&super::super::feeds::FlowEdge| {
            edge.to == *call && !flow.order[..place].contains(&edge.from)
        };
        assert!(!flow.edges.iter().any(|edge| later(&edge)), "{flow:?}");
    }
    assert_eq!(flow.order.len(), 3);
}

#[test]
fn values_of_the_request_find_their_parameters() {
    let cost = tool(TOOLS[4]);
    let text = "What does shipping cost for a distance of 500 km and a weight of 2.5 kg?";
    let flow = infer_flow(&PlannedCalls {
        tools: &[&cost],
        order: CallOrder::AsListed,
        request: Some(&Reading::of(text)),
        known_arguments: &[],
        similarity: None,
    });
    let found: Vec<String> = flow
        .request_values
        .iter()
        .map(|given| format!("{}={}", given.parameter, &text[given.span.clone()]))
        .collect();
    assert_eq!(found, ["distance=500", "weight=2.5"]);
}

#[test]
fn any_text_can_be_a_request() {
    let all: Vec<ToolFields> = TOOLS.iter().map(|text| tool(text)).collect();
    let tools: Vec<&ToolFields> = all.iter().collect();
    let long = "send 'it' to 1st of Café, ".repeat(3000);
    for text in [
        "",
        " ",
        "🙂🙂",
        "'",
        "'''",
        "1st of é",
        "10 é",
        "+é",
        "«a»é",
        "\u{0}\u{301}1-",
        "a@",
        "1--/:..",
        "日本語でファイルを読む。",
        "5th ofé",
        &long,
    ] {
        for order in [CallOrder::AsListed, CallOrder::AnyOrder] {
            let flow = infer_flow(&PlannedCalls {
                tools: &tools,
                order,
                request: Some(&Reading::of(text)),
                known_arguments: &[],
                similarity: None,
            });
            assert_eq!(flow.order.len(), tools.len());
        }
    }
    assert!(
        infer_flow(&PlannedCalls {
            tools: &[],
            order: CallOrder::AnyOrder,
            request: Some(&Reading::of("x")),
            known_arguments: &[],
            similarity: None
        })
        .order
        .is_empty()
    );
}
