//! Plans for a request from what can be called and what is given.

use pml_graph::call_paths::{
    ArgumentSource, CallGraph, CallOptions, CallPath, GivenArgument, PossibleCall, ResultLink,
};

/// Reads a table, parses it, and checks it against a schema that is read and parsed, too; another tool fetches it.
fn options() -> CallOptions {
    let call = |required: &[&str]| PossibleCall {
        required: required.iter().map(|name| (*name).to_owned()).collect(),
        reliability: 0.9,
    };
    let given = |call, parameter: &str, value| GivenArgument {
        call,
        parameter: parameter.to_owned(),
        value,
        fit: 0.9,
    };
    let link = |from, to, parameter: &str, path: &str| ResultLink {
        from,
        to,
        parameter: parameter.to_owned(),
        path: path.to_owned(),
        fit: 0.8,
    };
    CallOptions {
        calls: vec![
            call(&["path"]),
            call(&["csv"]),
            call(&["path"]),
            call(&["data", "schema"]),
            call(&["url"]),
        ],
        steps: vec![vec![(1, 0.8)], vec![(3, 0.7)]],
        given: vec![given(0, "path", 0), given(2, "path", 1), given(0, "encoding", 2)],
        links: vec![
            link(0, 1, "csv", "content"),
            link(4, 1, "csv", "body"),
            link(1, 3, "data", "rows"),
            link(2, 3, "schema", ""),
            link(3, 1, "csv", "errors"),
        ],
    }
}

fn paths(options: &CallOptions) -> Vec<CallPath> {
    CallGraph::new(options).expect("sound options").paths().take(10).collect()
}

#[test]
fn every_required_argument_has_a_source() {
    let options = options();
    let [path] = &paths(&options)[..] else { panic!("one way, because nothing gives `url`") };
    let calls: Vec<usize> = path.calls.iter().map(|call| call.call).collect();
    assert_eq!(calls.len(), 4);
    for call in &path.calls {
        let named: Vec<&String> = call.arguments.iter().map(|(name, _)| name).collect();
        assert_eq!(named.len(), options.calls[call.call].required.len(), "{path:?}");
        let at = calls.iter().position(|other| *other == call.call);
        assert!(call.sources().all(|from| calls.iter().position(|other| *other == from) < at), "{path:?}");
    }
    assert_eq!(path.steps, [1, 3]);
    assert_eq!(path.depth(), 3);
    let parse = path.calls.iter().find(|call| call.call == 1).expect("the table is parsed");
    let source = ArgumentSource::Result { call: 0, path: "content".to_owned() };
    assert_eq!(parse.arguments, [("csv".to_owned(), source)]);
}

#[test]
fn another_way_comes_second_where_it_costs_more() {
    let mut options = options();
    options.given.push(GivenArgument { call: 4, parameter: "url".to_owned(), value: 3, fit: 0.2 });
    let found = paths(&options);
    assert_eq!(found.len(), 2);
    assert!(found[0].cost < found[1].cost);
    assert!(found[0].calls.iter().any(|call| call.call == 0));
    assert!(found[1].calls.iter().any(|call| call.call == 4));
}

#[test]
fn nothing_is_found_where_an_argument_is_missing() {
    let mut options = options();
    options.given.retain(|given| given.call != 2);
    assert_eq!(paths(&options), []);
}

#[test]
fn a_value_is_no_argument_twice_in_one_call() {
    let mut options = options();
    for parameter in ["data", "schema"] {
        options.given.push(GivenArgument { call: 3, parameter: parameter.to_owned(), value: 5, fit: 1.0 });
    }
    let values = |path: &CallPath| {
        let check = path.calls.iter().find(|call| call.call == 3).expect("the check is a step");
        check.arguments.iter().filter(|(_, source)| *source == ArgumentSource::Given(5)).count()
    };
    assert!(paths(&options).iter().all(|path| values(path) < 2));
}

#[test]
fn a_probability_of_0_is_refused() {
    let mut options = options();
    options.links[0].fit = 0.0;
    assert!(CallGraph::new(&options).is_err());
}

/// Eleven values for twelve parameters: billions of hyperpaths use a value twice, and each of them does.
#[test]
fn too_few_values_for_many_parameters_are_noticed_soon() {
    let names: Vec<String> = (0..12).map(|number| format!("p{number}")).collect();
    let given = (0..11).flat_map(|value| {
        let argument = move |parameter: &String| GivenArgument {
            call: 0,
            parameter: parameter.clone(),
            value,
            fit: 0.9,
        };
        names.iter().map(argument).collect::<Vec<_>>()
    });
    let options = CallOptions {
        given: given.collect(),
        calls: vec![PossibleCall { required: names.clone(), reliability: 0.9 }],
        steps: vec![vec![(0, 0.8)]],
        links: Vec::new(),
    };
    assert_eq!(paths(&options), []);
}
